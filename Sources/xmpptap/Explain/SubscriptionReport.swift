internal import TapDiagnosis
internal import TapRecord
internal import XMPPCore

/// How people came to be contacts or not to be: what the records of a file tell of their subscriptions, put together by
/// the two of them, whichever of their sessions it was seen in.
struct SubscriptionReport {
    /// Two accounts; the order in which they were seen is kept for the telling.
    private struct Pair: Hashable {
        let first: String
        let second: String

        static func == (left: Pair, right: Pair) -> Bool {
            left.first == right.first && left.second == right.second
                || left.first == right.second && left.second == right.first
        }

        func hash(into hasher: inout Hasher) { hasher.combine(first < second ? [first, second] : [second, first]) }
    }

    /// One record.
    private struct Event {
        let time: Timestamp
        let run: Int
        let session: UInt64
        let account: String
        let change: SubscriptionChange
        let reason: String
    }

    /// Only what concerns this bare address is kept; nil is everybody.
    private let person: String?
    private var run = 0
    /// The number of each run, in the order in which they are first told of: each counts its sessions from 1.
    private var runs: [String: Int] = [:]
    private var order: [Pair] = []
    private var events: [Pair: [Event]] = [:]

    /// A story about everybody, or about those who had to do with `person`.
    init(of person: String?) { self.person = person.map { Address($0).comparableBare } }

    /// Takes a header.
    mutating func note(_ header: RecordHeader) {
        run = runs[header.run, default: runs.count + 1]
        runs[header.run] = run
    }

    /// Takes a record; most say nothing of subscriptions.
    mutating func note(_ record: Record) {
        guard record.code == SubscriptionChange.code, let account = record.jid.map({ Address($0).comparableBare }),
            let change = record.message.flatMap({ SubscriptionChange($0) })
        else { return }
        guard person == nil || person == account || person == change.contact else { return }
        let pair = Pair(first: account, second: change.contact)
        if events[pair] == nil { order.append(pair) }
        events[pair, default: []].append(
            Event(
                time: record.time,
                run: run,
                session: record.session,
                account: account,
                change: change,
                reason: record.details?["because"]?.text ?? ""
            )
        )
    }

    /// The story, a line each; for each pair what happened in the order of time, and how it stands at the end.
    func lines() -> [String] {
        var lines: [String] = []
        for pair in order {
            let events = events[pair, default: []].sorted { $0.time < $1.time }
            if !lines.isEmpty { lines.append("") }
            lines.append("\(pair.first) and \(pair.second)")
            var time = TimestampWriter()
            for event in events {
                var line = LineBuffer()
                time.appendTimeOfDay(event.time, to: &line)
                let change = event.change
                let states =
                    change.before == change.after ? "\(change.after) as before" : "\(change.before) → \(change.after)"
                let stamp = String(decoding: line.bytes, as: UTF8.self)
                let ofRun = runs.count > 1 ? " of run \(event.run)" : ""
                lines.append("  \(stamp) [\(event.session)\(ofRun)] \(event.account): \(states) (\(event.reason))")
            }
            lines.append("  at the end \(Self.outcome(events, pair))")
        }
        return lines
    }

    /// How it stands at the end, as each of the two last saw it.
    private static func outcome(_ events: [Event], _ pair: Pair) -> String {
        let seen = [pair.first, pair.second].compactMap { account in
            events.last { $0.account == account }.map { (account, $0.change.after) }
        }
        return seen.map { account, state in "\(account): \(state)\(gloss(state))" }.joined(separator: "; ")
    }

    /// What a state means for the account.
    private static func gloss(_ state: String) -> String {
        // Of a state that is half known, what is known.
        let known = state.firstRange(of: " (").map { state[..<$0.lowerBound] } ?? state[...]
        return switch known {
        case "both": ", each sees the other's presence"
        case "to", "to, pending in": ", sees the other's presence"
        case "from", "from, pending out": ", shows its own presence"
        case "pending out": ", without an answer yet"
        case "pending in": ", has not answered yet"
        default: ""
        }
    }
}
