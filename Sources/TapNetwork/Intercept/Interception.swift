internal import NIOCore
internal import NIOPosix
package import TapCore
internal import TapDiagnosis
internal import TapRecord
package import TapSecurity

/// How xmpptap terminates TLS on both legs, for all sessions of a proxy.
package struct Interception: Sendable {
    /// The source of the certificate shown to clients.
    package enum Identities: Sendable {
        /// Issued by xmpptap for the name that the client asks for, with the names of the server's certificate.
        case minted(CertificateMinter)
        /// The server's own certificate; the session is refused if the server shows another one.
        case own(TLSIdentity)
    }

    /// TLS context of the server legs.
    package let serverLeg: TLSContext
    /// TLS context of the client legs.
    package let clientLeg: TLSContext
    /// The source of the certificate shown to clients.
    package let identities: Identities
    /// The certificates shown to servers that request one, on behalf of other servers; nil if clients connect.
    package let peers: PeerIdentities?
    /// Ensures that the limit of authorities created on demand is logged once per run.
    let limitWarning = Once()

    /// Creates the parameters of interception.
    package init(
        serverLeg: TLSContext,
        clientLeg: TLSContext,
        identities: Identities,
        peers: PeerIdentities? = nil
    ) {
        self.serverLeg = serverLeg
        self.clientLeg = clientLeg
        self.identities = identities
        self.peers = peers
    }

    /// The peers that connect to xmpptap.
    var service: ServerReference.Service { peers == nil ? .clients : .servers }
}

/// A certificate shown to a client, or to a server on behalf of another one.
struct ShownCertificate: Sendable {
    let identity: TLSIdentity
    /// The name that the issuing authority may sign for; nil for the server's own certificate.
    var authority: CertificateName?
    /// Whether the authority was created for this certificate.
    var isAuthorityNew = false

    init(_ minted: CertificateMinter.Minted) {
        identity = minted.identity
        authority = minted.authority
        isAuthorityNew = minted.isAuthorityNew
    }

    /// The faults of the original, if it could not be verified and this is its replacement.
    var faults: [CertificateFault] = []

    /// Creates the entry for the server's own certificate.
    init(own identity: TLSIdentity) { self.identity = identity }

    /// Creates the entry for the replacement of a certificate with faults.
    init(_ identity: TLSIdentity, unverified faults: [CertificateFault]) {
        self.identity = identity
        self.faults = faults
    }
}

/// The reason why no certificate can be shown.
struct IdentityFailure: Error {
    let code: String
    let message: String
    /// Whether no certificate may be issued for the requested name.
    var isForName = false
    /// Whether the limit of authorities created on demand is reached.
    var isLimit = false
    /// The suggested remedy; nil if ``message`` is sufficient.
    var remedy: Remedy?
}

extension Interception {
    /// The folder of the signing CAs; nil if there are none, or if they exist only in memory.
    var authorities: AuthorityFolder? {
        if case .minted(let minter) = identities { minter.folder } else { peers?.minter?.folder }
    }

    /// Returns the description of an authority that a client has to trust.
    func trust(_ authority: CertificateName) -> Remedy.AuthorityTrust {
        Remedy.AuthorityTrust(
            domain: "\(authority)",
            folder: authorities.flatMap { $0.isUsual ? nil : $0.path },
            certificate: authorities?.certificatePath(of: authority)
        )
    }

    /// The time needed to issue certificates for clients; nil if none are issued.
    package var mintTimes: DurationHistogram? {
        if case .minted(let minter) = identities { minter.mintTimes } else { nil }
    }

    /// Returns the certificate for a client, after the server has shown its own.
    ///
    /// The future completes immediately if the certificate is cached; otherwise it is issued on NIO's thread pool.
    ///
    /// - Parameters:
    ///   - name: The name for which the server was verified.
    ///   - isNamed: Whether the client asked for this name.
    ///   - server: The server's certificate; nil if the server has no TLS.
    ///   - faults: The faults of the server's certificate that were ignored.
    func certificate(
        for name: String,
        isNamed: Bool,
        like server: CertificateInfo?,
        faults: [CertificateFault] = [],
        at now: Timestamp,
        on eventLoop: any EventLoop
    ) -> EventLoopFuture<ShownCertificate> {
        switch identities {
        case .own(let identity):
            let own = identity.certificate
            guard let server, server.fingerprint != own.fingerprint else {
                return eventLoop.makeSucceededFuture(ShownCertificate(own: identity))
            }
            return eventLoop.makeFailedFuture(
                IdentityFailure(
                    code: "certificate-differs",
                    message: "the server's certificate differs from the one given to xmpptap: the server's has SHA-256 "
                        + "\(server.fingerprintText), the file's \(own.fingerprintText)",
                    remedy: .giveServerCertificate
                )
            )
        case .minted(let minter):
            if let server, let future = peers?.certificate(like: server, faults: faults, on: eventLoop) {
                return future
            }
            let subject: CertificateMinter.Subject
            do throws(AuthorityError) {
                let wanted = try CertificateName(name)
                subject = isNamed ? .named(wanted) : .unnamed(verified: wanted)
            } catch {
                return eventLoop.makeFailedFuture(IdentityFailure(error, in: minter.folder))
            }
            return minter.certificate(for: subject, like: server, uses: .server, at: now, on: eventLoop)
        }
    }
}

extension CertificateMinter {
    /// Returns the certificate with the names of another one. The future completes immediately if the certificate is
    /// cached; otherwise it is issued on NIO's thread pool. It fails with ``IdentityFailure``.
    func certificate(
        for subject: Subject,
        like real: CertificateInfo?,
        uses: CertificateUses,
        at now: Timestamp,
        on eventLoop: any EventLoop
    ) -> EventLoopFuture<ShownCertificate> {
        let leaf = real?.der ?? []
        if let minted = remembered(for: subject, mirroring: leaf, uses: uses, at: now) {
            return eventLoop.makeSucceededFuture(ShownCertificate(minted))
        }
        return NIOThreadPool.singleton.runIfActive(eventLoop: eventLoop) {
            do throws(AuthorityError) {
                return ShownCertificate(try self.certificate(for: subject, mirroring: leaf, uses: uses, at: now))
            } catch {
                throw IdentityFailure(error, in: self.folder)
            }
        }
    }
}

extension IdentityFailure {
    init(_ error: AuthorityError, in folder: AuthorityFolder?) {
        code = "no-certificate"
        message = "\(error)"
        remedy = error.remedy(in: folder)
        isForName = error.isUsage
        if case .tooMany = error.code { isLimit = true }
    }
}
