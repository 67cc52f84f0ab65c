package import TapCore
internal import TapRecord

/// A member of the SCRAM family (RFC 5802, RFC 7677): a hash, with or without channel binding.
package struct SCRAMMechanism: Hashable, Sendable, CustomStringConvertible {
    /// The hash algorithm.
    package let algorithm: HashAlgorithm
    /// Whether the login is bound to the TLS connection: the `-PLUS` variant.
    package let isPlus: Bool

    /// The mechanisms for which a password suffices, without `-PLUS`, strongest first.
    package static let byPassword =
        HashAlgorithm.byStrength.map { SCRAMMechanism($0).description } + ["PLAIN"]

    package init(_ algorithm: HashAlgorithm, isPlus: Bool = false) {
        self.algorithm = algorithm
        self.isPlus = isPlus
    }

    /// Creates the mechanism with this registered name; nil if it is not a SCRAM mechanism.
    package init?(name: String) {
        let plus = "-PLUS"
        let isPlus = name.hasSuffix(plus)
        let base = isPlus ? String(name.dropLast(plus.count)) : name
        guard let algorithm = HashAlgorithm.allCases.first(where: { "SCRAM-\($0.rawValue)" == base }) else {
            return nil
        }
        self.init(algorithm, isPlus: isPlus)
    }

    /// Returns a new nonce of 24 characters.
    ///
    /// - Throws: Errors of the cryptographic library.
    package static func makeNonce(_ cryptography: any Cryptography) throws -> String {
        Base64.encode(try cryptography.randomBytes(count: 18))
    }

    /// The registered name.
    package var description: String { "SCRAM-\(self.algorithm.rawValue)\(self.isPlus ? "-PLUS" : "")" }
}

/// The keys that a server stores for a password (RFC 5802 §3): enough to verify it and to authenticate the server.
///
/// Together with a recorded exchange they suffice to log in; treat them as a secret.
package struct SCRAMCredentials: Hashable, Sendable {
    /// The account's salt.
    package let salt: [UInt8]
    /// The iteration count.
    package let iterations: Int
    /// `H(ClientKey)`, which verifies the client's proof.
    package let storedKey: [UInt8]
    /// `ServerKey`, which signs the server's final message.
    package let serverKey: [UInt8]

    /// Creates credentials from computed values.
    package init(salt: [UInt8], iterations: Int, storedKey: [UInt8], serverKey: [UInt8]) {
        self.salt = salt
        self.iterations = iterations
        self.storedKey = storedKey
        self.serverKey = serverKey
    }

    /// Computes the credentials of a password.
    ///
    /// - Parameters:
    ///   - password: The password in clear text. It is prepared by SASLprep, or used unchanged if SASLprep refuses it.
    ///   - iterations: The iteration count, at least 4096 according to RFC 7677 §4. A higher count slows down each
    ///     login.
    /// - Throws: Errors of the cryptographic library.
    package init(
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

    /// Returns whether the credentials belong to a password.
    package func match(_ password: String, _ algorithm: HashAlgorithm, _ cryptography: any Cryptography) -> Bool {
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

/// The keys derived from a password (RFC 5802 §3).
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

/// Returns `left XOR right`; both have the length of the hash.
func exclusiveOr(_ left: [UInt8], _ right: [UInt8]) -> [UInt8] {
    zip(left, right).map { $0 ^ $1 }
}

extension HashAlgorithm {
    /// All algorithms, strongest first.
    static let byStrength: [HashAlgorithm] = [.sha512, .sha256, .sha1]
}
