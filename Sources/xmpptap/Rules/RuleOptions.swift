internal import ArgumentParser
internal import TapNetwork
internal import TapRules

/// The flags for rules.
struct RuleOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Rule file that decides what passes; repeatable, in this order.",
            discussion: """
                Drops, answers, changes or delays stanzas, or breaks the session on purpose: --rules \
                filters/no-typing.pfw. filters/README.md is the reference; rules run shows what a file would do.
                """,
            valueName: "file"
        ),
        completion: .ruleFiles
    )
    var rules: [String] = []

    @OptionGroup var chain: DefaultChainOption

    /// Loads the rule files; nil if none are given.
    func load() throws(Failure) -> ProxyRules? {
        guard !rules.isEmpty else { return nil }
        guard !rules.contains("-") else { throw .usage("--rules needs a file, which can be read again") }
        let (files, chain) = (rules, chain.chain)
        let set = try RuleFiles.load(files, defaultChain: chain)
        Console.printStandardError("rules: \(set.count) from \(Plural.of(files.count, "file"))")
        return ProxyRules(set, files: files, localTime: { RuleFiles.localTime($0) }) { () throws(RuleSet.LoadError) in
            try RuleFiles.reload(files, defaultChain: chain)
        }
    }
}

/// `--chain`.
struct DefaultChainOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Chain of rules before the first chain line (default: both).",
            discussion: "deliver is mod_firewall's default: such rules see only what the server sends.",
            valueName: "chain"
        ),
        completion: .list(RuleSet.chainNames),
        transform: { text throws(ValidationError) in
            guard RuleSet.chainNames.contains(text) else {
                throw ValidationError("the chains are \(RuleSet.chainNames.joined(separator: ", "))")
            }
            return text
        }
    )
    var chain = "both"
}
