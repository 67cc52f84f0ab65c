/// The flags that take a value, with checks that the parser lacks.
enum ValueFlags {
    /// Flags that can be repeated, with some command.
    static let repeatable: Set = [
        "--against", "--condition", "--head", "--limit", "--listen", "--log-to", "--noise", "--only-tags", "--pin",
        "--port",
        "--proxy-protocol",
        "--proxy-protocol-from",
        "--rules", "--session", "--skip-tags", "--upstream-domain", "--value",
    ]
    static let single: Set = [
        "--accounts", "--after", "--before", "--by", "--ca", "--ca-dir", "--capture", "--capture-for",
        "--capture-matches", "--capture-when", "--certificate", "--chain",
        "--channel-binding",
        "--client-tls", "--config", "--control", "--copies", "--count", "--direction", "--domain", "--fail-on",
        "--color", "--filter", "--format", "--from", "--grace", "--interface", "--interval", "--jid",
        "--junit",
        "--keep-age", "--key",
        "--keylog",
        "--level", "--log", "--man", "--message", "--metrics", "--most", "--on-oversize", "--on-unparsable", "--pace",
        "--part",
        "--password-file", "--peer", "--ping", "--ping-timeout", "--quiet", "--ramp", "--redact",
        "--report", "--resolver", "--rotate-age", "--rotate-keep", "--rotate-size", "--seed", "--server-tls",
        "--since", "--subscriptions", "--tag", "--timeout", "--tls", "--tls-min", "--to", "--unmatched", "--until",
        "--upstream", "--upstream-ca", "--upstream-certificate", "--upstream-key", "--via", "--wait", "--with",
        "--write",
    ]

    /// The arguments with every value that begins with a hyphen joined to its flag by `=`: the parser takes `-` and `-1` for
    /// flags.
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

    /// The first flag given again that can be given only once.
    static func repeated(_ arguments: some Sequence<String>) -> String? {
        var seen: Set<String> = []
        for argument in arguments.prefix(while: { $0 != "--" }) {
            let flag = String(argument.prefix { $0 != "=" })
            if single.contains(flag), !seen.insert(flag).inserted { return flag }
        }
        return nil
    }

    /// `-` alone, or `-` and a digit: no flag looks like that.
    private static func isValue(_ text: String) -> Bool {
        text == "-" || text.hasPrefix("-") && text.dropFirst().first?.isNumber == true
    }
}
