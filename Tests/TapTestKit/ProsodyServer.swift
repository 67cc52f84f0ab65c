/// A Prosody of the test's own: a temporary folder, a free port of 127.0.0.1, the accounts given, no federation unless
/// asked for.
///
/// It ends with `stop()`, or when the last reference goes.
package final class ProsodyServer: Sendable {
    /// The use of TLS on its client port.
    package enum Encryption: Sendable {
        /// No STARTTLS is offered, and PLAIN is offered without it.
        case none
        /// STARTTLS with this certificate is required before anything else.
        case startTLS(TestCertificate)
        /// The same on its port, and TLS from the first byte on another; `version` is the only allowed one, as `1_2`,
        /// if given.
        case both(TestCertificate, direct: UInt16, version: String? = nil)
        /// STARTTLS is offered on its port and not required, and TLS from the first byte on another.
        case offered(TestCertificate, direct: UInt16)
    }

    /// The port where clients connect.
    package let port: UInt16

    private let folder: TemporaryFolder
    /// Held as long as the server may read its files: a certificate goes with the last reference to it.
    private let encryption: Encryption
    private let process: ToolProcess

    /// Starts a server and waits until it accepts connections.
    ///
    /// - Parameters:
    ///   - encryption: what its port says about TLS; none by default.
    ///   - serverPort: where other servers connect, without TLS and proving their domains by dialback; nil is nowhere.
    ///   - accounts: registered before it starts, all in one domain; juliet and romeo by default.
    ///   - settings: lines added to the global section of its configuration.
    ///   - host: lines added to the section of the domain, and behind it: modules, components.
    package init(
        encryption: Encryption = .none,
        serverPort: UInt16? = nil,
        accounts: [Account] = [.juliet, .romeo],
        settings: String = "",
        host: String = ""
    ) async throws {
        folder = try TemporaryFolder()
        self.encryption = encryption
        port = try FreePort.next()
        let domain = accounts.first?.domain ?? "localhost"
        let configuration = try folder.write(
            Self.configuration(folder, port, domain, encryption, serverPort, settings, host),
            to: "prosody.cfg.lua"
        )
        for account in accounts {
            let register = try ToolProcess(
                "/usr/bin/prosodyctl",
                ["--root", "--config", configuration, "register", account.user, account.domain, account.password]
            )
            guard try await register.ending() == .exited(0) else {
                throw register.failure("did not register \(account.jid)")
            }
        }
        process = try ToolProcess(TestProgram.prosody.rawValue, ["-F", "--config", configuration])
        try await waitUntilReady()
    }

    /// Its log at debug, for a failure's message.
    package var log: String { folder.read("prosody.log") }

    /// Its stored data of an account: a table of Lua.
    package func storedAccount(_ account: Account) -> String {
        folder.read("\(account.domain)/accounts/\(account.user).dat")
    }

    /// Ends it as an operator would.
    package func stop() async throws {
        let ending = try await process.terminate()
        guard ending == .exited(0) else { throw process.failure("ended with \(ending)\n\(log.suffix(4000))") }
    }

    private func waitUntilReady() async throws {
        let end = ContinuousClock.now + .seconds(60)
        while !FreePort.accepts(port) {
            guard process.isRunning, ContinuousClock.now < end else {
                throw process.failure("does not accept on port \(port)\n\(log.suffix(4000))")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private static func configuration(
        _ folder: TemporaryFolder,
        _ port: UInt16,
        _ domain: String,
        _ encryption: Encryption,
        _ serverPort: UInt16?,
        _ settings: String,
        _ host: String
    ) -> String {
        let security =
            switch encryption {
            case .none:
                """
                modules_disabled = { "tls"\(serverPort == nil ? ", \"s2s\"" : "") }
                c2s_require_encryption = false
                allow_unencrypted_plain_auth = true
                """
            case .startTLS(let pair):
                """
                modules_disabled = { "s2s" }
                c2s_require_encryption = true
                ssl = { key = "\(pair.key)", certificate = "\(pair.certificate)" }
                """
            case .both(let pair, let direct, let version):
                """
                modules_disabled = { "s2s" }
                c2s_require_encryption = true
                ssl = { key = "\(pair.key)", certificate = "\(pair.certificate)"\(
                    version.map { ", protocol = \"tlsv\($0)\"" } ?? "") }
                c2s_direct_tls_ports = { \(direct) }
                """
            case .offered(let pair, let direct):
                """
                modules_disabled = { "s2s" }
                c2s_require_encryption = false
                allow_unencrypted_plain_auth = true
                ssl = { key = "\(pair.key)", certificate = "\(pair.certificate)" }
                c2s_direct_tls_ports = { \(direct) }
                """
            }
        let federation =
            serverPort.map {
                """
                s2s_ports = { \($0) }
                s2s_require_encryption = false
                s2s_secure_auth = false
                """
            } ?? ""
        // As root it would refuse to start; the tests run as whoever runs them.
        return """
            run_as_root = true
            daemonize = false
            pidfile = "\(folder.path(of: "prosody.pid"))"
            data_path = "\(folder.path)"
            storage = "internal"
            authentication = "internal_plain"
            log = { debug = "\(folder.path(of: "prosody.log"))" }
            interfaces = { "127.0.0.1" }
            c2s_ports = { \(port) }
            modules_enabled = {
                "roster", "saslauth", "tls", "disco", "ping", "time", "version", "carbons", "mam", "smacks", "blocklist",
                "offline"\(serverPort == nil ? "" : ", \"dialback\"")
            }
            \(security)
            \(federation)
            \(settings)
            VirtualHost "\(domain)"
            \(host)

            """
    }
}
