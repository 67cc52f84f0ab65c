import Foundation

/// A Prosody server for one test, with a temporary folder, a free port of 127.0.0.1 and the given accounts. It has no
/// federation by default.
///
/// It ends at ``stop()``, or when the last reference is released.
package final class ProsodyServer: Sendable {
    /// The use of TLS on the ports for clients.
    package enum Encryption: Sendable {
        /// Without STARTTLS. PLAIN is offered.
        case none
        /// STARTTLS with this certificate is required first.
        case startTLS(TestCertificate)
        /// STARTTLS is required on the usual port, and direct TLS is available on another. `version` is the only
        /// allowed TLS version, written as `1_2`, if it is not nil.
        case both(TestCertificate, direct: UInt16, version: String? = nil)
        /// STARTTLS is optional on the usual port, and direct TLS is available on another.
        case offered(TestCertificate, direct: UInt16)
    }

    /// The port for clients.
    package let port: UInt16

    private let folder: TemporaryFolder
    /// Keeps the files of the certificate, which are removed with the last reference to it.
    private let encryption: Encryption
    private let process: ToolProcess

    /// Starts a server and waits until it accepts connections.
    ///
    /// - Parameters:
    ///   - encryption: The use of TLS on the ports for clients (default: none).
    ///   - serverPort: The port for other servers, which do not use TLS and prove their domains by dialback; nil
    ///     disables federation.
    ///   - accounts: The accounts to register, all in one domain (default: juliet and romeo).
    ///   - users: The number of further accounts `user0`, `user1` and so on, with the password `secret`.
    ///   - settings: Lines for the global section of the configuration.
    ///   - host: Lines for the section of the domain, and further sections after it: modules, components.
    package init(
        encryption: Encryption = .none,
        serverPort: UInt16? = nil,
        accounts: [Account] = [.juliet, .romeo],
        users: Int = 0,
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
        if users > 0 {
            // Prosody's tool takes a second for each.
            let data = folder.path(of: "\(domain.replacing(".", with: "%2e"))/accounts")
            try FileManager.default.createDirectory(atPath: data, withIntermediateDirectories: true)
            for number in 0..<users {
                _ = try folder.write(
                    "return { [\"password\"] = \"secret\"; };\n",
                    to: "\(domain.replacing(".", with: "%2e"))/accounts/user\(number).dat"
                )
            }
        }
        process = try ToolProcess(TestProgram.prosody.rawValue, ["-F", "--config", configuration])
        try await waitUntilReady()
    }

    /// The debug log, for messages of failures.
    package var log: String { folder.read("prosody.log") }

    /// Returns the stored data of an account: a Lua table.
    package func storedAccount(_ account: Account) -> String {
        folder.read("\(account.domain)/accounts/\(account.user).dat")
    }

    /// Stops the server as an operator would.
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
        // Prosody refuses to run as root by default, but the tests may run as root.
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
