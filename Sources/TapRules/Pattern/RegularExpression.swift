/// A regular expression without back references, matched in time proportional to the text (a Pike VM).
///
/// Supports literals, `.`, classes `[…]` and `\d \w \s` with their complements (ASCII), groups `(…)` and `(?:…)`, `|`,
/// `* + ? {n,m}` and their non-greedy forms, `^`, `$`, `\b`, `\B`, and `(?i)` at the beginning (ASCII letters only). Of
/// several matches with the same start, the result is the one that a backtracking matcher such as Perl's finds first.
///
/// The text is read as UTF-8: `.` and a class match a whole character. An invalid byte counts as one character, which
/// `.` and complements match. Offsets are in bytes.
package struct RegularExpression: Sendable, Equatable {
    /// An instruction of the compiled program.
    enum Instruction: Sendable, Equatable {
        case character(UInt32)
        case set(Int)
        /// Any character except a line feed.
        case any
        /// Continues at both targets; the first is preferred.
        case split(Int, Int)
        case jump(Int)
        case save(Int)
        case textStart
        case textEnd
        case wordBoundary(Bool)
        case match
    }

    /// A set of characters.
    struct CharacterSet: Sendable, Equatable {
        var ranges: [ClosedRange<UInt32>] = []
        var isComplement = false

        func contains(_ character: UInt32) -> Bool {
            ranges.contains { $0.contains(character) } != isComplement
        }
    }

    /// Maximum number of instructions, which determines the cost per byte of text.
    static let maximumInstructions = 4096
    /// Maximum bound in `{n,m}`.
    static let maximumRepetitions = 1000
    /// Maximum nesting depth of groups.
    static let maximumDepth = 64
    /// Maximum number of capturing groups, as in Lua.
    static let maximumCaptures = 32

    private let program: [Instruction]
    private let sets: [CharacterSet]
    private let ignoresCase: Bool
    /// Number of capturing groups.
    let captureCount: Int

    /// The longest literal text that every match contains, in UTF-8; nil if there is none. Only the part before the
    /// first branch is searched.
    var literal: [UInt8]? {
        guard !ignoresCase else { return nil }
        var longest: [UInt8] = []
        var run: [UInt8] = []
        for instruction in program {
            switch instruction {
            case .character(let scalar):
                run += Unicode.Scalar(scalar).map { Array(String($0).utf8) } ?? []
                if run.count > longest.count { longest = run }
                continue
            case .split, .jump, .match: return longest.isEmpty ? nil : longest
            case .save, .textStart, .textEnd, .wordBoundary: continue
            case .set, .any: run = []
            }
        }
        return nil
    }

    /// Compiles an expression.
    ///
    /// - Throws: ``PatternFault`` if it is malformed, too large, or has a back reference or lookaround.
    package init(_ expression: [UInt8]) throws(PatternFault) {
        var parser = RegularExpressionParser(expression)
        let node = try parser.parse()
        var compiler = RegularExpressionCompiler()
        try compiler.compile(node)
        program = compiler.program
        sets = compiler.sets
        ignoresCase = parser.ignoresCase
        captureCount = parser.captureCount
    }

    /// Returns the maximum number of thread steps of all searches in a text of `count` bytes.
    static func steps(for count: Int) -> Int { 1_000_000 + 256 * count }

    /// Returns whether any part of a text matches.
    package func matches(_ text: [UInt8]) throws(PatternTooComplex) -> Bool { try firstMatch(in: text) != nil }

    /// Returns the leftmost match.
    func firstMatch(in text: [UInt8]) throws(PatternTooComplex) -> PatternMatch? {
        var run = Run(self, text)
        return try firstMatch(&run, from: 0)
    }

    /// Calls `body` with each match from left to right until it returns false.
    func forEachMatch(in text: [UInt8], _ body: (PatternMatch) -> Bool) throws(PatternTooComplex) {
        var run = Run(self, text)
        var start = 0
        while start <= text.count, let match = try firstMatch(&run, from: start), body(match) {
            let end = match.range.upperBound
            start = match.range.isEmpty ? end + Self.decode(text, end).length : end
        }
    }

    private func firstMatch(_ run: inout Run, from start: Int) throws(PatternTooComplex) -> PatternMatch? {
        let found = run.search(from: start)
        guard run.stepsLeft >= 0 else { throw PatternTooComplex() }
        guard let slots = found, slots[0] >= 0, slots[1] >= slots[0] else { return nil }
        return PatternMatch(
            range: slots[0]..<slots[1],
            captures: (0..<captureCount).map { group in
                let (first, last) = (slots[2 * group + 2], slots[2 * group + 3])
                return first >= 0 && last >= first ? .range(first..<last) : .unset
            }
        )
    }

    /// Returns the character at an offset of the text and its length in bytes.
    fileprivate static func decode(_ text: [UInt8], _ place: Int) -> (character: UInt32, length: Int) {
        guard place < text.count else { return (0, 1) }
        let first = text[place]
        guard first >= 0x80 else { return (UInt32(first), 1) }
        var decoder = Unicode.UTF8()
        var bytes = text[place..<min(place + 4, text.count)].makeIterator()
        if case .scalarValue(let scalar) = decoder.decode(&bytes) {
            return (scalar.value, scalar.utf8.count)
        }
        // A value beyond Unicode, so that only `.` and complements match it.
        return (0x110000 + UInt32(first), 1)
    }

    /// The searches in one text. Threads of the Pike VM are in order of preference.
    private struct Run {
        private struct Thread {
            var instruction: Int
            var slots: [Int]
        }

        private let expression: RegularExpression
        private let text: [UInt8]
        private var threads: [Thread] = []
        private var next: [Thread] = []
        /// The last step at which each instruction was reached.
        private var reached: [Int]
        private var stepNumber = 0
        /// The remaining cost of thread steps; negative if the search was stopped.
        private(set) var stepsLeft: Int
        /// The cost of a thread step, which includes copying the slots.
        private let cost: Int

        init(_ expression: RegularExpression, _ text: [UInt8]) {
            self.expression = expression
            self.text = text
            reached = Array(repeating: -1, count: expression.program.count)
            stepsLeft = RegularExpression.steps(for: text.count)
            cost = 1 + expression.captureCount / 4
        }

        mutating func search(from start: Int) -> [Int]? {
            let none = Array(repeating: -1, count: 2 * expression.captureCount + 2)
            var found: [Int]?
            var place = start
            threads.removeAll(keepingCapacity: true)
            stepNumber += 1
            while place <= text.count, stepsLeft >= 0 {
                if found == nil { add(0, none, place, isNext: false) }
                if threads.isEmpty, found != nil { break }
                var (character, length) = RegularExpression.decode(text, place)
                if expression.ignoresCase { character = RegularExpression.folded(character) }
                stepNumber += 1
                next.removeAll(keepingCapacity: true)
                for thread in threads {
                    let isMatched: Bool
                    switch expression.program[thread.instruction] {
                    case .match:
                        found = thread.slots
                        isMatched = false
                    case .character(let wanted): isMatched = place < text.count && wanted == character
                    case .set(let index): isMatched = place < text.count && expression.sets[index].contains(character)
                    case .any: isMatched = place < text.count && character != 0x0A
                    default: isMatched = false
                    }
                    // The remaining threads are less preferred than the match.
                    if case .match = expression.program[thread.instruction] { break }
                    if isMatched { add(thread.instruction + 1, thread.slots, place + length, isNext: true) }
                }
                swap(&threads, &next)
                place += length
            }
            return found
        }

        /// Adds a thread and all threads that it reaches without reading a character, at most one per instruction and
        /// step.
        private mutating func add(_ first: Int, _ slots: [Int], _ place: Int, isNext: Bool) {
            var waiting = [Thread(instruction: first, slots: slots)]
            while var thread = waiting.popLast() {
                let index = thread.instruction
                stepsLeft -= cost
                guard reached[index] != stepNumber else { continue }
                reached[index] = stepNumber
                switch expression.program[index] {
                case .jump(let target):
                    thread.instruction = target
                    waiting.append(thread)
                case .split(let preferred, let other):
                    waiting.append(Thread(instruction: other, slots: thread.slots))
                    thread.instruction = preferred
                    waiting.append(thread)
                case .save(let slot):
                    thread.slots[slot] = place
                    thread.instruction = index + 1
                    waiting.append(thread)
                case .textStart: if place == 0 { advance(&thread, &waiting) }
                case .textEnd: if place == text.count { advance(&thread, &waiting) }
                case .wordBoundary(let isWanted): if isBoundary(place) == isWanted { advance(&thread, &waiting) }
                case .character, .set, .any, .match: isNext ? next.append(thread) : threads.append(thread)
                }
            }
        }

        private func advance(_ thread: inout Thread, _ waiting: inout [Thread]) {
            thread.instruction += 1
            waiting.append(thread)
        }

        private func isBoundary(_ place: Int) -> Bool {
            let before = place > 0 && RegularExpression.isWord(text[place - 1])
            let after = place < text.count && RegularExpression.isWord(text[place])
            return before != after
        }
    }

    private static func isWord(_ byte: UInt8) -> Bool {
        byte == 0x5F || (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
    }

    /// Converts ASCII capital letters to lower case.
    static func folded(_ character: UInt32) -> UInt32 {
        (0x41...0x5A).contains(character) ? character | 0x20 : character
    }
}
