/// A line of Docker's `json-file` logs: `{"log":"…\n","stream":"stdout","time":"2026-11-30T12:40:00.123456789Z"}`.
struct LogContainerEntry {
    /// The text of the program, without its newline.
    let text: [UInt8]
    /// Whether the text ends a line; Docker splits lines that are longer than 16 KiB.
    let endsLine: Bool
    /// The name of the program's output.
    let stream: [UInt8]
    let time: ClientLogStamp?

    /// Parses a line; nil for any other line.
    init?(_ line: [UInt8]) {
        guard line.first == 0x7B, line.last == 0x7D || line.last == 0x0D else { return nil }
        var fields: [[UInt8]: [UInt8]] = [:]
        var rest = line[1...]
        repeat {
            guard let name = Self.string(&rest), Self.consume(0x3A, &rest) else { return nil }
            if Self.next(rest) == 0x7B {
                // Labels of the container.
                guard Self.skipObject(&rest) else { return nil }
            } else {
                guard let value = Self.string(&rest) else { return nil }
                fields[name] = value
            }
        } while Self.consume(0x2C, &rest)
        guard Self.consume(0x7D, &rest), Self.next(rest) == nil, let log = fields[Array("log".utf8)],
            let stream = fields[Array("stream".utf8)], let time = fields[Array("time".utf8)]
        else { return nil }
        endsLine = log.last == 0x0A
        text = endsLine ? Array(log.dropLast()) : log
        self.stream = stream
        self.time = ClientLogStamp(time)
    }

    private static func next(_ rest: ArraySlice<UInt8>) -> UInt8? { rest.first { $0 != 0x20 && $0 != 0x0D } }

    private static func consume(_ byte: UInt8, _ rest: inout ArraySlice<UInt8>) -> Bool {
        let text = rest.drop { $0 == 0x20 || $0 == 0x0D }
        guard text.first == byte else { return false }
        rest = text.dropFirst()
        return true
    }

    private static func string(_ rest: inout ArraySlice<UInt8>) -> [UInt8]? {
        guard consume(0x22, &rest) else { return nil }
        var (end, hasEscapes) = (rest.startIndex, false)
        while end < rest.endIndex, rest[end] != 0x22 {
            if rest[end] == 0x5C {
                hasEscapes = true
                end += 1
            }
            end += 1
        }
        guard end < rest.endIndex else { return nil }
        defer { rest = rest[(end + 1)...] }
        let text = rest[..<end]
        return hasEscapes ? LogEscapes.string(quote: nil).decoded(text).bytes : Array(text)
    }

    /// Skips an object that has only strings as values.
    private static func skipObject(_ rest: inout ArraySlice<UInt8>) -> Bool {
        guard consume(0x7B, &rest) else { return false }
        if consume(0x7D, &rest) { return true }
        repeat {
            guard string(&rest) != nil, consume(0x3A, &rest), string(&rest) != nil else { return false }
        } while consume(0x2C, &rest)
        return consume(0x7D, &rest)
    }
}
