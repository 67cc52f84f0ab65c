internal import TapCore
internal import TapRecord
internal import TapSecurity

/// The hash chain of a capture's lines, which makes later changes detectable (PROTOCOL.md R7.10).
///
/// Each line ends with a field `chain`: the SHA-256, in hexadecimal, of the previous line's chain value and of the
/// text of the line before that field. For the first line of a run, the previous value is 32 zero bytes. Whoever
/// changes, removes, inserts or moves a line has to rewrite all later lines; the last value then differs from a copy
/// that was noted elsewhere.
struct HashChain {
    /// The chain value before the first line.
    static let beginning = [UInt8](repeating: 0, count: size)
    private static let size = 32
    private static let opening = Array(#","chain":""#.utf8)
    private static let closing = Array("\"}".utf8)
    /// The number of bytes that the field adds to a line.
    static let fieldSize = opening.count + 2 * size + 1

    /// The chain value of the last line that is written completely.
    private(set) var head = Self.beginning
    /// The chain value of the next header, which is not written yet; nil if there is none.
    private var header: [UInt8]?
    /// The chain values of the lines of the batch, one after the other.
    private var lines: [UInt8] = []

    // MARK: Writing

    /// Returns a header line with its chain value, which follows that of the last written line. Recomputes the chain
    /// values of the batch's unwritten records, which follow the header.
    ///
    /// - Parameter record: The index of the first unwritten record of the batch.
    mutating func seal(header line: [UInt8], before batch: inout RecordQueue.Batch, from record: Int) -> [UInt8] {
        guard let text = Self.text(of: line[...]) else { return line }
        let digest = Self.digest(head, text)
        header = digest
        var last = digest
        lines.removeLast(min(lines.count, (batch.ends.count - record) * Self.size))
        for index in record..<batch.ends.count {
            let start = index > 0 ? batch.ends[index - 1] : 0
            let (textEnd, hexEnd) = (batch.ends[index] - 2 - Self.fieldSize, batch.ends[index] - 3)
            guard textEnd > start, batch.bytes[textEnd...].starts(with: Self.opening) else {
                lines += last
                continue
            }
            last = Self.digest(last, batch.bytes[start..<textEnd])
            batch.bytes.replaceSubrange(hexEnd - 2 * Self.size..<hexEnd, with: Self.hex(last))
            lines += last
        }
        return text + Self.field(digest)
    }

    /// Adds the chain value to all lines of a batch; returns the number of bytes added.
    mutating func seal(_ batch: inout RecordQueue.Batch) -> Int {
        lines.removeAll(keepingCapacity: true)
        var last = header ?? head
        var sealed: [UInt8] = []
        sealed.reserveCapacity(batch.bytes.count + batch.ends.count * Self.fieldSize)
        var start = 0
        for index in batch.ends.indices {
            let end = batch.ends[index]
            if let text = Self.text(of: batch.bytes[start..<end]) {
                last = Self.digest(last, text)
                sealed += text
                sealed += Self.field(last)
            } else {
                sealed += batch.bytes[start..<end]
            }
            lines += last
            batch.ends[index] = sealed.count
            start = end
        }
        let growth = sealed.count - batch.bytes.count
        batch.bytes = sealed
        return growth
    }

    /// Must be called when the header is written.
    mutating func commitHeader() {
        if let header { head = header }
        header = nil
    }

    /// Must be called when the first `count` lines of the batch are written.
    mutating func commit(lines count: Int) {
        guard count > 0, count * Self.size <= lines.count else { return }
        head = Array(lines[(count - 1) * Self.size..<count * Self.size])
    }

    /// Discards the chain values of unwritten lines.
    mutating func giveUp() {
        header = nil
        lines.removeAll()
    }

    /// Returns the text of a JSON object before its closing brace and newline; nil if the line does not end with
    /// these.
    private static func text(of line: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        line.suffix(2).elementsEqual([0x7D, 0x0A]) ? line.dropLast(2) : nil
    }

    private static func field(_ digest: [UInt8]) -> [UInt8] { opening + hex(digest) + closing + [0x0A] }

    // MARK: Reading

    /// Returns the parts of a line without its newline: the text that the chain value covers, and the chain value;
    /// nil if the line has no chain value.
    static func parts(of line: RawSpan) -> (text: Range<Int>, chain: [UInt8])? {
        line.withUnsafeBytes { bytes -> (text: Range<Int>, chain: [UInt8])? in
            let end = bytes.count - fieldSize - 1
            guard end > 0, bytes[end...].starts(with: opening), bytes.suffix(2).elementsEqual(closing) else {
                return nil
            }
            return Self.bytes(hex: bytes[(end + opening.count)..<(bytes.count - 2)]).map { (0..<end, $0) }
        }
    }

    /// Returns the chain value of a line that follows a line with the value `last`.
    static func digest(_ last: [UInt8], _ text: some Collection<UInt8>) -> [UInt8] {
        let bytes = last + text
        // OpenSSL supports SHA-256; if it did not, no line would match.
        return (try? OpenSSLCryptography().digest(.sha256, of: bytes.span)) ?? beginning
    }

    static func hex(_ digest: [UInt8]) -> [UInt8] {
        func digit(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 + value : 0x57 + value }
        var hex: [UInt8] = []
        hex.reserveCapacity(2 * digest.count)
        for byte in digest {
            hex.append(digit(byte >> 4))
            hex.append(digit(byte & 0xF))
        }
        return hex
    }

    static func bytes(hex digits: some Collection<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var high: UInt8?
        for digit in digits {
            let value: UInt8
            switch digit {
            case 0x30...0x39: value = digit - 0x30
            case 0x61...0x66: value = digit - 0x57
            case 0x41...0x46: value = digit - 0x37
            default: return nil
            }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return bytes.count == size && high == nil ? bytes : nil
    }
}
