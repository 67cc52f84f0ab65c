package import TapRecord
package import TapRules

/// The rule files of a proxy, which can be read again while sessions run.
package struct ProxyRules: Sendable {
    /// The files, as named by the user, in order.
    package let files: [String]
    /// The rules of now, which sessions begin with.
    package let live: LiveRules

    private let read: @Sendable () throws(RuleSet.LoadError) -> RuleSet

    /// Rules that were read from files.
    ///
    /// - Parameters:
    ///   - localTime: Converts a time to the time of day in the user's time zone.
    ///   - read: Reads the files once more.
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

    /// Reads the files again. If a file has an error, the current rules for new sessions stay.
    func reload() throws(RuleSet.LoadError) -> RuleSet {
        let rules = try read()
        live.replace(by: rules)
        return rules
    }
}
