import Foundation

/// An ejabberd of the test's own: a temporary folder, a free port of 127.0.0.1; anybody may log in with any password, or one
/// account alone.
///
/// It takes no part in Erlang's distribution, so that nothing else is started with it. It ends with `stop()`, or when the
/// last reference goes.
public final class EjabberdServer: Sendable {
    /// The port where clients connect.
    public let port: UInt16

    private let folder: TemporaryFolder
    private let process: ToolProcess

    /// Starts a server for the domain localhost, without TLS and for anybody, and waits until it accepts connections.
    ///
    /// - Parameter usesProxyProtocol: whether each connection has to begin with a PROXY header.
    public convenience init(usesProxyProtocol: Bool) async throws {
        try await self.init(
            """
            auth_method: [anonymous]
            anonymous_protocol: login_anon
            allow_multiple_connections: true
            """,
            listener: "use_proxy_protocol: \(usesProxyProtocol)"
        )
    }

    /// Starts a server for one account, which demands STARTTLS, speaks TLS 1.2 alone and keeps SCRAM-SHA-256: there it
    /// binds logins by tls-unique.
    public convenience init(_ account: Account, certificate: TestCertificate) async throws {
        let both = try TemporaryFolder()
        let pair = try both.write(
            String(contentsOfFile: certificate.certificate, encoding: .utf8)
                + String(contentsOfFile: certificate.key, encoding: .utf8),
            to: "pair.pem"
        )
        try await self.init(
            """
            auth_method: [internal]
            auth_password_format: scram
            auth_scram_hash: sha256
            certfiles: ["\(pair)"]
            c2s_protocol_options: [no_sslv3, no_tlsv1, no_tlsv1_1, no_tlsv1_3]
            """,
            listener: "starttls_required: true",
            account: account
        )
        withExtendedLifetime(both) {}
    }

    private init(_ settings: String, listener: String, account: Account? = nil) async throws {
        folder = try TemporaryFolder()
        port = try FreePort.next()
        let libraries = try Self.libraries()
        let configuration = try folder.write(
            """
            hosts: [localhost]
            loglevel: info
            \(settings)
            listen:
              -
                port: \(port)
                ip: "127.0.0.1"
                module: ejabberd_c2s
                starttls: \(account != nil)
                \(listener)
            modules:
              mod_roster: {}
              mod_disco: {}
              mod_ping: {}
              mod_stream_mgmt: {}

            """,
            to: "ejabberd.yml"
        )
        let registered = folder.path(of: "registered")
        let register = account.map { account in
            """
            F = fun G() -> case catch ejabberd_auth:try_register(<<"\(account.user)">>, <<"\(account.domain)">>, \
            <<"\(account.password)">>) of ok -> file:write_file("\(registered)", "ok"); \
            _ -> timer:sleep(100), G() end end, F().
            """
        }
        process = try ToolProcess(
            "/usr/bin/erl",
            [
                "-noinput", "-boot", "no_dot_erlang", "-pa", libraries.programs,
                "-mnesia", "dir", "\"\(folder.path(of: "database"))\"",
                "-ejabberd", "config", "\"\(configuration)\"",
                "-ejabberd", "log_path", "\"\(folder.path(of: "ejabberd.log"))\"",
                "-s", "ejabberd",
            ] + (register.map { ["-eval", $0] } ?? []),
            environment: ["HOME": folder.path, "ERL_LIBS": libraries.folder]
        )
        let end = ContinuousClock.now + .seconds(60)
        while !log.contains("Start accepting TCP connections") || account != nil && folder.read("registered").isEmpty {
            guard process.isRunning, ContinuousClock.now < end else {
                throw process.failure("does not accept on port \(port)\n\(log.suffix(4000))")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// All that it has logged so far.
    public var log: String { folder.read("ejabberd.log") }

    /// Waits until it has logged a text.
    public func wait(for text: String, within limit: Duration = .seconds(10)) async throws {
        let end = ContinuousClock.now + limit
        while !log.contains(text) {
            guard process.isRunning, ContinuousClock.now < end else {
                throw process.failure("did not log \(text):\n\(log.suffix(4000))")
            }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Ends it by SIGTERM.
    public func stop() async throws { try await process.terminate() }

    /// Where Debian puts Erlang's libraries, which depends on the processor, and ejabberd among them.
    private static func libraries() throws -> (folder: String, programs: String) {
        for triplet in try FileManager.default.contentsOfDirectory(atPath: "/usr/lib").sorted() {
            let folder = "/usr/lib/\(triplet)"
            guard let names = try? FileManager.default.contentsOfDirectory(atPath: folder) else { continue }
            let programs = names.sorted().filter { $0.hasPrefix("ejabberd-") }.map { "\(folder)/\($0)/ebin" }
            if let found = programs.first(where: { FileManager.default.fileExists(atPath: "\($0)/ejabberd.beam") }) {
                return (folder, found)
            }
        }
        throw KitError("ejabberd's libraries are not below /usr/lib")
    }
}
