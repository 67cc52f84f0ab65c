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

    /// Sets the rules of new sessions. Running sessions get theirs with ``SessionInput/rules(_:)``.
    ///
    /// Marks of users are kept, and so are lists and rates whose name and definition are unchanged.
    package func replace(by new: RuleSet) {
        rules.withLock { rules in
            if let old = rules { new.tables.share(with: old.tables) }
            rules = new
        }
    }
}
