internal import TapCapture
internal import TapCore
internal import TapRecord
internal import XMPPCore

/// `rules run`: which rule hits which stanza of a recording.
struct RuleReport {
    private let rules: RuleSet
    private let isJSON: Bool

    init(_ rules: RuleSet, isJSON: Bool) {
        self.rules = rules
        self.isJSON = isJSON
    }

    /// Judges a recording and prints what rules hit.
    func run(_ recording: String, sessions: Set<UInt64>) throws(Failure) {
        var dryRun = RuleDryRun(rules, localTime: RuleFiles.localTime)
        var isSeen = sessions.isEmpty
        let stored = try StoredRecords([recording]) { entry in
            switch entry {
            case .header: dryRun.beginRun()
            case .record(let line):
                guard sessions.isEmpty || sessions.contains(line.record.session) else { return }
                isSeen = true
                if let outcome = dryRun.take(line) { isJSON ? Console.write(Self.json(outcome)) : show(outcome) }
            case .damage, .gap: break
            }
        }
        stored.remark(on: sessions)
        if dryRun.judged == 0, isSeen {
            Console.complain("\(recording): no stanzas with their XML; record with --capture or --log verbose")
        }
        if !isJSON { summarise(dryRun) }
        try stored.end(sessions)
    }

    // MARK: Text

    private func show(_ outcome: RuleDryRun.Outcome) {
        // A hit without effect is only counted.
        guard outcome.action != "passed" || !outcome.notes.isEmpty else { return }
        let record = outcome.line.record
        let direction = record.direction == .send ? "SEND" : "RECV"
        let who = record.jid.map { " \($0)" } ?? ""
        let rule = outcome.decidedBy ?? outcome.hits.last
        let place = rule.map { " \($0)" } ?? ""
        Console.show(
            "\(record.sequence) [\(record.session)\(who)] \(direction) \(outcome.action)\(place): \(words(outcome))"
        )
        let others = outcome.hits.filter { $0 != rule }
        if !others.isEmpty { Console.show("  also hit: \(others.map(\.description).joined(separator: ", "))") }
        if let edited = outcome.edited {
            Console.show("  - \(text(outcome.line, record.xml))")
            Console.show("  + \(String(decoding: edited, as: UTF8.self))")
        }
        for note in outcome.notes { Console.show("  \(note.place): \(note.text)") }
    }

    /// What the stanza is, in a line.
    private func words(_ outcome: RuleDryRun.Outcome) -> String {
        let record = outcome.line.record
        if let summary = record.summary { return "\(summary)" }
        var parts = [text(outcome.line, record.name)]
        if let type = record.type { parts.append(text(outcome.line, type)) }
        if let to = record.to { parts.append("to \(text(outcome.line, to))") }
        if let from = record.from { parts.append("from \(text(outcome.line, from))") }
        return parts.joined(separator: " ")
    }

    private func text(_ line: RecordLine, _ range: ByteRange?) -> String {
        range.map { line.content.span.slice($0).string() } ?? ""
    }

    private func summarise(_ dryRun: RuleDryRun) {
        let hits = dryRun.hitCounts
        let count = hits.values.reduce(0, +)
        Console.show("\(Plural.of(dryRun.judged, "element")) judged, \(Plural.of(count, "hit"))")
        for place in dryRun.places { Console.show("  \(hits[place] ?? 0)  \(place)") }
        if dryRun.skipped > 0 {
            Console.complain("\(Plural.of(dryRun.skipped, "element")) not judged: not whole in the recording")
        }
    }

    // MARK: JSON

    private static func json(_ outcome: RuleDryRun.Outcome) -> [UInt8] {
        let record = outcome.line.record
        var buffer = LineBuffer()
        buffer.openObject()
        buffer.field("sequence", record.sequence)
        buffer.field("session", record.session)
        if let jid = record.jid { buffer.field("jid", jid) }
        if let direction = record.direction { buffer.field("direction", literal: direction.name) }
        buffer.field("action", outcome.action)
        if let rule = outcome.decidedBy ?? outcome.hits.last { buffer.field("rule", rule.description) }
        buffer.field("hits")
        buffer.openArray()
        for hit in outcome.hits {
            buffer.separate()
            buffer.appendJSONString(hit.description)
        }
        buffer.closeArray()
        if let xml = record.xml { buffer.field("xml", outcome.line.content.span.slice(xml).string()) }
        if let edited = outcome.edited { buffer.field("edited", String(decoding: edited, as: UTF8.self)) }
        buffer.field("notes")
        buffer.openArray()
        for note in outcome.notes {
            buffer.separate()
            buffer.appendJSONString("\(note.place): \(note.text)")
        }
        buffer.closeArray()
        buffer.closeObject()
        buffer.append(0x0A)
        return buffer.bytes
    }
}
