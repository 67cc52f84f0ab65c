/// The text that a log prints around the XML of an item, before it and after it.
///
/// Numbers, times, addresses, JIDs and identifiers vary; the text between them forms the ``shape``. A ``Slot`` is a
/// part of the text whose value may name the session.
struct LogLead {
    /// A value in the text around an item, and its place: the bracket or the key before the value, or the kind of the
    /// value, and a counter.
    struct Slot: Hashable {
        var place: [UInt8]
        var value: [UInt8]
    }

    /// The text with variable parts masked: fragments with equal shapes were printed by one statement of a program.
    private(set) var shape: [UInt8] = []
    /// The words and arrows of the text, in lower case; `rawInput` gives `raw` and `input`.
    private(set) var words: [[UInt8]] = []
    /// The values that may name the session.
    private(set) var slots: [Slot] = []

    /// The number of bytes that are read of each text, nearest to the XML.
    private static let reach = 400

    /// Creates a lead from the texts before and after an item. `times` are the ranges of the times in `front`, in order.
    init(front: ArraySlice<UInt8>, back: ArraySlice<UInt8> = [], times: [Range<Int>] = []) {
        var reader = LeadReader(front[..<front.startIndex])
        var start = front.startIndex
        for time in times.isEmpty ? [start..<start] : times {
            let time = time.clamped(to: start..<max(start, front.endIndex))
            reader.next(front[start..<time.lowerBound].suffix(Self.reach))
            reader.read(into: &self)
            shape.append(0x54)
            start = time.upperBound
        }
        reader.next(front[start...].suffix(Self.reach))
        reader.read(into: &self)
        guard !back.isEmpty else { return }
        shape.append(0x0A)
        var behind = LeadReader(back.prefix(Self.reach), isBehind: true)
        behind.read(into: &self)
    }

    /// Whether two texts differ only in their times.
    func isLike(_ other: LogLead) -> Bool { shape == other.shape && slots == other.slots }

    private static let kinds = ["c2s", "s2sin", "s2sout", "jcp", "component"].map { Array($0.utf8) }

    static func isAlphanumeric(_ byte: UInt8) -> Bool {
        byte >= 0x30 && byte <= 0x39 || byte | 0x20 >= 0x61 && byte | 0x20 <= 0x7A
    }

    /// Adds a part of the text to the shape: masked if it varies, or else as it is, together with its words.
    fileprivate mutating func append(_ token: ArraySlice<UInt8>, isVariable: Bool) {
        guard !isVariable else {
            // Prosody names a session by its kind and a pointer: the kind says which side opened it.
            let kind = Self.kinds.first { token.starts(with: $0) && token.count > $0.count + 3 }
            shape += (kind ?? []) + [0x30]
            return
        }
        shape += token
        var word: [UInt8] = []
        func flush(_ word: inout [UInt8], _ words: inout [[UInt8]]) {
            if !word.isEmpty { words.append(word) }
            word = []
        }
        var wasLower = false
        for byte in token {
            let isUpper = byte >= 0x41 && byte <= 0x5A
            if byte == 0x5F || isUpper && wasLower { flush(&word, &words) }
            if byte != 0x5F { word.append(isUpper ? byte | 0x20 : byte) }
            wasLower = byte >= 0x61 && byte <= 0x7A
        }
        flush(&word, &words)
    }

    fileprivate mutating func append(mark: ArraySlice<UInt8>) {
        shape += mark
        words.append(Array(mark))
    }

    fileprivate mutating func append(punctuation byte: UInt8) {
        if byte != 0x20 || shape.last != 0x20 { shape.append(byte) }
    }

    fileprivate mutating func append(slot place: [UInt8], _ value: ArraySlice<UInt8>) {
        guard !value.isEmpty, value.count <= 100 else { return }
        // A session may show its account first without and later with a resource: keep the bare JID.
        let slash = value.firstIndex(of: 0x2F)
        let isJID = slash.map { value[..<$0].contains(0x40) } ?? false
        slots.append(Slot(place: place, value: Array(isJID ? value[..<(slash ?? value.endIndex)] : value)))
    }
}

/// Splits the text around an item into words, values, arrows and punctuation.
private struct LeadReader {
    private var text: ArraySlice<UInt8>
    private var position: Int
    /// The number of slots of each kind so far.
    private var counts: [[UInt8]: Int] = [:]
    /// The last word, which may be the key of a value.
    private var key: ArraySlice<UInt8> = []
    private let prefix: [UInt8]

    init(_ text: ArraySlice<UInt8>, isBehind: Bool = false) {
        self.text = text
        position = text.startIndex
        prefix = isBehind ? [0x7E] : []
    }

    /// Continues with another part of the same text.
    mutating func next(_ text: ArraySlice<UInt8>) {
        self.text = text
        key = []
    }

    mutating func read(into lead: inout LogLead) {
        readBrackets(into: &lead)
        position = text.startIndex
        var isKeyed = false
        while position < text.endIndex {
            let byte = text[position]
            if Self.isTokenByte(byte) {
                let token = readToken()
                let isVariable = Self.isVariable(token)
                if isVariable { lead.append(slot: place("#"), token) }
                if token.contains(0x40) { lead.append(slot: place("@"), token) }
                if isKeyed { lead.append(slot: prefix + key + [0x3D], token) }
                lead.append(token, isVariable: isVariable)
                key = token
                isKeyed = false
            } else if Self.isArrow(byte) {
                let mark = text[position...].prefix(while: Self.isArrow)
                position = mark.endIndex
                if mark.elementsEqual("=".utf8) {
                    isKeyed = !key.isEmpty
                    lead.append(punctuation: byte)
                } else {
                    lead.append(mark: mark)
                    isKeyed = false
                }
            } else {
                if byte == 0x3A { isKeyed = !key.isEmpty }
                if ![0x3A, 0x22, 0x27, 0x20].contains(byte) { isKeyed = false }
                lead.append(punctuation: byte == 0x09 ? 0x20 : byte)
                position += 1
            }
        }
    }

    /// Adds the content of each pair of brackets as a slot if the content is one word.
    private mutating func readBrackets(into lead: inout LogLead) {
        let pairs: [(UInt8, UInt8)] = [(0x28, 0x29), (0x5B, 0x5D), (0x7B, 0x7D), (0x3C, 0x3E)]
        for (open, close) in pairs {
            var start: Int?
            for index in text.indices {
                if text[index] == open { start = index + 1 }
                guard text[index] == close, let begin = start else { continue }
                start = nil
                let content = text[begin..<index]
                guard !content.contains(0x20), content.contains(where: LogLead.isAlphanumeric) else { continue }
                lead.append(slot: place([open]), content)
            }
        }
    }

    private mutating func place(_ kind: String) -> [UInt8] { place(Array(kind.utf8)) }

    private mutating func place(_ kind: [UInt8]) -> [UInt8] {
        counts[kind, default: 0] += 1
        return prefix + kind + Array(String(counts[kind] ?? 0).utf8)
    }

    /// Reads a word, or a number, address, JID or identifier with the punctuation within it.
    private mutating func readToken() -> ArraySlice<UInt8> {
        let word = text[position...].prefix(while: Self.isTokenByte)
        var end = word.endIndex
        var whole = word
        // A point, hyphen, colon, at sign, slash or plus sign belongs to an identifier if it stands between two parts
        // of one.
        while end + 1 < text.endIndex, [0x2E, 0x2D, 0x3A, 0x40, 0x2F, 0x2B].contains(text[end]),
            Self.isTokenByte(text[end + 1])
        {
            let next = text[(end + 1)...].prefix(while: Self.isTokenByte)
            let isAddress = text[end] == 0x40 || whole.contains(0x40)
            let areNumbers = Self.hasDigit(whole) && Self.hasDigit(next)
            // A point before the at sign of an address, but not the point in `client.py:277`.
            let isDomainOfAddress = text[end] == 0x2E && nextAt(next.endIndex)
            guard isAddress || areNumbers || isDomainOfAddress else { break }
            end = next.endIndex
            whole = text[position..<end]
        }
        position = end
        return whole
    }

    /// Whether an at sign follows in the same word.
    private func nextAt(_ start: Int) -> Bool {
        text[start...].prefix { Self.isTokenByte($0) || $0 == 0x2E || $0 == 0x2D || $0 == 0x40 }.contains(0x40)
    }

    private static func isVariable(_ token: ArraySlice<UInt8>) -> Bool {
        if token.contains(0x40) { return true }
        guard hasDigit(token) else { return false }
        // `c2s`, `s2c` and `s2s` in servers' logs are words, although they contain a digit.
        let lower = token.map { $0 | 0x20 }
        return !(token.count == 3 && ["c2s", "s2c", "s2s"].contains { lower.elementsEqual($0.utf8) })
    }

    private static func hasDigit(_ token: ArraySlice<UInt8>) -> Bool { token.contains { $0 >= 0x30 && $0 <= 0x39 } }

    private static func isTokenByte(_ byte: UInt8) -> Bool { LogLead.isAlphanumeric(byte) || byte == 0x5F }

    /// Whether a byte is part of an arrow, in ASCII or beyond it.
    private static func isArrow(_ byte: UInt8) -> Bool { [0x3C, 0x3D, 0x3E].contains(byte) || byte >= 0x80 }
}
