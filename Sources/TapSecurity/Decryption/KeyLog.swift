/// The secrets of TLS connections, read from a key log: an SSLKEYLOGFILE, or a Decryption Secrets Block of a pcapng
/// (draft-ietf-tls-keylogfile).
///
/// The bytes come piece by piece, also of a file that still grows. Several decryptors share one key log; it is not for use
/// from two threads at once. Comments, blank lines and labels that decrypt no record are skipped.
public final class KeyLog {
    /// What a secret is for. The raw value is the label in the file.
    public enum Label: String, Sendable, Hashable, CaseIterable {
        /// The master secret of TLS 1.2 and older, 48 bytes.
        case master = "CLIENT_RANDOM"
        /// What the client sends before the handshake is over, in TLS 1.3.
        case clientEarly = "CLIENT_EARLY_TRAFFIC_SECRET"
        /// The client's part of the handshake of TLS 1.3.
        case clientHandshake = "CLIENT_HANDSHAKE_TRAFFIC_SECRET"
        /// The server's part of the handshake of TLS 1.3.
        case serverHandshake = "SERVER_HANDSHAKE_TRAFFIC_SECRET"
        /// What the client sends after the handshake of TLS 1.3, until its first KeyUpdate.
        case clientApplication = "CLIENT_TRAFFIC_SECRET_0"
        /// What the server sends after the handshake of TLS 1.3, until its first KeyUpdate.
        case serverApplication = "SERVER_TRAFFIC_SECRET_0"

        /// How long such a secret can be: the master secret has one length, the others that of a hash.
        fileprivate var lengths: ClosedRange<Int> { self == .master ? 48...48 : 32...64 }
    }

    /// A line that could not be read.
    public struct Damage: Sendable, Hashable {
        /// What is wrong with it.
        public enum Reason: String, Sendable, Hashable {
            /// It does not begin with a label, so the file may be something else.
            case notKeyLog = "not-a-key-log-line"
            /// The client random is not 64 hexadecimal digits.
            case clientRandom = "client-random"
            /// The secret is not in hexadecimal digits, or too short or too long for its label.
            case secret = "secret"
            /// It is longer than any line of a key log.
            case tooLong = "too-long"
            /// The key log is full (see ``KeyLog/init(limit:)``).
            case full = "full"
        }

        /// The number of the line; the first is 1.
        public let line: Int
        /// What is wrong with it.
        public let reason: Reason
    }

    /// Bytes of a line that are kept at most; the longest that is known has 228.
    private static let longestLine = 512
    /// Damaged lines that are kept; the others are counted.
    private static let keptDamage = 16

    private struct Key: Hashable {
        let label: Label
        let clientRandom: [UInt8]
    }

    private let limit: Int
    private var secrets: [Key: [UInt8]] = [:]
    private var line: [UInt8] = []
    private var lineNumber = 1

    /// The first damaged lines, at most 16.
    public private(set) var damage: [Damage] = []
    /// How many lines were damaged.
    public private(set) var damagedLines = 0

    /// An empty key log.
    ///
    /// - Parameter limit: How many secrets are kept at most; a connection has 1 (TLS 1.2) to 5. What comes later counts as
    ///   damaged.
    public init(limit: Int = 1 << 20) { self.limit = limit }

    /// The secrets of a whole key log.
    public convenience init(_ lines: [UInt8]) {
        self.init()
        append(lines.span)
        finish()
    }

    /// Another key log with the same secrets.
    public func copy() -> KeyLog {
        let copy = KeyLog(limit: limit)
        copy.secrets = secrets
        return copy
    }

    /// How many secrets there are.
    public var count: Int { secrets.count }

    /// Takes the next bytes.
    public func append(_ bytes: Span<UInt8>) {
        for index in bytes.indices {
            if bytes[index] == UInt8(ascii: "\n") {
                endLine()
            } else if line.count <= Self.longestLine {
                line.append(bytes[index])
            }
        }
    }

    /// Reads a last line that has no line feed. The next bytes begin a line.
    public func finish() {
        if !line.isEmpty { endLine() }
    }

    /// The secret of a connection; nil if it is not (yet) there.
    ///
    /// - Parameter clientRandom: The 32 bytes of the ClientHello.
    public func secret(_ label: Label, clientRandom: [UInt8]) -> [UInt8]? {
        secrets[Key(label: label, clientRandom: clientRandom)]
    }

    /// Whether there is any secret of the connection.
    public func hasSecrets(clientRandom: [UInt8]) -> Bool {
        Label.allCases.contains { secret($0, clientRandom: clientRandom) != nil }
    }

    private func endLine() {
        if let reason = readLine() {
            damagedLines += 1
            if damage.count < Self.keptDamage { damage.append(Damage(line: lineNumber, reason: reason)) }
        }
        lineNumber += 1
        line.removeAll(keepingCapacity: true)
    }

    private func readLine() -> Damage.Reason? {
        // A comment may have any length.
        guard line.first != UInt8(ascii: "#") else { return nil }
        guard line.count <= Self.longestLine else { return .tooLong }
        let fields = line.split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: "\r") }
        guard let name = fields.first else { return nil }
        guard let label = Label(rawValue: String(decoding: name, as: UTF8.self)) else {
            return name.allSatisfy(Self.isOfLabel) ? nil : .notKeyLog
        }
        guard fields.count > 1, let random = Self.bytes(ofHex: fields[1]), random.count == 32 else {
            return .clientRandom
        }
        guard fields.count == 3, let secret = Self.bytes(ofHex: fields[2]), label.lengths ~= secret.count else {
            return .secret
        }
        let key = Key(label: label, clientRandom: random)
        guard secrets.count < limit || secrets[key] != nil else { return .full }
        secrets[key] = secret
        return nil
    }

    private static func isOfLabel(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
        default: false
        }
    }

    private static func bytes(ofHex digits: ArraySlice<UInt8>) -> [UInt8]? {
        guard digits.count.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.count / 2)
        var high: UInt8?
        for digit in digits {
            guard let value = Character(Unicode.Scalar(digit)).hexDigitValue.map(UInt8.init) else { return nil }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return bytes
    }
}
