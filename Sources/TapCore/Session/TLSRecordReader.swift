/// Follows the records of TLS that is passed through (RFC 8446 §5.1) by their headers, so far as to tell whether a direction
/// ends with an alert. Of what one side says there that is nearly always close_notify: its orderly end (§6.1).
///
/// Keeps no bytes; each record costs the same, however long it is.
struct TLSRecordReader {
    /// What has come ends with a whole record that is an alert, or in TLS 1.3 as long as one.
    private(set) var endsWithAlert = false

    /// Bytes of the current record's header that have come.
    private var headerCount = 0
    private var type: UInt8 = 0
    private var length = 0
    /// Bytes of the current record's content that have not come.
    private var left = 0
    private var isTLS = true

    /// Takes the bytes of one read.
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

    /// TLS 1.3 has all types but one look alike: an alert has two bytes, one that names the type, and a tag of 16, or of 8
    /// (RFC 8446 §5.2).
    private var isAlert: Bool { type == 21 || type == 23 && (length == 19 || length == 11) }
}
