/// The secrets of TLS connections from a key log: an SSLKEYLOGFILE, or a Decryption Secrets Block of a pcapng file
/// (draft-ietf-tls-keylogfile).
///
/// Bytes may be appended in pieces, for files that grow. Several decryptors can share a key log, but only on one thread
/// at a time. Comments, blank lines, and labels that are not needed for decryption are skipped.
public final class KeyLog {
    /// The purpose of a secret. The raw value is the label in the file.
    package enum Label: String, Sendable, Hashable, CaseIterable {
        /// The master secret of TLS 1.2 and older, 48 bytes.
        case master = "CLIENT_RANDOM"
        /// The secret for early data of the client in TLS 1.3.
        case clientEarly = "CLIENT_EARLY_TRAFFIC_SECRET"
        /// The secret for handshake messages of the client in TLS 1.3.
        case clientHandshake = "CLIENT_HANDSHAKE_TRAFFIC_SECRET"
        /// The secret for handshake messages of the server in TLS 1.3.
        case serverHandshake = "SERVER_HANDSHAKE_TRAFFIC_SECRET"
        /// The secret for application data of the client in TLS 1.3, until its first KeyUpdate.
        case clientApplication = "CLIENT_TRAFFIC_SECRET_0"
        /// The secret for application data of the server in TLS 1.3, until its first KeyUpdate.
        case serverApplication = "SERVER_TRAFFIC_SECRET_0"

        /// Allowed lengths in bytes: fixed for the master secret, the length of a hash for others.
        fileprivate var lengths: ClosedRange<Int> { self == .master ? 48...48 : 32...64 }
    }

    /// A line that could not be read.
    public struct Damage: Sendable, Hashable {
        /// The error in the line.
        package enum Reason: String, Sendable, Hashable {
            /// The line does not begin with a label; the file may not be a key log.
            case notKeyLog = "not-a-key-log-line"
            /// The client random is not 64 hexadecimal digits.
            case clientRandom = "client-random"
            /// The secret is not hexadecimal, or its length does not fit the label.
            case secret = "secret"
            /// The line is longer than any line of a key log.
            case tooLong = "too-long"
            /// The limit of secrets was reached (see ``KeyLog/init(limit:)``).
            case full = "full"
        }

        /// The line, from 1.
        package let line: Int
        /// The error in the line.
        package let reason: Reason
    }

    /// Maximum length of a line in bytes; the longest known has 228.
    private static let maximumLineLength = 512
    /// Maximum number of damaged lines that are kept; further ones are only counted.
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
    package private(set) var damage: [Damage] = []
    /// Number of damaged lines.
    package private(set) var damagedLines = 0

    /// Creates an empty key log.
    ///
    /// - Parameter limit: Maximum number of secrets; a connection has 1 (TLS 1.2) to 5. Lines beyond the limit count as
    ///   damaged.
    @usableFromInline package init(limit: Int = 1 << 20) { self.limit = limit }

    /// Reads a complete key log.
    package convenience init(_ lines: [UInt8]) {
        self.init()
        append(lines.span)
        finish()
    }

    /// Returns a new key log with the same secrets.
    package func copy() -> KeyLog {
        let copy = KeyLog(limit: limit)
        copy.secrets = secrets
        return copy
    }

    /// Number of secrets.
    package var count: Int { secrets.count }

    /// Appends bytes of the key log, and reads all lines that are complete.
    package func append(_ bytes: Span<UInt8>) {
        for index in bytes.indices {
            if bytes[index] == UInt8(ascii: "\n") {
                endLine()
            } else if line.count <= Self.maximumLineLength {
                line.append(bytes[index])
            }
        }
    }

    /// Reads a last line without a line feed.
    package func finish() {
        if !line.isEmpty { endLine() }
    }

    /// Returns a secret of a connection; nil if it is not in the key log (yet).
    ///
    /// - Parameter clientRandom: The 32 bytes of the random in the ClientHello.
    package func secret(_ label: Label, clientRandom: [UInt8]) -> [UInt8]? {
        secrets[Key(label: label, clientRandom: clientRandom)]
    }

    /// Returns whether the key log contains any secret of a connection.
    package func hasSecrets(clientRandom: [UInt8]) -> Bool {
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
        // Comments may have any length.
        guard line.first != UInt8(ascii: "#") else { return nil }
        guard line.count <= Self.maximumLineLength else { return .tooLong }
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
