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
                let ofRun = history.runCount > 1 ? " of run \(event.run)" : ""
                lines.append(
                    "  \(stamp) [\(event.session)\(ofRun)] \(event.account): \(event.change.states) (\(event.reason))"
                )
            }
            lines.append("  at the end \(Self.outcome(events, pair))")
        }
        return lines
    }

    /// How it stands at the end, as each of the two last saw it.
    private static func outcome(_ events: [SubscriptionHistory.Event], _ pair: SubscriptionHistory.Pair) -> String {
        let seen = [pair.first, pair.second].compactMap { account in
            events.last { $0.account == account }.map { "\(account): \($0.change.outcome)\(gloss($0.change.after))" }
        }
        return seen.joined(separator: "; ")
    }

    /// What a state means for the account.
    private static func gloss(_ state: SubscriptionState?) -> String {
        guard let state else { return "" }
        return switch (state.to, state.from, state.isPendingOut, state.isPendingIn) {
        case (true, true, _, _): ", each sees the other's presence"
        case (true, false, _, _): ", sees the other's presence"
        case (false, true, _, _): ", shows its own presence"
        case (false, false, true, false): ", without an answer yet"
        case (false, false, false, true): ", has not answered yet"
        case (false, false, _, _): ""
        }
    }
}
