public import TapCore
public import XMPPCore

/// Ends the logins of the accounts of a file, by this program's SASL mechanisms.
///
/// What is derived from a password is computed when it is first needed, and then remembered: it takes some milliseconds.
public final class AccountDesk: LoginDesk {
    /// How often passwords are hashed for clients, the least that RFC 7677 §4 allows: who can attack what is sent there has
    /// ended TLS already, and each login waits for it.
    private static let iterations = 4096

    /// How often a server may have a password hashed: at the first login with a salt the event loop waits meanwhile, 200,000
    /// times for some 100 ms. Servers ask for 4,096 to 100,000.
    private static let mostIterations = 200_000

    private let passwords: [JID: String]
    private let cryptography: any Cryptography
    private let salt: [UInt8]
    private let decoyKey: [UInt8]

    /// Whether the proxy shows servers a certificate.
    public let hasCertificate: Bool

    /// A desk for these accounts.
    ///
    /// - Throws: What the cryptographic library reports.
    public init(
        _ accounts: [AccountsFile.Account],
        hasCertificate: Bool = false,
        cryptography: any Cryptography
    ) throws {
        passwords = Dictionary(accounts.map { ($0.jid.bare, $0.password) }) { first, _ in first }
        self.hasCertificate = hasCertificate
        self.cryptography = RememberedKeys(cryptography)
        salt = try cryptography.randomBytes(count: 16)
        decoyKey = try cryptography.randomBytes(count: 32)
    }

    /// What it can do on both sides.
    public var mechanisms: [String] { SCRAMMechanism.byPassword }

    /// Whether it has the account's password.
    public func knows(_ account: JID) -> Bool { passwords[account.bare] != nil }

    /// The server's side of a mechanism.
    public func serverExchange(_ mechanism: String, domain: String, _ leg: LoginLeg) -> (any SASLExchange)? {
        if mechanism == "PLAIN" {
            return PlainServer { [self] names, given in
                guard let account = Self.account(names.authentication, domain), let password = passwords[account],
                    let prepared = SASLprep.prepare(password)
                else { return false }
                return cryptography.areEqual(Array(given.utf8), Array(prepared.utf8))
            }
        }
        guard let scram = SCRAMMechanism(name: mechanism), let nonce = try? SCRAMMechanism.makeNonce(cryptography)
        else {
            return nil
        }
        let settings = SCRAMServer.Settings(
            nonce: nonce,
            // A client may deny that there is channel binding where it was not offered any.
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
        _ offer: LoginOffer
    ) -> (any SASLExchange)? {
        guard let account = Self.account(identity.authentication, domain), let password = passwords[account] else {
            return nil
        }
        switch mechanism {
        case "PLAIN": return PlainClient(identity: identity, password: password)
        case "EXTERNAL":
            guard hasCertificate else { return nil }
            // A certificate may stand for several accounts: it acts for the one that was proven, whoever else is named.
            let name = account.normalized.description
            return ExternalClient(identity: .init(authentication: identity.authentication, authorization: name))
        default:
            guard let scram = SCRAMMechanism(name: mechanism), scram.isPlus == (binding.binding != nil),
                let nonce = try? SCRAMMechanism.makeNonce(cryptography)
            else { return nil }
            return SCRAMClient(
                scram,
                identity: identity,
                password: password,
                nonce: nonce,
                binding: binding,
                offer: offer,
                mostIterations: Self.mostIterations,
                cryptography: cryptography
            )
        }
    }

    private static func account(_ name: String, _ domain: String) -> JID? {
        try? JID(local: name, domain: domain)
    }

    private func credentials(of account: JID, _ algorithm: HashAlgorithm) -> SCRAMCredentials? {
        guard let password = passwords[account] else { return nil }
        let salt =
            (try? cryptography.hmac(.sha256, key: self.salt, of: Array(account.normalized.description.utf8))) ?? salt
        return try? SCRAMCredentials(
            algorithm,
            password: password,
            salt: Array(salt.prefix(16)),
            iterations: Self.iterations,
            cryptography: cryptography
        )
    }
}
