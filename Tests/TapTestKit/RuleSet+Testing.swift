package import TapRules

extension RuleSet {
    /// Compiles a rule file with the name `test.pfw`. Its lists are read from test data.
    package static func test(_ text: String, defaultChain: String = "both") throws(LoadError) -> RuleSet {
        try RuleSet([RuleSource(name: "test.pfw", text: text)], defaultChain: defaultChain) { path in
            switch path {
            case "lists/words.txt": .contents(Array("spam\r\neggs\n".utf8))
            case "lists/huge.txt": .contents(Array(repeating: 0x61, count: RuleSet.maximumListBytes + 1))
            case "lists/latin1.txt": .contents([0xE9])
            case "lists/secret.txt": .unreadable("Permission denied")
            default: .missing
            }
        }
    }
}
