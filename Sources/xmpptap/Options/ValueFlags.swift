/// The flags that take a value, and what the parser lets pass or misreads about them.
enum ValueFlags {
    /// Those that can be repeated.
    static let repeatable: Set = [
        "--limit", "--listen", "--log-to", "--proxy-protocol", "--proxy-protocol-from", "--session",
        "--upstream-domain",
    ]
    /// Those of which one counts.
    static let single: Set = [
        "--accounts", "--ca", "--ca-dir", "--capture", "--certificate", "--channel-binding", "--client-tls", "--config",
        "--domain",
        "--format", "--grace", "--key", "--keylog",
        "--log", "--on-unparsable", "--password-file", "--port", "--redact", "--resolver", "--rotate-keep",
        "--rotate-size", "--server-tls", "--subscriptions", "--timeout", "--tls", "--tls-min", "--upstream",
        "--upstream-ca", "--upstream-certificate", "--upstream-key", "--via", "--with",
    ]

    /// The arguments with every value that begins with a hyphen tied to its flag: the parser takes `-` and `-1` for flags,
    /// and would miss a value where one stands that is to be judged.
    static func tied(_ arguments: [String]) -> [String] {
        var tied: [String] = []
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            guard argument != "--" else { return tied + [argument] + rest }
            guard single.contains(argument) || repeatable.contains(argument), let value = rest.first, isValue(value)
            else {
                tied.append(argument)
                continue
            }
            tied.append("\(argument)=\(value)")
            rest.removeFirst()
        }
        return tied
    }

    /// The first flag that stands there again although one counts.
    static func repeated(_ arguments: some Sequence<String>) -> String? {
        var seen: Set<String> = []
        for argument in arguments.prefix(while: { $0 != "--" }) {
            let flag = String(argument.prefix { $0 != "=" })
            if single.contains(flag), !seen.insert(flag).inserted { return flag }
        }
        return nil
    }

    /// `-` alone, and what goes on with a digit: no flag of this program is one.
    private static func isValue(_ text: String) -> Bool {
        text == "-" || text.hasPrefix("-") && text.dropFirst().first?.isNumber == true
    }
}
