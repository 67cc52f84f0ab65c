internal import TapCapture
internal import TapDiagnosis
internal import TapRecord
internal import TapRules
internal import TapSecurity
internal import XMPPCore

/// The output of `rules run`: the rules that hit the stanzas of a recording.
struct RuleReport {
    private let rules: RuleSet
    private let isJSON: Bool
    private var runs = RunNumbers()
    /// Whether there are several recordings, each of which may contain its own runs.
    private var hasRuns = false

    init(_ rules: RuleSet, isJSON: Bool) {
        self.rules = rules
        self.isJSON = isJSON
    }

    /// Evaluates the rules for recordings, merged by time, and prints the hits.
    mutating func run(_ recordings: [String], sessions: Set<UInt64>, keys: KeyLog) throws(Failure) {
        hasRuns = recordings.count > 1
        var dryRun = RuleDryRun(rules, localTime: RuleFiles.localTime)
        var isSeen = sessions.isEmpty
        let stored = try StoredRecords(recordings, keys: keys) { entry in
            switch entry {
            case .header(let header):
                dryRun.add(header)
                runs.add(header)
            case .record(let line):
                guard sessions.isEmpty || sessions.contains(line.record.session) else { return }
                isSeen = true
                if let outcome = dryRun.evaluate(line) { isJSON ? Console.write(json(outcome)) : show(outcome) }
            case .damage, .gap: break
            }
        }
        stored.remark(on: sessions)
        if dryRun.judged == 0, isSeen {
            let names = recordings.joined(separator: ", ")
            Console.printDiagnostic("\(names): no stanzas with their XML; record with --capture or --log verbose")
        }
        if !isJSON { summarise(dryRun) }
        try stored.end(sessions)
    }

    // MARK: Text

    private func show(_ outcome: RuleDryRun.Outcome) {
        // Hits without an effect are only counted.
        guard outcome.action != "passed" || !outcome.notes.isEmpty else { return }
        let record = outcome.line.record
        let direction = record.direction == .send ? "SEND" : "RECV"
        let who = record.jid.map { " \($0)" } ?? ""
        let number = runs.session(of: record)
        let session = number.run > 1 ? "\(number.number) of run \(number.run)" : "\(number.number)"
        let rule = outcome.decidedBy ?? outcome.hits.last
        let place = rule.map { " \($0)" } ?? ""
        Console.printEscaped(
            "\(record.sequence) [\(session)\(who)] \(direction) \(outcome.action)\(place): \(stanzaLine(outcome))"
        )
        let others = outcome.hits.filter { $0 != rule }
        if !others.isEmpty { Console.printEscaped("  also hit: \(others.map(\.description).joined(separator: ", "))") }
        if let edited = outcome.edited {
            Console.printEscaped("  - \(text(outcome.line, record.xml))")
            Console.printEscaped("  + \(String(decoding: edited, as: UTF8.self))")
        }
        for note in outcome.notes { Console.printEscaped("  \(note.place): \(note.text)") }
    }

    /// Returns the stanza as one line.
    private func stanzaLine(_ outcome: RuleDryRun.Outcome) -> String {
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
        Console.printEscaped("\(Plural.of(dryRun.judged, "element")) judged, \(Plural.of(count, "hit"))")
        for place in dryRun.places { Console.printEscaped("  \(hits[place] ?? 0)  \(place)") }
        if dryRun.skipped > 0 {
            Console.printDiagnostic("\(Plural.of(dryRun.skipped, "element")) not judged: not whole in the recording")
        }
    }

    // MARK: JSON

    private func json(_ outcome: RuleDryRun.Outcome) -> [UInt8] {
        let record = outcome.line.record
        var buffer = LineBuffer()
        buffer.openObject()
        buffer.field("sequence", record.sequence)
        buffer.field("session", record.session)
        if hasRuns { buffer.field("run", runs.session(of: record).run) }
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
