internal import ArgumentParser
internal import NIOCore
internal import NIOPosix
internal import TapCore
internal import TapNetwork
internal import TapReplay
internal import TapSecurity
internal import XMPPCore

struct ServeCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Play the server of a recorded session to a client.",
        discussion: """
            Clients log in over TLS, with a certificate of the local CA (see 'xmpptap ca export'), and get what the \
            recorded client got: answers to the same requests, and presence, messages and pushes where the recording \
            has them. Pings and stream management work as with any server, and a session can be resumed. A request \
            that was not recorded is answered with service-unavailable, and reported.

            With the passwords of --accounts, clients log in with SCRAM. Without --accounts every password is accepted, \
            with PLAIN, which some clients refuse.

            Press Ctrl-C to end it. The exit code is 1 if a client sent what was not recorded, or left before it got \
            what the server had sent; --fail-on chooses other faults.

            Examples: play the server; reproduce what a client received, in the same pieces and with the same delays; \
            let a real server answer the requests that were not recorded.

              xmpptap serve bug.xtap --accounts accounts.txt
              xmpptap serve bug.xtap --session 3 --chunks --pace recorded
              xmpptap serve bug.xtap --listen-ws 15280/xmpp-websocket --allow-origin https://chat.example.org
              xmpptap serve bug.xtap --accounts accounts.txt --unmatched forward=localhost:5222
            """
    )

    @Argument(help: ArgumentHelp("Capture, log, or packets.", valueName: "file"), completion: .recordings)
    var files: [String]

    @Option(
        help: ArgumentHelp(
            "Address to listen on (default: 127.0.0.1:15222, unless --listen-ws is given).",
            valueName: "host:port"
        ),
        transform: { text in
            let spec = try ListenSpec(text)
            return Endpoint(host: spec.host ?? "127.0.0.1", port: spec.port)
        }
    )
    var listen: Endpoint?

    @Option(
        help: ArgumentHelp(
            "Address to listen on for WebSocket; repeatable.",
            discussion: """
                With a path, WebSockets are accepted there only. TLS and, from this machine, clear text are accepted.
                """,
            valueName: "[host:]port[/path]"
        ),
        transform: { text throws(EndpointError) in try WebListenSpec(text) }
    )
    var listenWs: [WebListenSpec] = []

    @OptionGroup var pages: PageOptions

    @Flag(help: "Allow an address that other machines can reach.")
    var allowRemote = false

    @Option(
        help: ArgumentHelp("Accounts with password files; as=JID names the recorded account.", valueName: "file"),
        completion: .file()
    )
    var accounts: String?

    @OptionGroup var play: PlayOptions

    @Flag(help: "Send stanzas in the pieces in which they were recorded (not over WebSocket).")
    var chunks = false

    @Option(
        help: ArgumentHelp(
            "Silence after which a push no longer waits for the client (default: 2s).",
            valueName: "time"
        ),
        transform: { try TimeSpan.parse($0) }
    )
    var quiet: Int64 = 2_000_000_000

    @Option(
        help: ArgumentHelp(
            "Requests without a recorded answer: refuse, or forward=SERVER (default: refuse).",
            discussion: """
                Requests are forwarded with the accounts of --accounts, which the real server must have. SERVER is \
                HOST:PORT, or a ws:// or wss:// URL.
                """,
            valueName: "action"
        ),
        completion: .list(["refuse", "forward="]),
        transform: UnmatchedFlag.init
    )
    var unmatched = UnmatchedFlag(server: nil)

    @Option(
        help: ArgumentHelp(
            "Faults for exit code 1: unmatched, changed, missing, unsent, none (default: unmatched,unsent).",
            valueName: "faults"
        ),
        completion: .list(["unmatched", "changed", "missing", "unsent", "none"]),
        transform: ServeFaults.typed
    )
    var failOn = ServeFaults(faults: [.unmatched, .unsent])

    @OptionGroup var trust: ServerTrustOptions

    @Option(help: ArgumentHelp("Noise file; repeatable.", valueName: "file"), completion: .file())
    var noise: [String] = []

    @OptionGroup var keylog: KeyLogOption
    @OptionGroup var authority: AuthorityFolderOption
    @OptionGroup var config: ConfigOption

    func run() async throws {
        let places = try places()
        let cryptography = OpenSSLCryptography()
        var plan = try plan(cryptography)
        plan.settings.pace = play.pace
        plan.settings.keepsChunks = chunks
        plan.settings.silenceBeforeUnsolicited = quiet
        plan.rules = try NoiseFiles.rules(noise, beside: files)
        plan.forwarding = try forwarding(cryptography)
        let identity = try identity(plan.domain)
        let service: ServeService
        let tally = ServeTally()
        do {
            service = try await ServeService.start(
                plan,
                at: places.stream,
                web: places.web,
                identity: identity,
                cryptography: cryptography,
                group: MultiThreadedEventLoopGroup.singleton
            ) { [forwards = plan.forwarding != nil] event in
                Console.printEscaped(ServeReport.line(event, forwards: forwards))
                // If requests are forwarded, requests that were not recorded are not faults.
                if !forwards || ServeFault(event) != .unmatched { tally.record(event) }
            }
        } catch let error as ProxyError {
            throw Failure(error)
        } catch {
            throw Failure.network("cannot listen: \(error)")
        }
        if accounts == nil {
            Console.printStandardError(
                "no --accounts: any password is accepted, by PLAIN; clients that insist on SCRAM will not log in"
            )
        }
        if let place = listen ?? places.stream, let port = service.address?.port {
            Console.printStandardError(
                "listening on \(Endpoint(host: place.host, port: port)) as the server of \(plan.domain)"
            )
        }
        for (spec, address) in zip(listenWs, service.webAddresses) {
            let place = Endpoint(host: spec.place.host ?? "127.0.0.1", port: address?.port ?? spec.place.port)
            Console.printStandardError(
                "listening on \(place)\(spec.note(hasTLS: true)) as the server of \(plan.domain)"
            )
        }
        try await Interruption.cancels { try? await Task.sleep(for: .seconds(Int64.max >> 10)) }
        try? await service.stop()
        guard !tally.faults.isEmpty else { return }
        Console.printStandardError(tally.summary)
        if !failOn.faults.isDisjoint(with: tally.faults) { throw Failure.reported(.checkFailed) }
    }

    /// The addresses to listen on.
    private func places() throws(Failure) -> (stream: Endpoint?, web: [ServeService.WebPlace]) {
        try pages.check(isUsed: !listenWs.isEmpty)
        let usual = listenWs.isEmpty ? Endpoint(host: "127.0.0.1", port: ListenSpec.defaultPort) : nil
        let stream = listen ?? usual
        for place in [stream].compactMap(\.self) where !allowRemote && !place.isLoopback {
            throw .usage("--listen \(place): other machines can reach it; add --allow-remote to allow that")
        }
        var web: [ServeService.WebPlace] = []
        for spec in listenWs {
            guard spec.server == nil else {
                throw .usage("--listen-ws \(spec): serve has no other server; leave out \"=\" and the URL")
            }
            let place = Endpoint(host: spec.place.host ?? "127.0.0.1", port: spec.place.port)
            guard allowRemote || place.isLoopback else {
                throw .usage("--listen-ws \(place): other machines can reach it; add --allow-remote to allow that")
            }
            web.append(.init(Self.numeric(place), path: spec.path, pages.web))
        }
        return (stream.map(Self.numeric), web)
    }

    private static func numeric(_ place: Endpoint) -> Endpoint {
        Endpoint(host: place.host.lowercased() == "localhost" ? "127.0.0.1" : place.host, port: place.port)
    }

    private func plan(_ cryptography: OpenSSLCryptography) throws -> ServePlan {
        let conversations = try RecordedSessions.read(files, Set(play.session), keys: keylog.keys())
        do {
            guard let accounts else { return try ServePlan(conversations) }
            let rows = try AccountsFile(path: accounts).accounts
            return try ServePlan(
                conversations,
                accounts: rows.map { (recorded: $0.recorded ?? $0.jid, live: $0.jid) },
                authenticator: try AccountStore(rows, cryptography: cryptography)
            )
        } catch let error as AccountsError {
            throw Failure.file("--accounts: \(error)")
        } catch let error as ServePlanError {
            let recorded = Set(conversations.compactMap { $0.account?.description }).sorted().joined(separator: ", ")
            switch error {
            case .unknownAccounts:
                throw Failure(
                    status: .preparation,
                    message: "\(accounts ?? "") has none of the recorded accounts (\(recorded)); "
                        + "add as=RECORDED-JID to a line"
                )
            case .withoutLogin:
                throw Failure.file("\(files.joined(separator: ", ")): no session with a completed login")
            }
        }
    }

    private func forwarding(_ cryptography: OpenSSLCryptography) throws -> ServeForwarding? {
        guard let address = unmatched.server else { return nil }
        guard let accounts else {
            throw Failure.usage("--unmatched forward needs the passwords of --accounts to log in to \(address)")
        }
        var passwords: [JID: String] = [:]
        for account in try ReplayPlan.accounts(in: accounts) { passwords[account.live] = account.password }
        do {
            let server = try LiveServer(address, tls: trust.verification(), cryptography: cryptography)
            return ServeForwarding(server: server, passwords: passwords)
        } catch let error as TLSContextError {
            throw Failure.file("--upstream-ca: \(error)")
        }
    }

    /// Returns a certificate for the domain, issued by a CA of the folder; creates the CA if it does not exist.
    private func identity(_ domain: String) throws(Failure) -> TLSIdentity {
        let folder = try authority.resolved()
        do throws(AuthorityError) {
            let name = try CertificateName(domain)
            var policy = AuthorityProvider.Policy()
            policy.domains = [name]
            let provider = AuthorityProvider(folder, policy) { made in
                Console.printStandardError(
                    "created a certificate authority for \(made.name) in \(folder.path); clients must trust it: "
                        + "run 'xmpptap ca export --domain \(made.name)\(folder.flag)'"
                )
            }
            return try CertificateMinter(provider).identity(for: name, mirroring: [], at: RunClock().now().time)
        } catch {
            throw Failure(error, in: folder)
        }
    }
}

/// The value of `--unmatched`.
struct UnmatchedFlag {
    /// The server to which requests are forwarded; nil refuses them.
    let server: ServerAddress?

    init(server: ServerAddress?) { self.server = server }

    init(_ text: String) throws(Failure) {
        guard text != "refuse" else {
            server = nil
            return
        }
        guard text.hasPrefix("forward=") else { throw .usage("write refuse or forward=HOST:PORT") }
        do throws(EndpointError) {
            let address = String(text.dropFirst("forward=".count))
            server = address.contains("://") ? try ServerAddress(address) : .tcp(try Endpoint(address))
        } catch {
            throw .usage("\(error)")
        }
    }
}
