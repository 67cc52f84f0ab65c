import TapRecord
import Testing
import XMPPCore

@testable import TapReplay

/// A synthetic recording of one session.
struct Recording {
    var items: [(direction: Direction, xml: String, at: Double)] = []
    var jid = "romeo@example.org/orchard"
    /// The action of the proxy for each item, and the edited item.
    var action: (name: String, edited: String?)?

    /// Creates a recording of items at intervals of 0.1 s.
    init(_ items: [(Direction, String)], jid: String = "romeo@example.org/orchard") {
        self.items = items.enumerated().map { ($1.0, $1.1, Double($0) / 10) }
        self.jid = jid
    }

    func lines() throws -> [RecordLine] {
        try items.enumerated().map { index, item in
            let json = LineBuffer.object { line in
                line.field("sequence", index + 1)
                line.field("time", "2026-01-01T00:00:00Z")
                line.field("monotonic", seconds: Int64(item.at * 1_000_000_000))
                line.field("level", "info")
                line.field("part", "session")
                line.field("kind", "stanza")
                line.field("session", 1)
                line.field("jid", jid)
                line.field("direction", literal: item.direction.name)
                line.field("xml", item.xml)
                if let action { line.field("action", action.name) }
                if let edited = action?.edited { line.field("edited", edited) }
            }
            return try RecordLine(json: Array(json.utf8).span.bytes)
        }
    }

    /// Returns the divergences of another recording.
    func divergences(from live: Recording, noise: String = "") throws -> [Divergence] {
        let rules = NoiseRules(try NoiseFile.rules(noise, file: "test"))
        let (ours, theirs) = (try lines(), try live.lines())
        var catalogues = (SessionCatalogue(), SessionCatalogue())
        for line in ours { catalogues.0.add(line) }
        for line in theirs { catalogues.1.add(line) }
        let pairs = SessionPairs(recorded: catalogues.0, live: catalogues.1)
        let key: Set = [SessionKey(run: "", number: 1)]
        let digests = RecordedDigests(key, rules: rules, bindings: pairs.bindings, isRecorded: true)
        for line in ours { digests.add(line) }
        digests.finish()
        let liveDigests = RecordedDigests(key, rules: rules, bindings: pairs.bindings, isRecorded: false)
        for line in theirs { liveDigests.add(line) }
        liveDigests.finish()
        let difference = RecordingDifference(recorded: digests, live: liveDigests, pairs: pairs, rules: rules)
        let builder = DivergenceBuilder(
            recorded: texts,
            live: live.texts,
            bindings: pairs.bindings,
            rules: rules,
            written: (digests.writtenValues, liveDigests.writtenValues),
            parser: StanzaParser()
        )
        return difference.findings.map(builder.divergence)
    }

    private var texts: DivergenceBuilder.Texts {
        let items = self.items.enumerated().map { (UInt64($0 + 1), DivergenceBuilder.Text(bytes: Array($1.xml.utf8))) }
        return [SessionKey(run: "", number: 1): Dictionary(uniqueKeysWithValues: items)]
    }
}
