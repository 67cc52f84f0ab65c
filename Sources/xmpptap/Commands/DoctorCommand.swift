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
              xmpptap doctor --port 15223 --json | jq 'select(.outcome != "ok")'
            """
    )

    @Option(
        help: ArgumentHelp("Check this port (default: 15222).", valueName: "port"),
        transform: { try UInt16(Number.parse($0, in: 1...65535)) }
    )
    var port = UInt16(ListenSpec.defaultPort)

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
        var findings = Doctor.examine(port: port)
        if let folder = try? authority.resolved() { findings += Doctor.authorities(folder, at: RunClock().now().time) }
        for domain in upstreamDomain { findings += Doctor.servers(of: domain, resolver: resolver) }
        let style = OutputStyle.ofOutput(colour.color)
        for line in findings.flatMap({ json ? [$0.json] : $0.lines(style) }) { Console.print(line) }
        if findings.contains(where: { $0.outcome == .stop }) { throw Failure.reported(.checkFailed) }
    }
}
