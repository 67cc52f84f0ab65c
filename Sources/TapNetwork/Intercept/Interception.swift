internal import NIOCore
internal import NIOPosix
package import TapCore
internal import TapDiagnosis
internal import TapRecord
package import TapSecurity

/// How TLS is ended on both legs, for all sessions of a proxy.
package struct Interception: Sendable {
    /// The source of the certificate for clients.
    package enum Identities: Sendable {
        /// One made for the name that the client asks for, with the names of the server's own.
        case minted(CertificateMinter)
        /// The server's own; sessions whose server shows another one are refused.
        case own(TLSIdentity)
    }

    /// TLS of the server legs.
    package let serverLeg: TLSContext
    /// TLS of the client legs.
    package let clientLeg: TLSContext
    /// The source of the certificate for clients.
    package let identities: Identities
    /// Set when the limit of authorities created on demand was logged: one warning a run.
    let limitWarning = Once()

    /// Interception of these parts.
    package init(serverLeg: TLSContext, clientLeg: TLSContext, identities: Identities) {
        self.serverLeg = serverLeg
        self.clientLeg = clientLeg
        self.identities = identities
    }
}

/// The certificate that a client is shown.
struct ShownCertificate: Sendable {
    let identity: TLSIdentity
    /// The name that the issuing authority may sign for; nil for the server's own certificate.
    var authority: CertificateName?
    /// The authority was made for it.
    var isAuthorityNew = false

    init(_ minted: CertificateMinter.Minted) {
        identity = minted.identity
        authority = minted.authority
        isAuthorityNew = minted.isAuthorityNew
    }

    /// The server's own.
    init(own identity: TLSIdentity) { self.identity = identity }
}

/// The reason why no certificate can be shown to a client.
struct IdentityFailure: Error {
    let code: String
    let words: String
    /// The name that was asked for is one that none may be made for.
    var isForName = false
    /// No further authority is made on demand.
    var isLimit = false
    /// The suggested remedy; nil if ``words`` suffice.
    var remedy: Remedy?
}

extension Interception {
    /// The folder of the CAs that sign; nil if there are none, or only in memory.
    var authorities: AuthorityFolder? {
        if case .minted(let minter) = identities { minter.folder } else { nil }
    }

    /// How long certificates for clients took to issue; nil if none are issued.
    package var mintTimes: DurationHistogram? {
        if case .minted(let minter) = identities { minter.mintTimes } else { nil }
    }

    /// Finds the certificate for a client after the server has shown its own.
    ///
    /// Returned immediately if cached; otherwise issued on NIO's thread pool.
    ///
    /// - Parameters:
    ///   - name: The name that the server was verified for.
    ///   - isNamed: The client has asked for that name.
    func certificate(
        for name: String,
        isNamed: Bool,
        like server: CertificateInfo?,
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
                    words: "the server's certificate differs from the one given to xmpptap: the server's has SHA-256 "
                        + "\(server.fingerprintText), the file's \(own.fingerprintText)",
                    remedy: .giveServerCertificate
                )
            )
        case .minted(let minter):
            let subject: CertificateMinter.Subject
            do throws(AuthorityError) {
                let wanted = try CertificateName(name)
                subject = isNamed ? .named(wanted) : .unnamed(verified: wanted)
            } catch {
                return eventLoop.makeFailedFuture(IdentityFailure(error, in: minter.folder))
            }
            let leaf = server?.der ?? []
            if let minted = minter.remembered(for: subject, mirroring: leaf, at: now) {
                return eventLoop.makeSucceededFuture(ShownCertificate(minted))
            }
            return NIOThreadPool.singleton.runIfActive(eventLoop: eventLoop) {
                do throws(AuthorityError) {
                    return ShownCertificate(try minter.certificate(for: subject, mirroring: leaf, at: now))
                } catch {
                    throw IdentityFailure(error, in: minter.folder)
                }
            }
        }
    }
}

extension IdentityFailure {
    fileprivate init(_ error: AuthorityError, in folder: AuthorityFolder?) {
        code = "no-certificate"
        words = "\(error)"
        remedy = error.remedy(in: folder)
        isForName = error.isUsage
        if case .tooMany = error.code { isLimit = true }
    }
}
