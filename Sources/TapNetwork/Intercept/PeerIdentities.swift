internal import NIOCore
internal import NIOPosix
internal import TapCore
internal import TapRecord
package import TapSecurity

/// The certificates that xmpptap shows to a server on behalf of another server, so that SASL EXTERNAL can succeed
/// (XEP-0178 §3).
///
/// xmpptap shows a certificate only after it has verified that of the initiating server. Otherwise it shows none, so that
/// the receiving server uses dialback or refuses, as it would without xmpptap.
package struct PeerIdentities: Sendable {
    /// The source of the certificates.
    package enum Source: Sendable {
        /// Issued by xmpptap, with the names and the uses of the initiating server's certificate.
        case minted(CertificateMinter)
        /// The initiating server's own certificate, for that server only.
        case own(TLSIdentity)
    }

    let source: Source
    /// Whether a certificate is shown even if the server's has faults or is missing; for tests only.
    let ignoresFaults: Bool
    /// The certificates shown for receiving servers that could not be verified.
    private let unverified = SelfSignedCertificates()

    /// Creates the parameters.
    package init(_ source: Source, ignoresFaults: Bool = false) {
        self.source = source
        self.ignoresFaults = ignoresFaults
    }

    /// The issuer of the certificates; nil if the initiating server's own one is shown.
    var minter: CertificateMinter? { if case .minted(let minter) = source { minter } else { nil } }

    /// The decision about one server.
    enum Decision {
        case show(EventLoopFuture<ShownCertificate>)
        /// No certificate is shown, for this reason, as a clause.
        case none(String)
    }

    /// Decides which certificate to show.
    ///
    /// - Parameters:
    ///   - name: The domain that the initiating server named in clear; nil if it began with TLS.
    ///   - certificate: The result of requesting its certificate.
    func decide(
        for name: String?,
        _ certificate: ClientCertificate,
        at now: Timestamp,
        on eventLoop: any EventLoop
    ) -> Decision {
        var real: CertificateInfo?
        var uses = CertificateUses.both
        switch certificate {
        case .shown(let info, let shownUses, let faults) where faults.isEmpty || ignoresFaults:
            real = info
            uses = shownUses
        case .shown: return .none("the certificate of the initiating server is not trusted")
        case .none where !ignoresFaults: return .none("the initiating server has shown none")
        case .notRequested where !ignoresFaults: return .none("the initiating server uses no TLS with xmpptap")
        case .none, .notRequested: break
        }
        guard let name = name ?? real?.names.firstDomain else {
            return .none("the initiating server has not named its domain")
        }
        // The certificate was verified for this reference, so the name is not used in another form.
        guard let reference = try? ServerReference(domain: name, service: .servers) else {
            return .none("the initiating server has not named a domain")
        }
        switch source {
        case .own(let identity):
            let own = identity.certificate.names
            guard reference.matches(own) else {
                return .none("the certificate of --upstream-certificate is not for \(name)")
            }
            // Inside TLS, the initiating server can name any domain of the certificate.
            guard real?.names.covers(own) ?? ignoresFaults else {
                return .none(
                    "the certificate of --upstream-certificate is for more names than that of the initiating server"
                )
            }
            return .show(eventLoop.makeSucceededFuture(ShownCertificate(own: identity)))
        case .minted(let minter):
            do throws(AuthorityError) {
                // Only the names that the server has proved, each in its form.
                let subject = CertificateMinter.Subject.unnamed(verified: try CertificateName(name))
                return .show(minter.certificate(for: subject, like: real, uses: uses, at: now, on: eventLoop))
            } catch {
                return .show(eventLoop.makeFailedFuture(IdentityFailure(error, in: minter.folder)))
            }
        }
    }

    /// Returns the certificate that the initiating server sees instead of the one of a receiving server that could not
    /// be verified; nil if the faults are ignored. The initiating server evaluates it as it would the original: some
    /// refuse it, others use dialback.
    func certificate(
        like server: CertificateInfo,
        faults: [CertificateFault],
        on eventLoop: any EventLoop
    ) -> EventLoopFuture<ShownCertificate>? {
        guard !faults.isEmpty, !ignoresFaults else { return nil }
        if let identity = unverified.remembered(like: server) {
            return eventLoop.makeSucceededFuture(ShownCertificate(identity, unverified: faults))
        }
        return NIOThreadPool.singleton.runIfActive(eventLoop: eventLoop) { [unverified] in
            do throws(OpenSSLError) {
                return ShownCertificate(try unverified.certificate(like: server), unverified: faults)
            } catch {
                throw IdentityFailure(code: "no-certificate", message: "\(error)")
            }
        }
    }
}

extension CertificateNames {
    /// Returns whether these names contain all others.
    fileprivate func covers(_ others: CertificateNames) -> Bool {
        func contains(_ names: [String], _ others: [String]) -> Bool {
            Set(names.map { $0.lowercased() }).isSuperset(of: others.map { $0.lowercased() })
        }
        return contains(hosts, others.hosts) && contains(services, others.services) && contains(jids, others.jids)
            && Set(addresses).isSuperset(of: others.addresses)
    }

    /// The first name that is a whole domain; nil if there is none.
    fileprivate var firstDomain: String? {
        hosts.first { !$0.hasPrefix("*") } ?? jids.first { !$0.contains("@") }
    }
}
