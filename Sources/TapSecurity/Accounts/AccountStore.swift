public import TapCore
public import XMPPCore

/// Ends the logins of the accounts of a file, by this program's SASL mechanisms.
///
/// What is derived from a password of the file is computed when it is first needed, and then remembered: it takes some
/// milliseconds. What clients show is not kept. Of an account with stored keys alone, the client's own login gives what it
/// takes to log in to the server: its proof by SCRAM the key of that mechanism, PLAIN the password.
public final class AccountStore: Authenticator {
    /// How often passwords are hashed for clients, the least that RFC 7677 §4 allows: who can attack what is sent there has
    /// ended TLS already, and each login waits for it.
    private static let iterations = 4096

    private let secrets: [JID: AccountsFile.Secret]
    private let cryptography: any Cryptography
    /// For the passwords of the file.
    private let remembering: RememberedKeys
    private let salt: [UInt8]
    private let decoyKey: [UInt8]

    /// Whether the proxy shows servers a certificate.
    public let hasCertificate: Bool

    /// A store for these accounts.
    ///
    /// - Throws: What the cryptographic library reports.
    public init(
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

    /// What it can check of at least one of its accounts.
    public var mechanisms: [String] {
        let all = Set(secrets.values.flatMap(Self.mechanisms))
        return SCRAMMechanism.byPassword.filter(all.contains)
    }

    /// What it can check of an account.
    public func mechanisms(of account: JID) -> [String]? { secrets[account.bare].map(Self.mechanisms) }

    private static func mechanisms(_ secret: AccountsFile.Secret) -> [String] {
        switch secret {
        case .password: SCRAMMechanism.byPassword
        // A password that is shown can be compared with any of them.
        case .keys(let keys): keys.algorithms.map { SCRAMMechanism($0).description } + ["PLAIN"]
        }
    }

    /// By what it can log in to the server.
    public func means(of account: JID, knowing learned: LearnedSecret?) -> [String] {
        switch (secrets[account.bare], learned) {
        case (.password, _), (.keys, .password): SCRAMMechanism.byPassword
        case (.keys, .clientKey(let algorithm, _)): [SCRAMMechanism(algorithm).description]
        case (.keys, nil), (nil, _): []
        }
    }

    /// The server's side of a mechanism.
    public func serverExchange(_ mechanism: String, domain: String, _ leg: LoginLeg) -> (any SASLExchange)? {
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
            // A client may send the gs2 flag y if it was offered no channel binding.
            channelBindings: leg.offer.mechanisms.contains { $0.hasSuffix("-PLUS") } ? leg.bindings : [],
            decoyKey: decoyKey,
            decoyIterations: Self.iterations,
            offer: leg.offer
        ) { [self] name in
            Self.account(name, domain).flatMap { credentials(of: $0, scram.algorithm) }
        }
        return SCRAMServer(scram, settings: settings, cryptography: cryptography)
    }

    /// The client's side of a mechanism.
    public func clientExchange(
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
            // A certificate can be for several accounts: the login is for the authenticated one.
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

    /// By what the proxy logs in: the password, the file's or the client's, or the key that the client's proof gave away.
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

    /// Whether a password that the client has shown is the account's; it is prepared by SASLprep.
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
            salt: Array(salt.prefix(16)),
            iterations: Self.iterations,
            cryptography: remembering
        )
    }
}
