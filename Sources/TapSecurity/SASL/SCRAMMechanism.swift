public import TapCore
internal import TapRecord

/// A member of the SCRAM family (RFC 5802, RFC 7677): a hash, with or without channel binding.
public struct SCRAMMechanism: Hashable, Sendable, CustomStringConvertible {
    /// The hash everything is made of.
    public let algorithm: HashAlgorithm
    /// Whether the TLS connection is bound in: the `-PLUS` form.
    public let isPlus: Bool

    /// The mechanisms that a password is enough for, without their `-PLUS`, the strongest first.
    public static let byPassword =
        HashAlgorithm.byStrength.map { SCRAMMechanism($0).description } + ["PLAIN"]

    /// Names a member of the family.
    public init(_ algorithm: HashAlgorithm, isPlus: Bool = false) {
        self.algorithm = algorithm
        self.isPlus = isPlus
    }

    /// Finds the member by its registered name, or `nil` if this is none of them.
    public init?(name: String) {
        let plus = "-PLUS"
        let isPlus = name.hasSuffix(plus)
        let base = isPlus ? String(name.dropLast(plus.count)) : name
        guard let algorithm = HashAlgorithm.allCases.first(where: { "SCRAM-\($0.rawValue)" == base }) else {
            return nil
        }
        self.init(algorithm, isPlus: isPlus)
    }

    /// A fresh nonce of 24 characters.
    ///
    /// - Throws: What the cryptographic library reports.
    public static func makeNonce(_ cryptography: any Cryptography) throws -> String {
        Base64.encode(try cryptography.randomBytes(count: 18))
    }

    /// The registered name.
    public var description: String { "SCRAM-\(self.algorithm.rawValue)\(self.isPlus ? "-PLUS" : "")" }
}

/// What a server keeps of a password (RFC 5802 §3): enough to check it and to prove itself, not enough to log in.
///
/// With a recorded exchange it is enough to log in; treat it as a secret.
public struct SCRAMCredentials: Hashable, Sendable {
    /// The account's salt.
    public let salt: [UInt8]
    /// How often the password was hashed.
    public let iterations: Int
    /// `H(ClientKey)`: checks the client's proof.
    public let storedKey: [UInt8]
    /// `ServerKey`: signs the server's answer.
    public let serverKey: [UInt8]

    /// Takes values that were computed before.
    public init(salt: [UInt8], iterations: Int, storedKey: [UInt8], serverKey: [UInt8]) {
        self.salt = salt
        self.iterations = iterations
        self.storedKey = storedKey
        self.serverKey = serverKey
    }

    /// Computes what to keep of a password.
    ///
    /// - Parameters:
    ///   - password: In clear; prepared by SASLprep here, and taken as it is where SASLprep refuses it.
    ///   - iterations: 4096 at least, says RFC 7677 §4; more takes longer at every login.
    /// - Throws: What the cryptographic library reports.
    public init(
        _ algorithm: HashAlgorithm,
        password: String,
        salt: [UInt8],
        iterations: Int = 4096,
        cryptography: any Cryptography
    ) throws {
        let keys = try SCRAMKeys(
            algorithm,
            password: SASLprep.prepare(password) ?? password,
            salt: salt,
            iterations: iterations,
            cryptography: cryptography
        )
        self.init(
            salt: salt,
            iterations: iterations,
            storedKey: try cryptography.digest(algorithm, of: keys.clientKey),
            serverKey: keys.serverKey
        )
    }

    /// Whether these were made of a password, by this hash.
    public func match(_ password: String, _ algorithm: HashAlgorithm, _ cryptography: any Cryptography) -> Bool {
        let given = try? SCRAMCredentials(
            algorithm,
            password: password,
            salt: salt,
            iterations: iterations,
            cryptography: cryptography
        )
        return given.map { cryptography.areEqual($0.storedKey, storedKey) } ?? false
    }
}

/// The keys a password gives (RFC 5802 §3).
struct SCRAMKeys {
    let clientKey: [UInt8]
    let serverKey: [UInt8]
}

extension SCRAMKeys {
    init(
        _ algorithm: HashAlgorithm,
        password: String,
        salt: [UInt8],
        iterations: Int,
        cryptography: any Cryptography
    ) throws {
        let salted = try cryptography.deriveKey(
            algorithm,
            password: Array(password.utf8),
            salt: salt,
            iterations: iterations
        )
        clientKey = try cryptography.hmac(algorithm, key: salted, of: Array("Client Key".utf8))
        self.serverKey = try cryptography.hmac(algorithm, key: salted, of: Array("Server Key".utf8))
    }
}

/// `left XOR right`; both have the length of the hash.
func exclusiveOr(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
    zip(left, right).map { $0 ^ $1 }
}

extension HashAlgorithm {
    /// The strongest first.
    static let byStrength: [HashAlgorithm] = [.sha512, .sha256, .sha1]
}
