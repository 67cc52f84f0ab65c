internal import ArgumentParser
internal import TapCore
internal import TapNetwork

/// `xmpptap doctor`.
struct DoctorCommand: ParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Say what would stop the program from working here.",
        discussion: """
            Looks at versions, libraries, ports, limits and rights. A line begins with "ok", with "note" where something \
            may be missed, or with "stop" and what to do; the exit code is 1 if there is a "stop".

            Example:

              xmpptap doctor
              xmpptap doctor --upstream-domain example.org
              xmpptap doctor --port 15223 --json | jq 'select(.outcome != "ok")'
            """
    )

    @Option(
        help: ArgumentHelp("Look at this port (default: 15222).", valueName: "port"),
        transform: { try UInt16(Number.parse($0, in: 1...65535)) }
    )
    var port = UInt16(ListenSpec.defaultPort)

    @Option(
        help: ArgumentHelp(
            "Look where the servers of this domain are, as proxy --upstream-domain would; can be repeated.",
            valueName: "domain"
        ),
        transform: { text throws(EndpointError) in try Upstream.Domain(text) }
    )
    var upstreamDomain: [Upstream.Domain] = []

    @Option(
        help: ArgumentHelp("Ask this name server; without it those of this machine.", valueName: "host:port"),
        transform: { text throws(EndpointError) in try Endpoint(text) }
    )
    var resolver: Endpoint?

    @Flag(help: "Print JSON, one object a line.")
    var json = false

    @OptionGroup var authority: AuthorityFolderOption
    @OptionGroup var config: ConfigOption

    func run() throws {
        if resolver != nil, upstreamDomain.isEmpty {
            throw Failure.usage("--resolver is asked for domains; add --upstream-domain")
        }
        var findings = Doctor.examine(port: port)
        if let folder = try? authority.resolved() { findings += Doctor.authorities(folder, at: RunClock().now().time) }
        for domain in upstreamDomain { findings += Doctor.servers(of: domain, resolver: resolver) }
        for finding in findings {
            // A finding may have names in it that a name server has sent.
            if json { Console.print(finding.json) } else { Console.show(finding.line) }
        }
        if findings.contains(where: { $0.outcome == .stop }) { throw Failure.told(.checkFailed) }
    }
}
