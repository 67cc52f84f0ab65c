internal import Synchronization
package import TapRecord

/// The rules of a run, which can be replaced while sessions are running.
package final class LiveRules: Sendable {
    private let rules: Mutex<RuleSet?>
    package let localTime: @Sendable (Timestamp) -> RuleLocalTime

    /// Creates the rules of a run.
    ///
    /// - Parameters:
    ///   - rules: The initial rules; nil if there are none.
    ///   - localTime: Returns the user's local time for a timestamp, used by `TIME` and `DAY`.
    package init(_ rules: RuleSet?, localTime: @escaping @Sendable (Timestamp) -> RuleLocalTime) {
        self.rules = Mutex(rules)
        self.localTime = localTime
    }

    /// The rules of new sessions; nil if there are none.
    package var current: RuleSet? { rules.withLock { $0 } }

    /// Sets the rules of new sessions. Running sessions get the new rules with ``SessionInput/rules(_:)``.
    ///
    /// Keeps the marks of users, and the state of lists and rates whose name and definition are unchanged.
    package func replace(by new: RuleSet) {
        rules.withLock { rules in
            if let old = rules { new.tables.share(with: old.tables) }
            rules = new
        }
    }
}
