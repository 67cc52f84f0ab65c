internal import NIOCore
internal import NIOPosix
internal import TapNetwork
internal import TapRecord
internal import TapSecurity

/// The built-in server, running on a free port of loopback.
struct EphemeralServer {
    /// Where it listens.
    let endpoint: Endpoint
    /// Who can log in.
    let accounts: [ServerSettings.Account]
    /// Their domain.
    let domain: String

    /// What vouches for it; nil where it has no TLS.
    let authority: EphemeralAuthority?

    private let server: BuiltInServer

    /// Starts it, with two accounts whose passwords are made at random.
    ///
    /// - Parameters:
    ///   - time: When its certificate begins to be valid; nil is a server without TLS.
    ///   - allowsRegistration: whether clients may make accounts of their own. Not where other machines are let in: who
    ///     has been told no password is to have no account.
    static func start(
        _ cryptography: OpenSSLCryptography,
        securedFrom time: Timestamp?,
        allowsRegistration: Bool = true
    ) async throws -> EphemeralServer {
        var authority: EphemeralAuthority?
        do {
            var settings = try ServerSettings.demo(softwareVersion: Version.program, cryptography: cryptography)
            settings.allowsRegistration = allowsRegistration
            if let time { authority = try EphemeralAuthority(settings.domain, at: time) }
            let server = try await BuiltInServer.start(
                port: 0,
                settings: settings,
                identity: authority?.identity,
                cryptography: cryptography,
                group: MultiThreadedEventLoopGroup.singleton
            )
            guard let port = server.address?.port else { throw Failure.network("the built-in server has no port") }
            let endpoint = Endpoint(host: "127.0.0.1", port: port)
            return EphemeralServer(
                endpoint: endpoint,
                accounts: settings.accounts,
                domain: settings.domain,
                authority: authority,
                server: server
            )
        } catch let failure as Failure {
            authority?.remove()
            throw failure
        } catch {
            authority?.remove()
            throw Failure.network("the built-in server cannot be started: \(error); see 'xmpptap doctor'")
        }
    }

    /// Ends it.
    func stop() async {
        try? await server.stop()
        authority?.remove()
    }

    /// What a user needs to log in through the proxy that listens at `endpoint`.
    func welcome(at endpoint: Endpoint) -> [String] {
        let width = accounts.map(\.name.count).max() ?? 0
        let people = accounts.map { account in
            let padding = String(repeating: " ", count: width - account.name.count)
            return "  \(account.name)@\(domain)\(padding)  password \(account.password)"
        }
        let host =
            switch endpoint.host {
            case "127.0.0.1", "::1": "localhost"
            // Every address of this machine, none of which a client can be told.
            case "0.0.0.0", "::": "this machine's address,"
            default: endpoint.host
            }
        let first = accounts.first.map { "\($0.name)@\(domain)" } ?? domain
        let tls = authority == nil ? ", without TLS," : ""
        let trust = authority.map {
            ["for TLS the client has to trust \($0.certificatePath), which is gone when this program ends"]
        }
        return ["no --upstream: the built-in server serves clients\(tls) with these accounts:"] + people + [
            "point the client at \(host) port \(endpoint.port); its JID stays \(first)"
        ] + (trust ?? [])
    }
}
