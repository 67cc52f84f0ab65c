internal import ArgumentParser
internal import TapCore
internal import TapNetwork

/// The flags about listening and servers.
struct ProxyOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Where clients come in; can be repeated.",
            discussion: """
                Without a host both loopback addresses, without the flag port 15222; port 0 is any that is free. \
                A server behind "=" beats --upstream and --upstream-domain; "domain:" and a domain have its server looked \
                up.
                """,
            valueName: "[host:]port[=host:port|=domain:name]"
        ),
        transform: { text throws(EndpointError) in try ListenSpec(text) }
    )
    var listen: [ListenSpec] = []

    @Option(
        help: ArgumentHelp(
            "The server that clients are sent to; without it they are served by the built-in one.",
            valueName: "host:port"
        ),
        transform: { text throws(EndpointError) in try Endpoint(text) }
    )
    var upstream: Endpoint?

    @Option(
        help: ArgumentHelp(
            "A domain whose clients are sent to its own server; can be repeated.",
            discussion: """
                The server is looked up as a client would: by SRV, else the domain's address and port 5222. Clients that \
                ask for any other domain are told host-unknown.
                """,
            valueName: "domain"
        ),
        transform: { text throws(EndpointError) in try Upstream.Domain(text) }
    )
    var upstreamDomain: [Upstream.Domain] = []

    @Option(
        help: ArgumentHelp(
            "The name server that is asked for domains; without it those of this machine.",
            valueName: "host:port"
        ),
        transform: { text throws(EndpointError) in try Endpoint(text) }
    )
    var resolver: Endpoint?

    @Option(
        help: ArgumentHelp(
            "Hand clients' addresses on by the PROXY protocol; a comma list, or repeated.",
            discussion: """
                accept: a proxy in front of this one says whose each connection is, in version 1 or 2; connections \
                without that are closed. send: the server is told in version 2 (send-v1: in version 1), and must expect \
                it.
                """,
            valueName: "accept|send|send-v1"
        ),
        transform: ProxyProtocolFlag.init
    )
    var proxyProtocol: [ProxyProtocolFlag] = []

    @Option(
        help: ArgumentHelp(
            "Whose word --proxy-protocol accept takes, such as 192.0.2.0/24; can be repeated (default: all).",
            valueName: "address[/bits]"
        ),
        transform: { text throws(Failure) in
            guard let range = AddressRange(text) else {
                throw .usage("write an IP address, or one with the number of bits that count, as in 192.0.2.0/24")
            }
            return range
        }
    )
    var proxyProtocolFrom: [AddressRange] = []

    @Option(
        help: ArgumentHelp(
            "What becomes of a stream that cannot be parsed.",
            discussion: """
                relay, the default, passes the rest on unread; close ends the session with the stream error that the \
                failing stream deserves, and is the default with --log-required.
                """,
            valueName: "relay|close"
        ),
        transform: { text throws(Failure) in
            guard let policy = UnparsablePolicy(rawValue: text) else { throw .usage("write relay or close") }
            return policy
        }
    )
    var onUnparsable: UnparsablePolicy?

    @Option(
        help: ArgumentHelp(
            "What clients and servers may ask for at most; can be repeated.",
            discussion: """
                Bytes: item=1MiB (a stanza), login-item=64KiB (before the session is open), tag=64KiB, name=1KiB, \
                waiting=256KiB (kept of what a client sends behind <starttls/> until it is answered). Numbers: depth=256, \
                attributes=256, namespaces=256, connections (half of the descriptors), connections-per-address=0, \
                authorities=64 (in --ca-dir; above it none is created on demand). Seconds: login=60, idle=0. For \
                connections, connections-per-address, login and idle, 0 disables the limit.
                """,
            valueName: "name=value"
        ),
        transform: LimitFlag.init
    )
    var limit: [LimitFlag] = []

    @Flag(help: "Let other machines in, where --listen names an address that they reach.")
    var allowRemote = false

    @Option(
        help: ArgumentHelp(
            "How long open sessions may take to end when the program is told to (default: 10).",
            valueName: "seconds"
        ),
        transform: { try Number.parse($0, in: 0...3600) }
    )
    var grace = 10
}
