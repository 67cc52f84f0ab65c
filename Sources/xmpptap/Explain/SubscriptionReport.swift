internal import TapDiagnosis
internal import TapRecord

/// How people came to be contacts or not to be, in lines.
struct SubscriptionReport {
    var history: SubscriptionHistory

    /// The story, a line each; for each pair what happened in the order of time, and how it stands at the end.
    func lines() -> [String] {
        var lines: [String] = []
        for pair in history.pairs {
            let events = history.events(of: pair)
            if !lines.isEmpty { lines.append("") }
            lines.append("\(pair.first) and \(pair.second)")
            var time = TimestampWriter()
            for event in events {
                let stamp = LineBuffer.text { time.appendTimeOfDay(event.time, to: &$0) }
                let change = event.change
                let states =
                    change.before == change.after ? "\(change.after) as before" : "\(change.before) → \(change.after)"
                let ofRun = history.runCount > 1 ? " of run \(event.run)" : ""
                lines.append("  \(stamp) [\(event.session)\(ofRun)] \(event.account): \(states) (\(event.reason))")
            }
            lines.append("  at the end \(Self.outcome(events, pair))")
        }
        return lines
    }

    /// How it stands at the end, as each of the two last saw it.
    private static func outcome(_ events: [SubscriptionHistory.Event], _ pair: SubscriptionHistory.Pair) -> String {
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
