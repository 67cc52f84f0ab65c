/// A strict pull parser for one JSON text (RFC 8259) over borrowed bytes.
///
/// ``next()`` gives one token at a time and allocates nothing; texts and numbers come as slices of the input, which
/// ``string(_:)``, ``integer(_:)`` and the like turn into values when somebody wants them. Strict means: UTF-8 without
/// a byte order mark, no control character in a text, no lone surrogate, no leading zero, no comma too many, nothing
/// after the value. Nesting is bounded by ``maximumDepth`` and costs no call stack. Equal names within one object are
/// not looked for. After an error the reader is of no further use.
public struct JSONReader: ~Escapable {
    /// What the input consists of.
    public enum Token: Sendable, Hashable {
        /// `{`
        case objectStart
        /// `}`
        case objectEnd
        /// `[`
        case arrayStart
        /// `]`
        case arrayEnd
        /// The name of a field; its value follows.
        case name(Slice)
        /// A text.
        case text(Slice)
        /// A number.
        case number(Slice)
        /// `true` or `false`
        case bool(Bool)
        /// `null`
        case null
        /// The end of the input, after one whole value.
        case end
    }

    /// A text (without its quotes) or a number in the input.
    public struct Slice: Sendable, Hashable {
        /// Byte offsets in the input.
        public let range: Range<Int>
        /// Whether the text holds escapes, so that its bytes are not yet its value.
        let hasEscapes: Bool
    }

    /// How deep objects and arrays may be nested.
    public static let maximumDepth = 64

    private enum Expectation {
        case value, valueOrArrayEnd, name, nameOrObjectEnd, commaOrEnd, end
    }

    let input: RawSpan
    /// How far the input has been read.
    public private(set) var offset = 0
    private var expectation = Expectation.value
    /// How many objects and arrays are open.
    public private(set) var depth = 0
    /// One bit for each open level, the innermost lowest: set for an object.
    private var isObject: UInt64 = 0

    /// A reader at the beginning of `input`, which holds one JSON text.
    @_lifetime(copy input)
    public init(_ input: RawSpan) {
        self.input = input
    }

    /// The next token.
    public mutating func next() throws(JSONError) -> Token {
        while true {
            skipSpace()
            guard offset < input.byteCount else {
                guard expectation == .end else { throw JSONError(.unexpectedEnd, at: offset) }
                return .end
            }
            let byte = self.byte(offset)
            switch expectation {
            case .end: throw JSONError(.trailingData, at: offset)
            case .commaOrEnd:
                if byte == 0x2C {
                    offset += 1
                    expectation = isInObject ? .name : .value
                    continue
                }
                return try close(byte)
            case .nameOrObjectEnd where byte == 0x7D, .valueOrArrayEnd where byte == 0x5D: return try close(byte)
            case .name, .nameOrObjectEnd:
                guard byte == 0x22 else { throw JSONError(.unexpectedByte, at: offset) }
                let name = try scanText()
                skipSpace()
                guard offset < input.byteCount else { throw JSONError(.unexpectedEnd, at: offset) }
                guard self.byte(offset) == 0x3A else { throw JSONError(.unexpectedByte, at: offset) }
                offset += 1
                expectation = .value
                return .name(name)
            case .value, .valueOrArrayEnd: return try value(byte)
            }
        }
    }

    /// Passes over the value that comes next, whatever it holds, and tells where it stood.
    public mutating func skipValue() throws(JSONError) -> Range<Int> {
        skipSpace()
        let start = offset
        let outside = depth
        repeat { _ = try next() } while depth > outside
        return start..<offset
    }

    /// Passes over what is left of the object or array that was opened last.
    public mutating func skipRest() throws(JSONError) {
        let outside = depth - 1
        while depth > outside { _ = try next() }
    }

    private var isInObject: Bool { isObject & 1 == 1 }

    @inline(__always)
    func byte(_ offset: Int) -> UInt8 {
        input.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    private mutating func skipSpace() {
        while offset < input.byteCount {
            switch byte(offset) {
            case 0x20, 0x09, 0x0A, 0x0D: offset += 1
            default: return
            }
        }
    }

    private mutating func value(_ byte: UInt8) throws(JSONError) -> Token {
        switch byte {
        case 0x7B:
            try open(object: true)
            return .objectStart
        case 0x5B:
            try open(object: false)
            return .arrayStart
        case 0x22: return .text(try finish(scanText()))
        case 0x2D, 0x30...0x39: return .number(try finish(scanNumber()))
        case 0x74: return try literal("true", .bool(true))
        case 0x66: return try literal("false", .bool(false))
        case 0x6E: return try literal("null", .null)
        default: throw JSONError(.unexpectedByte, at: offset)
        }
    }

    private mutating func open(object: Bool) throws(JSONError) {
        guard depth < Self.maximumDepth else { throw JSONError(.tooDeep, at: offset) }
        depth += 1
        isObject = isObject << 1 | (object ? 1 : 0)
        offset += 1
        expectation = object ? .nameOrObjectEnd : .valueOrArrayEnd
    }

    private mutating func close(_ byte: UInt8) throws(JSONError) -> Token {
        guard byte == (isInObject ? 0x7D : 0x5D) else { throw JSONError(.unexpectedByte, at: offset) }
        let token = isInObject ? Token.objectEnd : .arrayEnd
        depth -= 1
        isObject >>= 1
        offset += 1
        expectation = depth == 0 ? .end : .commaOrEnd
        return token
    }

    private mutating func finish(_ slice: Slice) -> Slice {
        expectation = depth == 0 ? .end : .commaOrEnd
        return slice
    }

    private mutating func literal(_ word: StaticString, _ token: Token) throws(JSONError) -> Token {
        for index in 0..<word.utf8CodeUnitCount {
            guard offset + index < input.byteCount else { throw JSONError(.unexpectedEnd, at: input.byteCount) }
            guard byte(offset + index) == word.utf8Start[index] else {
                throw JSONError(.unexpectedByte, at: offset + index)
            }
        }
        offset += word.utf8CodeUnitCount
        expectation = depth == 0 ? .end : .commaOrEnd
        return token
    }

    private mutating func scanText() throws(JSONError) -> Slice {
        let start = offset + 1
        let (end, hasEscapes, fault) = input.withUnsafeBytes { JSONEscapes.scan($0, from: start) }
        if let fault { throw JSONError(fault, at: end) }
        offset = end + 1
        return Slice(range: start..<end, hasEscapes: hasEscapes)
    }

    /// `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`
    private mutating func scanNumber() throws(JSONError) -> Slice {
        let start = offset
        if byte(offset) == 0x2D { offset += 1 }
        if offset < input.byteCount, byte(offset) == 0x30 {
            offset += 1
        } else {
            try scanDigits()
        }
        if offset < input.byteCount, byte(offset) == 0x2E {
            offset += 1
            try scanDigits()
        }
        if offset < input.byteCount, byte(offset) | 0x20 == 0x65 {
            offset += 1
            if offset < input.byteCount, byte(offset) == 0x2B || byte(offset) == 0x2D { offset += 1 }
            try scanDigits()
        }
        // `01` and `1x` end here with the number and fail at the byte after it, where no comma stands; at the top
        // level they would be trailing data, which says less.
        if offset < input.byteCount, byte(offset) >= 0x30, byte(offset) <= 0x39 {
            throw JSONError(.badNumber, at: offset)
        }
        return Slice(range: start..<offset, hasEscapes: false)
    }

    private mutating func scanDigits() throws(JSONError) {
        let start = offset
        while offset < input.byteCount, byte(offset) >= 0x30, byte(offset) <= 0x39 { offset += 1 }
        if offset == start {
            throw JSONError(offset < input.byteCount ? .badNumber : .unexpectedEnd, at: offset)
        }
    }
}
