internal import ArgumentParser
internal import TapNetwork

/// `--allow-origin` and `--allow-host`, for commands with `--listen-ws`.
struct PageOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Site whose pages may use --listen-ws; repeatable (default: none).",
            discussion: """
                The origin of a page, as in https://chat.example.org; * allows all. Clients that are not web pages need \
                no permission.
                """,
            valueName: "origin|*"
        )
    )
    var allowOrigin: [String] = []

    @Option(
        help: ArgumentHelp(
            "Name by which clients reach --listen-ws; repeatable.",
            discussion: "Addresses, localhost and the server's own name are accepted always.",
            valueName: "name"
        )
    )
    var allowHost: [String] = []

    /// Refuses wrong values.
    ///
    /// - Parameter isUsed: Whether there is a `--listen-ws`.
    func check(isUsed: Bool) throws(Failure) {
        guard isUsed || allowOrigin.isEmpty && allowHost.isEmpty else {
            throw .usage("--allow-origin and --allow-host need --listen-ws")
        }
        for origin in allowOrigin
        where origin != "*" && Self.origin(origin).matches(of: #/^https?:\/\/[^\/?#@]+$/#).isEmpty {
            throw .usage("--allow-origin \(origin): write the origin of a page, as in https://chat.example.org, or *")
        }
        for host in allowHost where host.contains("/") {
            throw .usage("--allow-host \(host): write a name, as in chat.example.org")
        }
    }

    /// Returns an origin as browsers write it: in lower case, without the usual port and a final slash.
    private static func origin(_ text: String) -> String {
        var origin = text.lowercased()
        if origin.hasSuffix("/") { origin.removeLast() }
        for (scheme, port) in [("https://", ":443"), ("http://", ":80")]
        where origin.hasPrefix(scheme) && origin.hasSuffix(port) {
            origin.removeLast(port.count)
        }
        return origin
    }

    /// How clients of the listeners are treated.
    var web: WebOptions {
        var options = WebOptions()
        options.origins = Set(allowOrigin.map { Self.origin($0) })
        options.hosts = Set(allowHost.map { $0.lowercased() })
        return options
    }
}
