/// The flags that take a value, and checks that the argument parser lacks.
enum ValueFlags {
    /// Flags that at least one command accepts repeatedly.
    static let repeatable: Set = [
        "--against", "--allow-host", "--allow-origin", "--condition", "--head", "--kind", "--limit", "--listen",
        "--listen-ws",
        "--log-to", "--noise", "--only-tags", "--pin",
        "--port",
        "--proxy-protocol",
        "--proxy-protocol-from",
        "--rules", "--session", "--skip-tags", "--socks", "--transparent", "--upstream-domain", "--value",
    ]
    static let single: Set = [
        "--account", "--accounts", "--after", "--before", "--between", "--by", "--ca", "--ca-dir", "--capture",
        "--capture-for",
        "--capture-matches", "--capture-when", "--certificate", "--chain",
        "--channel-binding",
        "--client-tls", "--config", "--context", "--control", "--copies", "--count", "--direction", "--domain",
        "--fail-on",
        "--color", "--filter", "--format", "--from", "--grace", "--interface", "--interval", "--jid",
        "--junit",
        "--keep", "--keep-age", "--key",
        "--keylog",
        "--level", "--log", "--man", "--message", "--metrics", "--most", "--on-oversize", "--on-unparsable", "--pace",
        "--part",
        "--password-file", "--peer", "--ping", "--ping-timeout", "--quiet", "--ramp", "--redact",
        "--report", "--resolver", "--room", "--rotate-age", "--rotate-keep", "--rotate-size", "--seed", "--server-tls",
        "--since", "--size", "--socks-users", "--store", "--store-bodies", "--store-ca", "--store-keep",
        "--cluster", "--store-password-file", "--store-size", "--store-spool", "--store-spool-size", "--store-tap",
        "--subscriptions",
        "--tag", "--timeout", "--tls", "--tls-min", "--to", "--top",
        "--unmatched", "--until",
        "--upstream", "--upstream-ca", "--upstream-certificate", "--upstream-key", "--via", "--wait", "--web", "--with",
        "--write", "--ws",
    ]

    /// Joins each value that starts with a hyphen to its flag with `=`. Otherwise the parser would treat `-` and `-1`
    /// as flags.
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

    /// Returns the first flag that was repeated although it must not be; nil if there is none.
    static func repeated(_ arguments: some Sequence<String>) -> String? {
        var seen: Set<String> = []
        for argument in arguments.prefix(while: { $0 != "--" }) {
            let flag = String(argument.prefix { $0 != "=" })
            if single.contains(flag), !seen.insert(flag).inserted { return flag }
        }
        return nil
    }

    /// Returns whether an argument is `-`, or a hyphen followed by a digit; flags never look like that.
    private static func isValue(_ text: String) -> Bool {
        text == "-" || text.hasPrefix("-") && text.dropFirst().first?.isNumber == true
    }
}
