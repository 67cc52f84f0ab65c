/// The reply of a name server (RFC 1035 §4): its SRV, A, AAAA and TLSA records.
///
/// The bytes come from the network and are not trusted. Every length is checked against the size of the reply, names
/// may only point backwards, and at most ``maximumRecords`` records are kept.
struct DNSReply: Sendable, Hashable {
    /// The reason why a reply cannot be used.
    enum Fault: Error, Hashable {
        /// The reply is shorter than its lengths say.
        case truncated
        /// The message is a query.
        case notReply
        /// A name points to itself or forwards, has an invalid label length, or is too long.
        case badName
        /// The length of a record does not fit its type.
        case badRecord
    }

    /// The record types that are parsed.
    enum RecordType: UInt16 {
        case a = 1
        case aaaa = 28
        case srv = 33
        case tlsa = 52
    }

    /// A TLSA record (RFC 6698 §2.1), without its data.
    struct Association: Sendable, Hashable {
        var usage: UInt8
        var selector: UInt8
        var matching: UInt8
    }

    /// The data of an SRV record, without its service.
    struct Server: Sendable, Hashable {
        var priority: UInt16
        var weight: UInt16
        var port: UInt16
        var target: String
    }

    /// Maximum number of records that are kept; domains usually have a few.
    static let maximumRecords = 64
    /// The maximum length of a name (RFC 1035 §2.3.4).
    private static let maximumNameBytes = 255

    /// SRV records with a host name or `.` as their target, in the reply's order; other SRV records are skipped.
    private(set) var servers: [Server] = []
    /// Addresses of 4 or 16 bytes, in the reply's order.
    private(set) var addresses: [[UInt8]] = []
    /// TLSA records, in the reply's order.
    private(set) var associations: [Association] = []

    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) throws(Fault) {
        self.bytes = bytes
        guard bytes.count >= 12 else { throw .truncated }
        guard bytes[2] & 0x80 != 0 else { throw .notReply }
        let questions = Int(try number(at: 4))
        let answers = Int(try number(at: 6))
        var offset = 12
        for _ in 0..<questions { offset = try skipName(at: offset) + 4 }
        for _ in 0..<answers where servers.count + addresses.count + associations.count < Self.maximumRecords {
            offset = try readRecord(at: offset)
        }
    }

    /// Parses one record; returns the offset of the next.
    private mutating func readRecord(at start: Int) throws(Fault) -> Int {
        let offset = try skipName(at: start)
        let (type, kind) = (try number(at: offset), try number(at: offset + 2))
        let length = Int(try number(at: offset + 8))
        let data = offset + 10
        guard data + length <= bytes.count else { throw .truncated }
        // Skip records of another class than IN, and other types, such as CNAME.
        guard kind == 1, let type = RecordType(rawValue: type) else { return data + length }
        switch type {
        case .a, .aaaa:
            guard length == (type == .a ? 4 : 16) else { throw .badRecord }
            addresses.append(Array(bytes[data..<(data + length)]))
        case .tlsa:
            guard length > 3 else { throw .badRecord }
            associations.append(
                Association(usage: bytes[data], selector: bytes[data + 1], matching: bytes[data + 2])
            )
        case .srv:
            guard length >= 7 else { throw .badRecord }
            let (target, end) = try name(at: data + 6)
            guard end == data + length else { throw .badRecord }
            guard let target else { break }
            servers.append(
                Server(
                    priority: try number(at: data),
                    weight: try number(at: data + 2),
                    port: try number(at: data + 4),
                    target: target
                )
            )
        }
        return data + length
    }

    private func number(at offset: Int) throws(Fault) -> UInt16 {
        guard offset + 2 <= bytes.count else { throw .truncated }
        return UInt16(bytes[offset]) << 8 | UInt16(bytes[offset + 1])
    }

    private func skipName(at start: Int) throws(Fault) -> Int { try name(at: start).end }

    /// Parses a name. Returns the name, and the offset after it; the name is nil if it is not a valid host name, and
    /// empty for the root.
    private func name(at start: Int) throws(Fault) -> (name: String?, end: Int) {
        var name: [UInt8] = []
        var isHost = true
        var offset = start
        var end: Int?
        // A pointer must point to before the previous one: this rules out loops.
        var horizon = start
        while true {
            guard offset < bytes.count else { throw .truncated }
            let length = Int(bytes[offset])
            switch length >> 6 {
            case 0:
                guard length > 0 else {
                    return (isHost ? String(decoding: name, as: UTF8.self) : nil, end ?? offset + 1)
                }
                guard offset + 1 + length <= bytes.count else { throw .truncated }
                guard name.count + length + 1 <= Self.maximumNameBytes else { throw .badName }
                if !name.isEmpty { name.append(0x2E) }
                let label = bytes[(offset + 1)...(offset + length)]
                isHost = isHost && label.allSatisfy(Self.isHostByte)
                name += label
                offset += 1 + length
            case 3:
                let target = Int(try number(at: offset) & 0x3FFF)
                end = end ?? offset + 2
                guard target < horizon else { throw .badName }
                horizon = target
                offset = target
            default: throw .badName
            }
        }
    }

    /// Returns whether a label may contain this byte: letters, digits, hyphen and underscore. A dot inside a label
    /// would change the name.
    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
        default: false
        }
    }
}
