package import TapCore
package import XMPPCore

/// Performs the SASL exchanges of accounts from a file: verifies clients, and logs in to servers.
///
/// Keys derived from a password in the file are computed on first use and cached, because a derivation takes
/// milliseconds. Passwords and keys that clients present are not cached. For an account with stored keys only, the
/// client's login provides the secret for the login to the server: the SCRAM proof yields the client key of that
/// mechanism, PLAIN the password.
package final class AccountStore: Authenticator {
    /// Iteration count offered to clients, the minimum of RFC 7677 §4. A higher count would delay each login, and add
    /// little: an attacker who sees the exchange has already broken TLS.
    private static let iterations = 4096
    /// Bytes of the salts of accounts with a password.
    private static let saltLength = 16

    private let secrets: [JID: AccountsFile.Secret]
    private let cryptography: any Cryptography
    /// Caches the keys of the passwords in the file.
    private let remembering: RememberedKeys
    private let salt: [UInt8]
    private let decoyKey: [UInt8]

    /// Whether the proxy presents a client certificate to servers.
    package let hasCertificate: Bool

    /// Creates a store for these accounts.
    ///
    /// - Throws: Errors of the cryptographic library.
    package init(
        _ accounts: [AccountsFile.Account],
        hasCertificate: Bool = false,
        cryptography: any Cryptography
    ) throws {
        secrets = Dictionary(accounts.map { ($0.jid.bare, $0.secret) }) { first, _ in first }
        self.hasCertificate = hasCertificate
        self.cryptography = cryptography
        remembering = RememberedKeys(cryptography)
        salt = try cryptography.randomBytes(count: 16)
        decoyKey = try cryptography.randomBytes(count: 32)
    }

    /// The mechanisms that can be verified for at least one account.
    package var mechanisms: [String] {
        let all = Set(secrets.values.flatMap(Self.mechanisms))
        return SCRAMMechanism.byPassword.filter(all.contains)
    }

    /// Returns the mechanisms that can be verified for an account; nil if it is unknown.
    package func mechanisms(of account: JID) -> [String]? { secrets[account.bare].map(Self.mechanisms) }

    private static func mechanisms(_ secret: AccountsFile.Secret) -> [String] {
        switch secret {
        case .password: SCRAMMechanism.byPassword
        // A password sent with PLAIN can be compared with any stored key.
        case .keys(let keys): keys.algorithms.map { SCRAMMechanism($0).description } + ["PLAIN"]
        }
    }

    /// Returns the mechanisms with which the proxy can log in to the server.
    package func means(of account: JID, knowing learned: LearnedSecret?) -> [String] {
        switch (secrets[account.bare], learned) {
        case (.password, _), (.keys, .password): SCRAMMechanism.byPassword
        case (.keys, .clientKey(let algorithm, _)): [SCRAMMechanism(algorithm).description]
        case (.keys, nil), (nil, _): []
        }
    }

    /// Creates the server side of a mechanism; nil if it is not supported.
    package func serverExchange(_ mechanism: String, domain: String, _ leg: LoginLeg) -> (any SASLExchange)? {
        if mechanism == "PLAIN" {
            return PlainServer { [self] names, given in
                Self.account(names.authentication, domain).map { isRight(given, of: $0) } ?? false
            }
        }
        guard let scram = SCRAMMechanism(name: mechanism), let nonce = try? SCRAMMechanism.makeNonce(cryptography)
        else {
            return nil
        }
        let settings = SCRAMServer.Settings(
            nonce: nonce,
            // If the offer contains no `-PLUS` mechanism, a client may send the GS2 flag `y`, which fails if there are
            // bindings.
            channelBindings: leg.offer.mechanisms.contains { $0.hasSuffix("-PLUS") } ? leg.bindings : [],
            decoyKey: decoyKey,
            decoy: { [self] in decoy($0, domain, scram.algorithm) },
            offer: leg.offer
        ) { [self] name in
            Self.account(name, domain).flatMap { credentials(of: $0, scram.algorithm) }
        }
        return SCRAMServer(scram, settings: settings, cryptography: cryptography)
    }

    /// Creates the client side of a mechanism; nil if the account or its secret is missing.
    package func clientExchange(
        _ mechanism: String,
        _ identity: SASLIdentity,
        domain: String,
        binding: BindingClaim,
        _ offer: LoginOffer,
        knowing learned: LearnedSecret?
    ) -> (any SASLExchange)? {
        guard let account = Self.account(identity.authentication, domain), let kept = secrets[account] else {
            return nil
        }
        switch mechanism {
        case "PLAIN":
            guard case .password(let password) = Self.secret(kept, learned, nil) else { return nil }
            return PlainClient(identity: identity, password: password)
        case "EXTERNAL":
            guard hasCertificate else { return nil }
            // A certificate can be valid for several accounts, so the authenticated one is named.
            let name = account.normalized.description
            return ExternalClient(identity: .init(authentication: identity.authentication, authorization: name))
        default:
            guard let scram = SCRAMMechanism(name: mechanism), scram.isPlus == (binding.binding != nil),
                let secret = Self.secret(kept, learned, scram.algorithm),
                let nonce = try? SCRAMMechanism.makeNonce(cryptography)
            else { return nil }
            let isOurs = if case .password = kept { true } else { false }
            return SCRAMClient(
                scram,
                identity: identity,
                secret: secret,
                nonce: nonce,
                binding: binding,
                offer: offer,
                cryptography: isOurs ? remembering : cryptography
            )
        }
    }

    private static func account(_ name: String, _ domain: String) -> JID? {
        try? JID(local: name, domain: domain)
    }

    /// Returns the secret for the login to the server: the password from the file or the client, or the key from the
    /// client's proof.
    private static func secret(
        _ kept: AccountsFile.Secret,
        _ learned: LearnedSecret?,
        _ algorithm: HashAlgorithm?
    ) -> SCRAMClient.Secret? {
        switch (kept, learned) {
        case (.password(let password), _), (.keys, .password(let password)): return .password(password)
        case (.keys(let keys), .clientKey(let own, let key)):
            guard own == algorithm, let stored = keys.records[own] else { return nil }
            return .key(key, of: stored)
        case (.keys, nil): return nil
        }
    }

    /// Returns whether a password from a client is correct; it must be prepared by SASLprep.
    private func isRight(_ given: String, of account: JID) -> Bool {
        switch secrets[account] {
        case nil: return false
        case .password(let password):
            guard let prepared = SASLprep.prepare(password) else { return false }
            return cryptography.areEqual(Array(given.utf8), Array(prepared.utf8))
        case .keys(let keys):
            return keys.cheapest.map { $0.record.match(given, $0.algorithm, cryptography) } ?? false
        }
    }

    /// Returns the decoy for an unknown account. It resembles an account of the file, which a keyed hash of the unknown
    /// name selects.
    private func decoy(_ name: String, _ domain: String, _ algorithm: HashAlgorithm) -> SCRAMServer.Decoy {
        let account = Self.account(name, domain)?.normalized.description ?? name
        let known = secrets.values.compactMap { secret -> (salt: Int, iterations: Int)? in
            switch secret {
            case .password: (Self.saltLength, Self.iterations)
            case .keys(let keys): keys.records[algorithm].map { ($0.salt.count, $0.iterations) }
            }
        }
        .sorted { $0 < $1 }
        let hash = try? cryptography.hmac(.sha256, key: decoyKey, of: Array("decoy \(account)".utf8))
        guard !known.isEmpty, let hash else {
            return .init(account: account, saltLength: Self.saltLength, iterations: Self.iterations)
        }
        let number = hash.prefix(7).reduce(0) { $0 << 8 | Int($1) }
        let chosen = known[number % known.count]
        return .init(account: account, saltLength: chosen.salt, iterations: chosen.iterations)
    }

    private func credentials(of account: JID, _ algorithm: HashAlgorithm) -> SCRAMCredentials? {
        let password: String
        switch secrets[account] {
        case nil: return nil
        case .keys(let keys): return keys.records[algorithm]
        case .password(let text): password = text
        }
        let salt =
            (try? cryptography.hmac(.sha256, key: self.salt, of: Array(account.normalized.description.utf8))) ?? salt
        return try? SCRAMCredentials(
            algorithm,
            password: password,
            salt: Array(salt.prefix(Self.saltLength)),
            iterations: Self.iterations,
            cryptography: remembering
        )
    }
}
