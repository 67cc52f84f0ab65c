internal import TapDiagnosis
internal import TapRecord

/// The history of presence subscriptions between accounts, as text.
struct SubscriptionReport {
    var history: SubscriptionHistory
    var style = OutputStyle.plain

    /// Returns the lines, with control characters escaped. For each pair of accounts, these are the events in order of
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

    /// Returns a text after its head; long text is wrapped and indented.
    private func rows(_ head: String, _ text: String) -> [String] {
        let indent = Columns.count(head) + 2
        return style.wrapped(Console.escaped(text), indent: indent).enumerated().map { number, line in
            let first = "  " + style.paint(head, .dim)
            return style.drawn((number == 0 ? first : String(repeating: " ", count: indent)) + line)
        }
    }

    /// Returns the final state, as seen by each of the two accounts.
    private static func outcome(_ events: [SubscriptionHistory.Event], _ pair: SubscriptionHistory.Pair) -> String {
        let seen = [pair.first, pair.second].compactMap { account in
            events.last { $0.account == account }.map { "\(account): \($0.change.outcome)\(gloss($0.change.after))" }
        }
        return seen.joined(separator: "; ")
    }

    /// Returns the meaning of a state for the account.
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
