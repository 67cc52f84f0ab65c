/// Tells whether a server answers a ClientHello with a ServerHello (RFC 8446 §4.1.3; a HelloRetryRequest is one, too): read
/// from the first bytes of its direction, as they come, whatever reads they are cut into.
///
/// Keeps no bytes. Alerts of level warning may come before it (RFC 6066 §3).
struct ServerHelloReader {
    enum Result {
        /// The answer is a ServerHello.
        case hello
        /// It is something else: a fatal alert, or no TLS.
        case other
    }

    /// Warnings that may come before the answer.
    private static let mostWarnings = 8

    /// Bytes of the current record that have come, header and all.
    private var count = 0
    private var isAlert = false
    /// Length of the current record's content.
    private var length = 0
    private var warnings = 0

    /// Takes the bytes of one read; gives the answer once it is known, and is not to be asked again then.
    mutating func append(_ bytes: Span<UInt8>) -> Result? {
        for index in bytes.indices {
            if let result = read(bytes[index]) { return result }
        }
        return nil
    }

    private mutating func read(_ byte: UInt8) -> Result? {
        count += 1
        switch count {
        case 1:
            isAlert = byte == 0x15
            return isAlert || byte == 0x16 ? nil : .other
        case 2: return byte == 3 ? nil : .other
        case 3: return nil
        case 4: length = Int(byte) << 8
        case 5:
            length |= Int(byte)
            return length > 0 ? nil : .other
        case 6 where !isAlert: return byte == 2 ? .hello : .other
        case 6:
            warnings += 1
            guard byte == 1, length == 2, warnings <= Self.mostWarnings else { return .other }
        default: break
        }
        if count > 5, count == 5 + length { count = 0 }
        return nil
    }
}
