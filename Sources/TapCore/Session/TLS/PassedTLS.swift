internal import TapRecord

/// Reads the unencrypted parts of TLS that is passed through.
///
/// A class, so that each read changes the state in place.
final class PassedTLS {
    private var hello: ClientHelloReader? = ClientHelloReader()
    private var answerReader: ServerHelloReader? = ServerHelloReader()
    private var answer: ServerHelloReader.Result?
    private var send = TLSRecordReader()
    private var recv = TLSRecordReader()

    /// Whether the client's ClientHello is complete, and the server has answered it with a ServerHello.
    var isAnswered: Bool { answer == .hello && hello == nil }

    /// Reads bytes; returns the result for the client's ClientHello as soon as it is known.
    func read(_ direction: Direction, _ bytes: Span<UInt8>) -> ClientHelloReader.Result? {
        switch direction {
        case .send:
            send.append(bytes)
            let result = hello?.append(bytes)
            guard result != .needMore else { return nil }
            hello = nil
            return result
        case .recv:
            recv.append(bytes)
            answer = answer ?? answerReader?.append(bytes)
            if answer != nil { answerReader = nil }
            return nil
        }
    }

    /// Returns whether the received bytes of a direction end with an alert.
    func endsWithAlert(_ direction: Direction) -> Bool {
        direction == .send ? send.endsWithAlert : recv.endsWithAlert
    }
}

/// Tracks the headers of TLS records that are passed through (RFC 8446 §5.1), to determine whether a direction ends
/// with an alert. That alert is nearly always close_notify, which is the orderly end (§6.1).
///
/// Stores no bytes. The cost of a record does not depend on its length.
private struct TLSRecordReader {
    /// Whether the received bytes end with a whole record that is an alert, or has the length of an alert in TLS 1.3.
    private(set) var endsWithAlert = false

    /// The number of received bytes of the current record's header.
    private var headerCount = 0
    private var type: UInt8 = 0
    private var length = 0
    /// The number of bytes of the current record's content that are still missing.
    private var left = 0
    private var isTLS = true

    mutating func append(_ bytes: Span<UInt8>) {
        var index = 0
        while index < bytes.count, isTLS {
            if left > 0 {
                let count = min(left, bytes.count - index)
                left -= count
                index += count
                endsWithAlert = left == 0 && isAlert
            } else {
                endsWithAlert = false
                readHeader(bytes[index])
                index += 1
            }
        }
    }

    private mutating func readHeader(_ byte: UInt8) {
        switch headerCount {
        case 0:
            type = byte
            isTLS = 20...24 ~= byte
        case 1: isTLS = byte == 3
        case 3: length = Int(byte) << 8
        case 4:
            length |= Int(byte)
            left = length
        default: break
        }
        headerCount = headerCount == 4 ? 0 : headerCount + 1
    }

    /// Whether the record is an alert. In TLS 1.3, nearly all records have the same type; an encrypted alert has two
    /// bytes, one byte for the type, and a tag of 16 or 8 bytes (RFC 8446 §5.2).
    private var isAlert: Bool { type == 21 || type == 23 && (length == 19 || length == 11) }
}

/// Determines whether a server answers a ClientHello with a ServerHello or a HelloRetryRequest (RFC 8446 §4.1.3), from
/// the first bytes of its direction, on arrival. The boundaries of reads do not matter.
///
/// Stores no bytes. Warning alerts may precede the ServerHello (RFC 6066 §3).
private struct ServerHelloReader {
    enum Result {
        /// The answer is a ServerHello.
        case hello
        /// The answer is something else, such as a fatal alert or bytes that are not TLS.
        case other
    }

    /// The largest number of warning alerts before the answer.
    private static let maximumWarnings = 8

    /// The number of received bytes of the current record, including its header.
    private var count = 0
    private var isAlert = false
    /// The length of the current record's content.
    private var length = 0
    private var warnings = 0

    /// Reads the bytes of one read; returns the answer as soon as it is known. Must not be called after that.
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
            guard byte == 1, length == 2, warnings <= Self.maximumWarnings else { return .other }
        default: break
        }
        if count > 5, count == 5 + length { count = 0 }
        return nil
    }
}
