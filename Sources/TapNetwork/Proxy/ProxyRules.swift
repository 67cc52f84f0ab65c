package import TapRecord
package import TapRules

/// The rule files of a proxy, which can be reloaded while sessions are open.
package struct ProxyRules: Sendable {
    /// The files, as named by the user, in order.
    package let files: [String]
    /// The current rules, which new sessions start with.
    package let live: LiveRules

    private let read: @Sendable () throws(RuleSet.LoadError) -> RuleSet

    /// Creates the rules from files that have been read.
    ///
    /// - Parameters:
    ///   - rules: The rules in the files.
    ///   - files: The files, as named by the user, in order.
    ///   - localTime: Converts a time to the time of day in the user's time zone.
    ///   - read: Reads the files again.
    package init(
        _ rules: RuleSet,
        files: [String],
        localTime: @escaping @Sendable (Timestamp) -> RuleLocalTime,
        read: @escaping @Sendable () throws(RuleSet.LoadError) -> RuleSet
    ) {
        live = LiveRules(rules, localTime: localTime)
        self.files = files
        self.read = read
    }

    /// Reads the files again; new sessions start with the new rules. If a file has an error, the current rules are
    /// kept.
    func reload() throws(RuleSet.LoadError) -> RuleSet {
        let rules = try read()
        live.replace(by: rules)
        return rules
    }
}
