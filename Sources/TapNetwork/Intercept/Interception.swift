internal import NIOCore
internal import NIOPosix
internal import TapCore
public import TapSecurity

/// How TLS is ended on both legs, for all sessions of a proxy.
public struct Interception: Sendable {
    /// Whose certificate clients are shown.
    public enum Identities: Sendable {
        /// One made for the name that the client asks for, with the names of the server's own.
        case minted(CertificateMinter)
        /// The server's own; sessions whose server shows another one are refused.
        case own(TLSIdentity)
    }

    /// TLS of the server legs.
    public let serverLeg: TLSContext
    /// TLS of the client legs.
    public let clientLeg: TLSContext
    /// Whose certificate clients are shown.
    public let identities: Identities

    /// Interception of these parts.
    public init(serverLeg: TLSContext, clientLeg: TLSContext, identities: Identities) {
        self.serverLeg = serverLeg
        self.clientLeg = clientLeg
        self.identities = identities
    }
}

/// Why there is no certificate to show to a client.
struct IdentityFailure: Error {
    let code: String
    let words: String
    /// The name that was asked for is one that none may be made for.
    var isForName = false
}

extension Interception {
    /// The identity for a client that asks for a name, whose server has shown this certificate.
    ///
    /// Given at once where it is at hand; a certificate that has to be made is made on NIO's thread pool.
    func identity(
        for name: String,
        like server: CertificateFacts?,
        at now: Timestamp,
        on eventLoop: any EventLoop
    ) -> EventLoopFuture<TLSIdentity> {
        switch identities {
        case .own(let identity):
            let own = identity.certificate
            guard let server, server.fingerprint != own.fingerprint else {
                return eventLoop.makeSucceededFuture(identity)
            }
            return eventLoop.makeFailedFuture(
                IdentityFailure(
                    code: "certificate-differs",
                    words: "--certificate is not the certificate that the server shows: the server's has SHA-256 "
                        + "\(server.fingerprintText), the file's \(own.fingerprintText)"
                )
            )
        case .minted(let minter):
            let wanted: CertificateName
            do throws(AuthorityError) {
                wanted = try CertificateName(name)
            } catch {
                return eventLoop.makeFailedFuture(
                    IdentityFailure(code: "no-certificate", words: error.description, isForName: true)
                )
            }
            let leaf = server?.der ?? []
            if let identity = minter.remembered(for: wanted, mirroring: leaf, at: now) {
                return eventLoop.makeSucceededFuture(identity)
            }
            return NIOThreadPool.singleton.runIfActive(eventLoop: eventLoop) {
                do throws(AuthorityError) {
                    return try minter.identity(for: wanted, mirroring: leaf, at: now)
                } catch {
                    throw IdentityFailure(
                        code: "no-certificate",
                        words: error.description,
                        isForName: error.isUsage
                    )
                }
            }
        }
    }
}
