import Foundation

/// An ejabberd server for one test, with a temporary folder and a free port of 127.0.0.1. Without TLS, any account can
/// log in with any password; with TLS, only the given accounts can log in.
///
/// Erlang's distribution is disabled, so that no other processes are started. The server ends at ``stop()``, or when
/// the last reference is released.
package final class EjabberdServer: Sendable {
    /// The port for clients.
    package let port: UInt16
    /// The port for clients with direct TLS; unused if the server has no TLS.
    package let directPort: UInt16

    private let folder: TemporaryFolder
    private let process: ToolProcess

    /// Starts a server for the domain localhost and waits until it accepts connections.
    ///
    /// - Parameters:
    ///   - usesProxyProtocol: Whether each connection has to begin with a PROXY header.
    ///   - secured: The certificate and the accounts of a server with TLS, which requires STARTTLS on one port and uses
    ///     direct TLS on the other; nil for a server without TLS.
    ///   - withoutTLS13: Whether TLS 1.2 is the highest version.
    package init(
        usesProxyProtocol: Bool = false,
        secured: (certificate: TestCertificate, accounts: [Account])? = nil,
        withoutTLS13: Bool = false
    ) async throws {
        folder = try TemporaryFolder()
        port = try FreePort.next()
        directPort = try FreePort.next()
        let libraries = try Self.libraries()
        var authentication = """
            auth_method: [anonymous]
            anonymous_protocol: login_anon
            allow_multiple_connections: true
            """
        var encryption = "starttls: false"
        var direct = ""
        if let (certificate, _) = secured {
            // ejabberd expects the certificate and the key in one file.
            let pair = try [certificate.certificate, certificate.key].map {
                try String(contentsOfFile: $0, encoding: .utf8)
            }
            authentication =
                "auth_method: [internal]\ncertfiles: [\"\(try folder.write(pair.joined(), to: "pair.pem"))\"]"
            let versions = "protocol_options: [\(withoutTLS13 ? "no_tlsv1_3" : "no_sslv3")]"
            encryption = "starttls_required: true\n    \(versions)"
            direct = """

                  -
                    port: \(directPort)
                    ip: "127.0.0.1"
                    module: ejabberd_c2s
                    tls: true
                    \(versions)
                """
        }
        let registrations = (secured?.accounts ?? []).map {
            "ok = ejabberd_auth:try_register(<<\"\($0.user)\">>, <<\"localhost\">>, <<\"\($0.password)\">>)"
        }
        let configuration = try folder.write(
            """
            hosts: [localhost]
            loglevel: info
            \(authentication)
            listen:
              -
                port: \(port)
                ip: "127.0.0.1"
                module: ejabberd_c2s
                use_proxy_protocol: \(usesProxyProtocol)
                \(encryption)\(direct)
            modules:
              mod_roster: {}
              mod_disco: {}
              mod_ping: {}
              mod_offline: {}
              mod_stream_mgmt: {}
              mod_caps: {}
              mod_pubsub:
                plugins: [flat, pep]

            """,
            to: "ejabberd.yml"
        )
        process = try ToolProcess(
            "/usr/bin/erl",
            [
                "-noinput", "-boot", "no_dot_erlang", "-pa", libraries.programs,
                "-mnesia", "dir", "\"\(folder.path(of: "database"))\"",
                "-ejabberd", "config", "\"\(configuration)\"",
                "-ejabberd", "log_path", "\"\(folder.path(of: "ejabberd.log"))\"",
                "-s", "ejabberd",
                // `-eval` must not be empty, so it always prints a line.
                "-eval", (registrations + ["io:format(\"accounts are there~n\")"]).joined(separator: ", ") + ".",
            ],
            environment: ["HOME": folder.path, "ERL_LIBS": libraries.folder]
        )
        let end = ContinuousClock.now + .seconds(60)
        while !log.contains("Start accepting TCP connections")
            || !process.lines(of: .standardOutput).contains("accounts are there")
        {
            guard process.isRunning, ContinuousClock.now < end else {
                throw process.failure("does not accept on port \(port)\n\(log.suffix(4000))")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    /// The complete log so far.
    package var log: String { folder.read("ejabberd.log") }

    /// Waits until the server has logged a text.
    package func wait(for text: String, within limit: Duration = .seconds(10)) async throws {
        let end = ContinuousClock.now + limit
        while !log.contains(text) {
            guard process.isRunning, ContinuousClock.now < end else {
                throw process.failure("did not log \(text):\n\(log.suffix(4000))")
            }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Stops the server with SIGTERM.
    package func stop() async throws { try await process.terminate() }

    /// Returns the folder of Erlang's libraries and that of ejabberd. Debian's paths depend on the processor
    /// architecture.
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
