internal import XMPPCore

/// A pattern of Lua 5.4 (reference manual §6.4.1), matched against bytes with a limit on the number of steps.
///
/// Supports everything except back references: classes (ASCII, as in the C locale), sets, `*` `+` `-` `?`, `^` and `$`,
/// `%b`, `%f`, captures and position captures. Lua's own matcher can take exponential time; this one stops a search
/// after ``steps(for:)`` comparisons or, like Lua, at a nesting depth of more than 200.
struct LuaPattern: Sendable, Equatable {
    private let pattern: [UInt8]
    private let isAnchored: Bool
    /// Number of captures; 0 if only the whole match is captured.
    let captureCount: Int
    /// The bytes at the beginning and at the end of every matching text.
    private(set) var prefix: [UInt8] = []
    private(set) var suffix: [UInt8] = []

    /// Maximum number of captures, as in Lua (LUA_MAXCAPTURES).
    private static let maximumCaptures = 32

    /// Checks a pattern.
    ///
    /// - Throws: ``PatternFault`` if it is malformed or has a back reference.
    init(_ pattern: [UInt8]) throws(PatternFault) {
        self.pattern = pattern
        isAnchored = pattern.first == UInt8(ascii: "^")
        captureCount = try Self.check(pattern)
        try findLiterals()
    }

    /// Determines the literal prefix and suffix of every matching text; a capture ends a literal.
    private mutating func findLiterals() throws(PatternFault) {
        var index = isAnchored ? 1 : 0
        var isBeginning = isAnchored
        var run: [UInt8] = []
        while index < pattern.count {
            if pattern[index] == UInt8(ascii: "$"), index + 1 == pattern.count {
                suffix = run
                break
            }
            var (literal, end, isSingle) = (UInt8?.none, index + 1, true)
            switch pattern[index] {
            case UInt8(ascii: "."): break
            case UInt8(ascii: "("), UInt8(ascii: ")"): isSingle = false
            case UInt8(ascii: "%") where pattern[index + 1] == UInt8(ascii: "b"): (end, isSingle) = (index + 4, false)
            case UInt8(ascii: "%") where pattern[index + 1] == UInt8(ascii: "f"):
                (end, isSingle) = (try Self.end(ofSingle: pattern, index + 2), false)
            case UInt8(ascii: "%"):
                end = index + 2
                if !Self.isAlpha(pattern[index + 1]) { literal = pattern[index + 1] }
            case UInt8(ascii: "["): end = try Self.end(ofSingle: pattern, index)
            case let byte: literal = byte
            }
            if isSingle, end < pattern.count, Self.isRepetition(pattern[end]) {
                literal = nil
                end += 1
            }
            if let literal {
                run.append(literal)
                if isBeginning { prefix.append(literal) }
            } else {
                run = []
                isBeginning = false
            }
            index = end
        }
    }

    /// Returns whether a text has the required prefix and suffix.
    func mayMatch(_ text: Span<UInt8>) -> Bool {
        guard text.count >= prefix.count, text.count >= suffix.count else { return false }
        return text.extracting(first: prefix.count).equals(prefix.span)
            && text.extracting(last: suffix.count).equals(suffix.span)
    }

    /// Returns the maximum number of comparisons for a text of `count` bytes.
    static func steps(for count: Int) -> Int { 100_000 + 64 * count }

    func firstMatch(in text: [UInt8]) throws(PatternTooComplex) -> PatternMatch? {
        var matcher = Matcher(pattern: pattern, text: text)
        let match =
            isAnchored
            ? matcher.match(at: 0, from: 1) : matcher.firstMatch(from: 0, notEndingAt: nil)
        if matcher.isExhausted { throw PatternTooComplex() }
        return match
    }

    /// Calls `body` with each match until it returns false. As in Lua's `gmatch`, `^` is not an anchor.
    func forEachMatch(in text: [UInt8], _ body: (PatternMatch) -> Bool) throws(PatternTooComplex) {
        var matcher = Matcher(pattern: pattern, text: text)
        var start = 0
        var end: Int?
        while let match = matcher.firstMatch(from: start, notEndingAt: end) {
            guard body(match) else { return }
            start = match.range.upperBound
            end = start
        }
        if matcher.isExhausted { throw PatternTooComplex() }
    }

    // MARK: Checking

    private static func check(_ pattern: [UInt8]) throws(PatternFault) -> Int {
        var index = pattern.first == UInt8(ascii: "^") ? 1 : 0
        var open: [Int] = []
        var captures = 0
        while index < pattern.count {
            switch pattern[index] {
            case UInt8(ascii: "("):
                captures += 1
                guard captures <= maximumCaptures else {
                    throw PatternFault(message: "too many captures", offset: index)
                }
                if index + 1 < pattern.count, pattern[index + 1] == UInt8(ascii: ")") {
                    index += 2
                } else {
                    open.append(index)
                    index += 1
                }
                continue
            case UInt8(ascii: ")"):
                guard open.popLast() != nil else {
                    throw PatternFault(message: "\")\" without \"(\"", offset: index)
                }
                index += 1
                continue
            case UInt8(ascii: "%") where index + 1 < pattern.count:
                switch pattern[index + 1] {
                case UInt8(ascii: "b"):
                    guard index + 3 < pattern.count else {
                        throw PatternFault(message: "%b without its two characters", offset: index)
                    }
                    index += 4
                    continue
                case UInt8(ascii: "f"):
                    guard index + 2 < pattern.count, pattern[index + 2] == UInt8(ascii: "[") else {
                        throw PatternFault(message: "%f without a set", offset: index)
                    }
                    index = try end(ofSingle: pattern, index + 2)
                    continue
                case UInt8(ascii: "0")...UInt8(ascii: "9"):
                    throw PatternFault(message: "back references are not supported", offset: index)
                default: break
                }
            default: break
            }
            index = try end(ofSingle: pattern, index)
            if index < pattern.count, isRepetition(pattern[index]) { index += 1 }
        }
        if let place = open.last { throw PatternFault(message: "\"(\" without \")\"", offset: place) }
        return captures
    }

    private static func isRepetition(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "*") || byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "?")
    }

    /// Returns the index after the single character, class or set at `index`.
    private static func end(ofSingle pattern: [UInt8], _ index: Int) throws(PatternFault) -> Int {
        var next = index + 1
        switch pattern[index] {
        case UInt8(ascii: "%"):
            guard next < pattern.count else { throw PatternFault(message: "\"%\" at the end", offset: index) }
            return next + 1
        case UInt8(ascii: "["):
            if next < pattern.count, pattern[next] == UInt8(ascii: "^") { next += 1 }
            repeat {
                guard next < pattern.count else { throw PatternFault(message: "\"[\" without \"]\"", offset: index) }
                if pattern[next] == UInt8(ascii: "%") { next += 1 }
                next += 1
            } while next >= pattern.count || pattern[next] != UInt8(ascii: "]")
            return next + 1
        default: return next
        }
    }

    /// Returns whether a byte is in the class of a letter such as `%a`, or in its complement for a capital letter. A
    /// byte that is not the letter of a class matches itself.
    fileprivate static func matches(_ byte: UInt8, class letter: UInt8) -> Bool {
        let isMember: Bool
        switch letter | 0x20 {
        case UInt8(ascii: "a"): isMember = isAlpha(byte)
        case UInt8(ascii: "c"): isMember = byte < 0x20 || byte == 0x7F
        case UInt8(ascii: "d"): isMember = isDigit(byte)
        case UInt8(ascii: "g"): isMember = byte > 0x20 && byte < 0x7F
        case UInt8(ascii: "l"): isMember = byte >= 0x61 && byte <= 0x7A
        case UInt8(ascii: "p"): isMember = byte > 0x20 && byte < 0x7F && !isAlpha(byte) && !isDigit(byte)
        case UInt8(ascii: "s"): isMember = byte == 0x20 || (0x09...0x0D).contains(byte)
        case UInt8(ascii: "u"): isMember = byte >= 0x41 && byte <= 0x5A
        case UInt8(ascii: "w"): isMember = isAlpha(byte) || isDigit(byte)
        case UInt8(ascii: "x"): isMember = isDigit(byte) || (0x61...0x66).contains(byte | 0x20)
        default: return letter == byte
        }
        guard isAlpha(letter) else { return letter == byte }
        return letter & 0x20 == 0 ? !isMember : isMember
    }

    private static func isAlpha(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }
    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}

/// A search. Indices into the pattern are valid, because the pattern was checked.
private struct Matcher {
    /// Maximum nesting depth of attempts, as in Lua (MAXCCALLS).
    private static let maximumNested = 200

    private enum Length: Equatable {
        case open
        case position
        case closed(Int)
    }

    let pattern: [UInt8]
    let text: [UInt8]
    private var captures: [(start: Int, length: Length)] = []
    private var stepsLeft: Int
    private var depth = 0
    private(set) var isExhausted = false

    init(pattern: [UInt8], text: [UInt8]) {
        self.pattern = pattern
        self.text = text
        stepsLeft = LuaPattern.steps(for: text.count)
    }

    mutating func firstMatch(from start: Int, notEndingAt end: Int?) -> PatternMatch? {
        guard start <= text.count else { return nil }
        for place in start...text.count {
            if let match = match(at: place, from: 0), match.range.upperBound != end { return match }
            if isExhausted { return nil }
        }
        return nil
    }

    mutating func match(at start: Int, from first: Int) -> PatternMatch? {
        captures.removeAll(keepingCapacity: true)
        depth = 0
        guard let end = attempt(start, first), !isExhausted else { return nil }
        return PatternMatch(
            range: start..<end,
            captures: captures.map { capture in
                if case .closed(let length) = capture.length { return .range(capture.start..<capture.start + length) }
                return .position(capture.start + 1)
            }
        )
    }

    /// Counts a comparison; returns false if the limit is exceeded.
    private mutating func step() -> Bool {
        stepsLeft -= 1
        if stepsLeft < 0 { isExhausted = true }
        return !isExhausted
    }

    /// Returns the end of the match of the pattern from `item` on with the text from `place` on; nil if it does not
    /// match.
    private mutating func attempt(_ place: Int, _ item: Int) -> Int? {
        var (place, item) = (place, item)
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.maximumNested else {
            isExhausted = true
            return nil
        }
        while item < pattern.count {
            guard step() else { return nil }
            switch pattern[item] {
            case UInt8(ascii: "("):
                return pattern[item + 1] == UInt8(ascii: ")")
                    ? capture(place, item + 2, .position) : capture(place, item + 1, .open)
            case UInt8(ascii: ")"): return endCapture(place, item + 1)
            case UInt8(ascii: "$") where item + 1 == pattern.count: return place == text.count ? place : nil
            case UInt8(ascii: "%") where pattern[item + 1] == UInt8(ascii: "b"):
                guard let end = balance(place, pattern[item + 2], pattern[item + 3]) else { return nil }
                (place, item) = (end, item + 4)
                continue
            case UInt8(ascii: "%") where pattern[item + 1] == UInt8(ascii: "f"):
                let end = endOfSingle(item + 2)
                let before = place == 0 ? 0 : text[place - 1]
                let after = place == text.count ? 0 : text[place]
                guard !isInSet(before, item + 2, end - 1), isInSet(after, item + 2, end - 1) else { return nil }
                item = end
                continue
            default: break
            }
            let end = endOfSingle(item)
            switch end < pattern.count ? pattern[end] : 0 {
            case UInt8(ascii: "?"):
                if matchesOne(place, item, end), let rest = attempt(place + 1, end + 1) { return rest }
                item = end + 1
            case UInt8(ascii: "+"): return matchesOne(place, item, end) ? matchLongest(place + 1, item, end) : nil
            case UInt8(ascii: "*"): return matchLongest(place, item, end)
            case UInt8(ascii: "-"): return shortest(place, item, end)
            default:
                guard matchesOne(place, item, end) else { return nil }
                (place, item) = (place + 1, end)
            }
        }
        return place
    }

    private mutating func matchLongest(_ place: Int, _ item: Int, _ end: Int) -> Int? {
        var count = 0
        while matchesOne(place + count, item, end) {
            guard step() else { return nil }
            count += 1
        }
        while count >= 0 {
            if let rest = attempt(place + count, end + 1) { return rest }
            if isExhausted { return nil }
            count -= 1
        }
        return nil
    }

    private mutating func shortest(_ place: Int, _ item: Int, _ end: Int) -> Int? {
        var place = place
        while true {
            if let rest = attempt(place, end + 1) { return rest }
            guard step(), matchesOne(place, item, end) else { return nil }
            place += 1
        }
    }

    private mutating func capture(_ place: Int, _ item: Int, _ length: Length) -> Int? {
        captures.append((place, length))
        if let rest = attempt(place, item) { return rest }
        captures.removeLast()
        return nil
    }

    private mutating func endCapture(_ place: Int, _ item: Int) -> Int? {
        guard let open = captures.lastIndex(where: { $0.length == .open }) else { return nil }
        captures[open].length = .closed(place - captures[open].start)
        if let rest = attempt(place, item) { return rest }
        captures[open].length = .open
        return nil
    }

    private mutating func balance(_ place: Int, _ begin: UInt8, _ end: UInt8) -> Int? {
        guard place < text.count, text[place] == begin else { return nil }
        var level = 1
        var index = place + 1
        while index < text.count {
            guard step() else { return nil }
            if text[index] == end {
                level -= 1
                if level == 0 { return index + 1 }
            } else if text[index] == begin {
                level += 1
            }
            index += 1
        }
        return nil
    }

    private func endOfSingle(_ item: Int) -> Int {
        var next = item + 1
        switch pattern[item] {
        case UInt8(ascii: "%"): return next + 1
        case UInt8(ascii: "["):
            if pattern[next] == UInt8(ascii: "^") { next += 1 }
            repeat {
                if pattern[next] == UInt8(ascii: "%") { next += 1 }
                next += 1
            } while pattern[next] != UInt8(ascii: "]")
            return next + 1
        default: return next
        }
    }

    private func matchesOne(_ place: Int, _ item: Int, _ end: Int) -> Bool {
        guard place < text.count else { return false }
        let byte = text[place]
        return switch pattern[item] {
        case UInt8(ascii: "."): true
        case UInt8(ascii: "%"): LuaPattern.matches(byte, class: pattern[item + 1])
        case UInt8(ascii: "["): isInSet(byte, item, end - 1)
        case let literal: literal == byte
        }
    }

    /// Returns whether a byte is in the set from `first` (`[`) to `last` (`]`).
    private func isInSet(_ byte: UInt8, _ first: Int, _ last: Int) -> Bool {
        var index = first + 1
        var isMember = true
        if pattern[index] == UInt8(ascii: "^") {
            isMember = false
            index += 1
        }
        while index < last {
            if pattern[index] == UInt8(ascii: "%") {
                if LuaPattern.matches(byte, class: pattern[index + 1]) { return isMember }
                index += 2
            } else if index + 2 < last, pattern[index + 1] == UInt8(ascii: "-") {
                if pattern[index] <= byte, byte <= pattern[index + 2] { return isMember }
                index += 3
            } else {
                if pattern[index] == byte { return isMember }
                index += 1
            }
        }
        return !isMember
    }
}
