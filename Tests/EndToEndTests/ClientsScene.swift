import Foundation
import TapTestKit

/// A real server with a chosen TLS version and three accounts, and an exported authority that the clients are
/// configured to trust, as a user would do it.
struct ClientsScene {
    /// The available servers.
    enum Kind: String, CaseIterable, Sendable { case prosody, ejabberd }

    /// How a client starts TLS.
    enum Way: String, CaseIterable, Sendable {
        case startTLS
        case direct
    }

    /// The proxy's treatment of channel binding.
    enum Binding { case keep, accounts, strip }

    private enum Server {
        case prosody(ProsodyServer, direct: UInt16)
        case ejabberd(EjabberdServer)
    }

    static let nurse = Account("nurse", password: "Angelica-1597")
    static let accounts = [Account.juliet, .romeo, nurse]

    /// The path of the output of `xmpptap ca export`, which is all that the clients trust.
    let trusted: String
    private let server: Server
    private let certificate: TestCertificate
    private let authority: InterceptAuthority
    private let folder: TemporaryFolder

    /// - Parameter version: The highest TLS version that the server supports: `1.2` or `1.3`.
    init(_ kind: Kind, version: String) async throws {
        certificate = try await TestCertificate()
        authority = try await InterceptAuthority()
        folder = try TemporaryFolder()
        let export = try await XMPPTapBinary.run(["ca", "export"] + authority.arguments.suffix(2))
        guard export.ending == .exited(0) else { throw KitError("no export: \(export.error)") }
        trusted = try folder.write(export.output, to: "exported.pem")
        switch kind {
        case .prosody:
            let direct = try FreePort.next()
            let version = version.replacing(".", with: "_")
            server = .prosody(
                try await ProsodyServer(
                    encryption: .both(certificate, direct: direct, version: version),
                    accounts: Self.accounts,
                    host: "modules_enabled = { \"pep\" }"
                ),
                direct: direct
            )
        case .ejabberd:
            server = .ejabberd(
                try await EjabberdServer(
                    secured: (certificate, Self.accounts),
                    withoutTLS13: version == "1.2"
                )
            )
        }
    }

    /// Starts a proxy in front of the server's port for STARTTLS or direct TLS.
    ///
    /// - Parameters:
    ///   - port: The port on which the proxy listens; 0 chooses a free port.
    ///   - flag: The flag that opens the listener.
    ///   - arguments: Additional arguments for the proxy.
    ///   - environment: Additional environment variables.
    func tap(
        _ way: Way,
        _ binding: Binding,
        port own: UInt16 = 0,
        flag: String = "--listen",
        arguments further: [String] = [],
        environment: [String: String] = [:]
    ) async throws -> Tap {
        var arguments = authority.arguments + ["--upstream-ca", certificate.certificate] + further
        switch binding {
        case .keep: break
        case .strip: arguments += ["--channel-binding", "strip"]
        case .accounts:
            for account in Self.accounts { try folder.write("\(account.password)\n", to: account.user) }
            let lines = Self.accounts.map { "\($0.jid) \($0.user)\n" }
            arguments += ["--accounts", try folder.write(lines.joined(), to: "accounts")]
        }
        return try await Tap(
            listen: ["127.0.0.1:\(own)=127.0.0.1:\(port(way))"],
            flag: flag,
            arguments: arguments,
            environment: environment
        )
    }

    /// Returns the server's own port for STARTTLS or direct TLS.
    func port(_ way: Way) -> UInt16 {
        switch (server, way) {
        case (.prosody(let server, _), .startTLS): server.port
        case (.prosody(_, let direct), .direct): direct
        case (.ejabberd(let server), .startTLS): server.port
        case (.ejabberd(let server), .direct): server.directPort
        }
    }

    /// The server's log.
    var log: String {
        switch server {
        case .prosody(let server, _): server.log
        case .ejabberd(let server): server.log
        }
    }

    func stop() async throws {
        switch server {
        case .prosody(let server, _): try await server.stop()
        case .ejabberd(let server): try await server.stop()
        }
    }

    // MARK: Clients

    /// Starts a client that runs the script.
    func client(
        _ program: ScriptedClient.Program,
        _ account: Account,
        _ tap: Tap,
        _ way: Way,
        _ script: ScriptedClient.Script = .init(),
        _ options: [String] = []
    ) throws -> ScriptedClient {
        try ScriptedClient(
            program,
            as: account,
            port: tap.port,
            startTLS: true,
            script,
            options: ["--ca", trusted] + (way == .direct ? ["--direct"] : []) + options
        )
    }

    func goSendxmpp(_ account: Account, _ tap: Tap, _ way: Way, send body: String, to other: Account) throws
        -> GoSendxmpp
    {
        try GoSendxmpp(
            as: account,
            port: tap.port,
            trusting: trusted,
            direct: way == .direct,
            send: body,
            to: other
        )
    }

    func goSendxmpp(listeningAs account: Account, _ tap: Tap, _ way: Way) throws -> GoSendxmpp {
        try GoSendxmpp(listeningAs: account, port: tap.port, trusting: trusted, direct: way == .direct)
    }
}
