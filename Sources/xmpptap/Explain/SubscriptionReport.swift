internal import TapDiagnosis
internal import TapRecord

/// The history of presence subscriptions between accounts, in lines.
struct SubscriptionReport {
    var history: SubscriptionHistory
    var style = OutputStyle.plain

    /// The history, one line for each event, with control characters escaped; for each pair the events in the order of
    /// time, and the final state.
    func lines() -> [String] {
        var lines: [String] = []
        for pair in history.pairs {
            let events = history.events(of: pair)
            if !lines.isEmpty { lines.append("") }
            let title = "\(pair.first) and \(pair.second)"
            lines.append(style.width == nil ? Console.escaped(title) : style.rule(title))
            for event in events {
                let stamp = event.time.stamp(in: .system)
                let ofRun = history.runCount > 1 ? " of run \(event.run)" : ""
                let text = "\(event.account): \(event.change.states) (\(event.reason))"
                lines += rows("\(stamp) [\(event.session)\(ofRun)] ", text)
            }
            lines += rows("at the end ", Self.outcome(events, pair))
        }
        return lines
    }

    /// A text after its head, wrapped below it if it is longer than a line.
    private func rows(_ head: String, _ text: String) -> [String] {
        let indent = Columns.count(head) + 2
        return style.wrapped(Console.escaped(text), indent: indent).enumerated().map { number, line in
            let first = "  " + style.paint(head, .dim)
            return style.drawn((number == 0 ? first : String(repeating: " ", count: indent)) + line)
        }
    }

    /// The final state, as each of the two last saw it.
    private static func outcome(_ events: [SubscriptionHistory.Event], _ pair: SubscriptionHistory.Pair) -> String {
        let seen = [pair.first, pair.second].compactMap { account in
            events.last { $0.account == account }.map { "\(account): \($0.change.outcome)\(gloss($0.change.after))" }
        }
        return seen.joined(separator: "; ")
    }

    /// The meaning of a state for the account.
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
