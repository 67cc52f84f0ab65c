/// Sends a request to a server, and waits for the answer: its status and its body.
///
/// - Throws: The reason if no answer comes.
package typealias ClickHouseTransport =
    @Sendable (_ request: ClickHouseRequest) throws(ClickHouseUnreachable) -> (status: Int, body: [UInt8])

/// A request to ClickHouse's interface for HTTP.
package struct ClickHouseRequest: Sendable {
    /// Path and query.
    package let target: String
    package let fields: [(String, String)]
    package let body: [UInt8]
}

/// A server does not answer.
package struct ClickHouseUnreachable: Error {
    package let text: String

    package init(text: String) { self.text = text }
}

/// A ClickHouse server, or several with the same data, of which one answers.
final class ClickHouseServer {
    /// The major and minor version of a server.
    struct Version: Comparable {
        let major: Int
        let minor: Int

        static func < (one: Version, other: Version) -> Bool { (one.major, one.minor) < (other.major, other.minor) }
    }

    let address: ClickHouseAddress
    private let transports: [ClickHouseTransport]
    private let password: String?
    /// The index of the server that answered last.
    private var current = 0
    private var known: Version?

    /// - Parameter transports: One for each host of the address.
    init(_ address: ClickHouseAddress, _ transports: [ClickHouseTransport], password: String?) {
        self.address = address
        self.transports = transports
        self.password = password
    }

    /// The server, for messages.
    private var name: String {
        let host = address.hosts.indices.contains(current) ? address.hosts[current] : address.hosts.first
        return host.map { "\($0.name):\($0.port)" } ?? ""
    }

    var path: String { address.description }

    /// The version of the server.
    func version() throws(StoreFault) -> Version {
        if let known { return known }
        let text = String(decoding: try run("SELECT version()", isInDatabase: false), as: UTF8.self)
        let numbers = text.split(separator: ".").prefix(2).compactMap { Int($0) }
        guard numbers.count == 2 else {
            throw StoreFault(code: .other("\(name) is no ClickHouse: its version is '\(text.prefix(40))'"), path: path)
        }
        let version = Version(major: numbers[0], minor: numbers[1])
        known = version
        return version
    }

    /// Whether the server is of the old kind, without codecs, limits of age and tokens against duplicates.
    func isOld() throws(StoreFault) -> Bool { try version() < Version(major: 20, minor: 1) }

    /// Executes a statement and returns its answer. A statement is one of this program, with values as ``literal(_:)-(String)``.
    func run(
        _ statement: String,
        data: [UInt8] = [],
        isCompressed: Bool = false,
        settings: [(String, String)] = [],
        isInDatabase: Bool = true
    ) throws(StoreFault) -> [UInt8] {
        var query = settings
        if isInDatabase { query.append(("database", address.database)) }
        var body = data
        if data.isEmpty { body = Array(statement.utf8) } else { query.append(("query", statement)) }
        var fields: [(String, String)] = []
        if isCompressed { fields.append(("Content-Encoding", "gzip")) }
        if let user = address.user { fields.append(("X-ClickHouse-User", user)) }
        if let password { fields.append(("X-ClickHouse-Key", password)) }
        let pairs = query.map { "\($0)=\(Self.encoded($1))" }
        let request = ClickHouseRequest(
            target: "/?\(pairs.joined(separator: "&"))",
            fields: fields,
            body: body
        )
        return try send(request)
    }

    private func send(_ request: ClickHouseRequest) throws(StoreFault) -> [UInt8] {
        var reason = "no host"
        for attempt in transports.indices {
            let index = (current + attempt) % transports.count
            let answer: (status: Int, body: [UInt8])
            do throws(ClickHouseUnreachable) {
                answer = try transports[index](request)
            } catch {
                let host = address.hosts[index]
                reason = "\(host.name):\(host.port): \(error.text)"
                continue
            }
            current = index
            guard (200...299).contains(answer.status) else { throw fault(answer.status, answer.body) }
            // An error may come after the beginning of an answer.
            return answer.body
        }
        throw StoreFault(code: .unreachable(reason), path: path)
    }

    /// Returns the fault of an answer: its code is in the text, as in `Code: 60, e.displayText() = …`.
    private func fault(_ status: Int, _ body: [UInt8]) -> StoreFault {
        let text = String(decoding: body.prefix(2000), as: UTF8.self)
        let code = text.firstMatch(of: #/Code: (\d+)/#).flatMap { Int($0.1) }
        let message = text.split(separator: "\n").first.map { String($0.prefix(300)) } ?? "HTTP \(status)"
        let kind: StoreFault.Code =
            switch code {
            // UNKNOWN_TABLE and UNKNOWN_DATABASE.
            case 60, 81: .uninitialized
            // READONLY, and no right to write.
            case 164, 497: .readOnly
            // REQUIRED_PASSWORD, WRONG_PASSWORD, UNKNOWN_USER, AUTHENTICATION_FAILED.
            case 192, 193, 194, 516: .refusedLogin(message)
            // TOO_MANY_PARTS, MEMORY_LIMIT_EXCEEDED, TOO_MANY_SIMULTANEOUS_QUERIES, TABLE_IS_READ_ONLY, NOT_ENOUGH_SPACE.
            case 252, 241, 202, 242, 243: .unreachable(message)
            case nil where status >= 500: .unreachable("HTTP \(status): \(message)")
            default: .row(message)
            }
        return StoreFault(code: kind, path: path)
    }

    /// Encodes a value of a query (RFC 3986 §2.1).
    private static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: bytes.append(byte)
            default: bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns a text as a literal of ClickHouse's SQL.
    static func literal(_ text: String) -> String {
        var literal = "'"
        for scalar in text.unicodeScalars {
            switch scalar {
            case "'", "\\":
                literal.unicodeScalars.append("\\")
                literal.unicodeScalars.append(scalar)
            case "\0": literal += "\\0"
            case "\n": literal += "\\n"
            case "\r": literal += "\\r"
            default: literal.unicodeScalars.append(scalar)
            }
        }
        return literal + "'"
    }
}
