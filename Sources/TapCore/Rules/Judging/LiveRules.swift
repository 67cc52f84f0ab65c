internal import Synchronization
public import TapRecord

/// The rules of a run: what its sessions begin with, which may change while they run.
public final class LiveRules: Sendable {
    private let rules: Mutex<RuleSet?>
    let localTime: @Sendable (Timestamp) -> RuleLocalTime

    /// Rules that are asked from the beginning.
    ///
    /// - Parameter localTime: The time of day at a time, where the user is: for `TIME` and `DAY`.
    public init(_ rules: RuleSet?, localTime: @escaping @Sendable (Timestamp) -> RuleLocalTime) {
        self.rules = Mutex(rules)
        self.localTime = localTime
    }

    /// What a session that begins now asks; nil is nothing.
    public var current: RuleSet? { rules.withLock { $0 } }

    /// Sets the rules of sessions that begin from now on. Running sessions get theirs by ``SessionInput/rules(_:)``.
    ///
    /// Marks of users go on, and so do lists and rates whose definition has the same name and text.
    public func replace(by new: RuleSet) {
        rules.withLock { rules in
            if let old = rules { new.tables.share(with: old.tables) }
            rules = new
        }
    }
}
