internal import ArgumentParser
internal import TapCore
internal import TapNetwork

struct DoctorCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Check this machine for problems that stop xmpptap from working.",
        discussion: """
            Checks versions, libraries, ports, limits and permissions. Each line begins with "ok", with "note" for a \
            restriction, or with "stop" for an error, followed by what to do; on a terminal with a mark instead. The \
            exit code is 1 if there is a "stop".

            Examples:

              xmpptap doctor
              xmpptap doctor --upstream-domain example.org
              xmpptap doctor --listen 15223 --json | jq 'select(.outcome != "ok")'
            """
    )

    @Option(
        name: [.customLong("listen"), .customLong("port")],
        help: ArgumentHelp(
            "Check this address, as for proxy --listen (default: 15222).",
            discussion: "Without a host: both loopback addresses.",
            valueName: "[host:]port"
        ),
        transform: { text throws(EndpointError) in try ListenSpec(text) }
    )
    var listen = ListenSpec()

    @Option(
        help: ArgumentHelp(
            "Look up this domain's servers as proxy --upstream-domain does; repeatable.",
            valueName: "domain"
        ),
        transform: { text throws(EndpointError) in try Upstream.Domain(text) }
    )
    var upstreamDomain: [Upstream.Domain] = []

    @Option(
        help: ArgumentHelp("DNS server to query (default: the system's).", valueName: "host:port"),
        transform: { text throws(EndpointError) in try Endpoint(text) }
    )
    var resolver: Endpoint?

    @Flag(help: "Print JSON, one object per line.")
    var json = false

    @OptionGroup var colour: ColourOption
    @OptionGroup var authority: AuthorityFolderOption
    @OptionGroup var config: ConfigOption

    func run() throws {
        if resolver != nil, upstreamDomain.isEmpty {
            throw Failure.usage("--resolver is used only with --upstream-domain; add it")
        }
        guard listen.port > 0 else { throw Failure.usage("--listen: port 0 is any free port; name the port to check") }
        var findings = Doctor.examine(listen)
        if let folder = try? authority.resolved() { findings += Doctor.authorities(folder, at: RunClock().now().time) }
        for domain in upstreamDomain { findings += Doctor.servers(of: domain, resolver: resolver) }
        let style = OutputStyle.ofOutput(colour.color)
        for line in findings.flatMap({ json ? [$0.json] : $0.lines(style) }) { Console.print(line) }
        if findings.contains(where: { $0.outcome == .stop }) { throw Failure.reported(.checkFailed) }
    }
}
