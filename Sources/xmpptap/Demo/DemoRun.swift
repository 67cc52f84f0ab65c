internal import Logging
internal import NIOCore
internal import NIOPosix
internal import ServiceLifecycle
internal import TapNetwork
internal import TapRecord
internal import TapSecurity

/// The demo: the built-in server, a proxy and a client.
struct DemoRun {
    let tap: TapRun
    let server: EphemeralServer

    /// Runs the client, and returns its steps after the proxy has ended.
    ///
    /// - Throws: A ``Failure`` that names the failed step.
    func steps() async throws -> [DemoStep] {
        let (listening, continuation) = AsyncStream.makeStream(of: Endpoint.self)
        let service = ProxyService(
            ProxyConfiguration(
                listeners: [ListenSpec(host: "127.0.0.1", port: 0)],
                upstream: .endpoint(server.endpoint),
                session: tap.options,
                interception: try server.authority?.interception(),
                grace: .seconds(2)
            ),
            run: tap.run,
            clock: tap.clock,
            dispatcher: tap.logs.dispatcher,
            logger: DiagnosticHandler.logger(.warning)
        ) { endpoint, _ in continuation.yield(endpoint) }
        let group = ServiceGroup(services: [service], logger: DiagnosticHandler.logger(.warning))
        return try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask {
                defer { continuation.finish() }
                do {
                    try await group.run()
                } catch let error as ProxyError {
                    throw Failure(error)
                }
            }
            var endpoints = listening.makeAsyncIterator()
            guard let endpoint = await endpoints.next() else {
                try await tasks.waitForAll()
                throw Failure.network("the proxy did not start to listen; see 'xmpptap doctor'")
            }
            do {
                let steps = try await converse(at: endpoint)
                await group.triggerGracefulShutdown()
                try await tasks.waitForAll()
                return steps
            } catch {
                await group.triggerGracefulShutdown()
                try? await tasks.waitForAll()
                throw error
            }
        }
    }

    private func converse(at endpoint: Endpoint) async throws -> [DemoStep] {
        guard let account = server.accounts.first else {
            throw Failure(status: .preparation, message: "the built-in server has no account")
        }
        do {
            let client = try DemoClient(
                account: "\(account.name)@\(server.domain)",
                password: account.password,
                authority: server.authority?.certificatePath,
                cryptography: tap.cryptography
            )
            return try await client.run(
                host: endpoint.host,
                port: endpoint.port,
                group: MultiThreadedEventLoopGroup.singleton
            )
        } catch {
            throw Failure(status: .preparation, message: "the demo client failed at \(error); see 'xmpptap doctor'")
        }
    }
}

/// The summary at the end of the demo.
enum DemoSummary {
    /// Returns one line per step with its duration, and then commands for the user's own client and server.
    ///
    /// - Parameters:
    ///   - program: The name or path by which the user called xmpptap.
    ///   - style: The style of the output, including the maximum width of a line.
    static func lines(_ steps: [DemoStep], program: String = "xmpptap", style: OutputStyle = .plain) -> [String] {
        let width = steps.map(\.title.count).max() ?? 0
        var earlier = 0.0
        let rows = steps.flatMap { step in
            let time = duration(step.time - earlier)
            earlier = step.time
            let space = String(repeating: " ", count: max(0, 7 - time.count))
            let head = "  \(space)\(time)  \(step.title.padded(to: width))  "
            let indent = Columns.count(head)
            return style.wrapped(step.detail, indent: indent).enumerated().map { number, line in
                (number == 0 ? head : String(repeating: " ", count: indent)) + line
            }
        }
        return ["", "Steps of the client, and how long each took:"] + rows + [
            "A complete session through xmpptap in \(duration(earlier)).", "",
        ] + next(program)
    }

    /// Returns commands for a client and a server of the user. Tests log in through xmpptap with these clients.
    private static func next(_ program: String) -> [String] {
        [
            "Your own server: DOMAIN is the domain of its JIDs.",
            "  \(program) proxy USER@DOMAIN",
            "  \(program) ca export --domain DOMAIN > tap.pem",
            "Your own client connects to port 15222 of this machine and trusts tap.pem:",
            "  slixmpp      client.ca_certs = \"tap.pem\"; client.connect((\"127.0.0.1\", 15222))",
            "  go-sendxmpp  export SSL_CERT_FILE=tap.pem",
            "               go-sendxmpp -u USER@DOMAIN -j localhost:15222 TO",
            "  profanity    SSL_CERT_FILE=tap.pem profanity",
            "               /connect USER@DOMAIN server 127.0.0.1 port 15222",
            "Other clients: \(program) help clients",
        ]
    }

    /// Returns how to call this program: by a relative path if it was called so, as in `make demo`; otherwise by its
    /// name.
    static func program(called word: String?) -> String {
        guard let word, word.contains("/"), !word.hasPrefix("/") else { return "xmpptap" }
        return AuthorityFolder.word(word)
    }

    private static func duration(_ seconds: Double) -> String {
        LineBuffer.duration(Int64(max(0, min(seconds, 1e9)) * 1e9))
    }
}
