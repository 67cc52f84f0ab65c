internal import NIOCore
internal import NIOPosix
internal import TapNetwork
internal import TapRecord
internal import TapSecurity

/// The built-in server, on a free loopback port.
struct EphemeralServer {
    let endpoint: Endpoint
    let accounts: [ServerSettings.Account]
    let domain: String

    /// The CA of the server; nil without TLS.
    let authority: EphemeralAuthority?

    private let server: BuiltInServer

    /// Starts the server, with two accounts and random passwords.
    ///
    /// - Parameters:
    ///   - time: The time from which the certificate is valid; nil for a server without TLS.
    ///   - allowsRegistration: Whether clients may register accounts; false if other machines can reach the server.
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
            throw Failure.network("cannot start the built-in server: \(error); see 'xmpptap doctor'")
        }
    }

    func stop() async {
        try? await server.stop()
        authority?.remove()
    }

    /// Returns instructions for logging in through the proxy that listens at `endpoint`.
    func welcome(at endpoint: Endpoint) -> [String] {
        let width = accounts.map(\.name.count).max() ?? 0
        let people = accounts.map { account in
            let padding = String(repeating: " ", count: width - account.name.count)
            return "  \(account.name)@\(domain)\(padding)  password \(account.password)"
        }
        let first = accounts.first.map { "\($0.name)@\(domain)" } ?? domain
        let tls = authority == nil ? ", without TLS," : ""
        let trust = authority.map {
            ["for TLS the client must trust \($0.certificatePath), which is deleted when xmpptap ends"]
        }
        return ["no --upstream: connecting clients to the built-in server\(tls) with these accounts:"] + people + [
            "point the client at \(endpoint.hostForClients) port \(endpoint.port); its JID stays \(first)"
        ] + (trust ?? [])
    }
}
