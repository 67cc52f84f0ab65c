/// A binary that Erlang prints as numbers, `<<60,109,101,…>>`, because its text has characters beyond Latin-1.
///
/// Erlang breaks long binaries after a comma; the lines that follow are indented.
struct ErlangBinary {
    /// The lines so far.
    private(set) var lines: [LogLine]
    private var text: [UInt8]

    private static let closing = Array(">>".utf8)
    /// The smallest number of bytes that are read as text.
    private static let minimumCount = 4
    private static let maximumBytes = 64 << 20

    /// Begins a binary; nil if a line does not end within one.
    init?(_ line: LogLine) {
        guard line.bytes.last == 0x2C, let start = Self.start(in: line.bytes), Self.end(of: line.bytes[start...]) == nil
        else { return nil }
        lines = [line]
        text = line.bytes
    }

    /// Appends the next line. Returns the whole line if it ends the binary, and nil if it does not; `isPart` is false if
    /// the line is not part of a binary.
    mutating func append(_ line: LogLine) -> (isPart: Bool, whole: LogLine?) {
        let numbers = line.bytes.drop { $0 == 0x20 || $0 == 0x09 }
        guard numbers.startIndex > 0, text.count < Self.maximumBytes, let first = lines.first else {
            return (false, nil)
        }
        let end = Self.end(of: numbers)
        guard end != nil || numbers.last == 0x2C && numbers.allSatisfy(Self.isNumeral) else { return (false, nil) }
        guard end != nil else {
            lines.append(line)
            text += numbers
            return (true, nil)
        }
        guard let whole = Self.decoded(text + numbers) else { return (false, nil) }
        return (true, LogLine(first, bytes: whole))
    }

    /// Returns a line with its binary printed as a string; nil if the line has no binary of UTF-8 text with markup.
    static func decoded(_ line: [UInt8]) -> [UInt8]? {
        guard let start = start(in: line), let end = end(of: line[start...]) else { return nil }
        var bytes: [UInt8] = []
        for number in line[start..<end].split(separator: 0x2C) {
            let digits = number.filter { $0 != 0x20 }
            guard let byte = UInt8(String(decoding: digits, as: UTF8.self)) else { return nil }
            bytes.append(byte)
        }
        guard bytes.count >= minimumCount, bytes.contains(where: { $0 == 0x3C || $0 == 0x3E }),
            String(validating: bytes, as: UTF8.self) != nil
        else { return nil }
        let digits = Array("0123456789abcdef".utf8)
        var text = Array(line[..<start]) + [0x22]
        for byte in bytes {
            switch byte {
            case 0x22, 0x5C: text += [0x5C, byte]
            case 0x20..<0x7F: text.append(byte)
            default: text += Array("\\x".utf8) + [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return text + [0x22] + line[end...]
    }

    /// Returns the index of the first number of the last binary; nil if there is none.
    private static func start(in line: [UInt8]) -> Int? {
        let bytes = line.span
        var index = bytes.count - 1
        while index >= 2 {
            let byte = bytes[index]
            if byte >= 0x30, byte <= 0x39, bytes[index - 1] == 0x3C, bytes[index - 2] == 0x3C { return index }
            index -= 1
        }
        return nil
    }

    /// Returns the index of the `>>` directly after numbers; nil if other text follows them.
    private static func end(of numbers: ArraySlice<UInt8>) -> Int? {
        let end = numbers.firstIndex { !isNumeral($0) } ?? numbers.endIndex
        return numbers[end...].starts(with: closing) ? end : nil
    }

    private static func isNumeral(_ byte: UInt8) -> Bool {
        byte >= 0x30 && byte <= 0x39 || byte == 0x2C || byte == 0x20
    }
}
