internal import XMPPCore

/// The syntax tree of an expression.
indirect enum RegularExpressionNode {
    case empty
    case character(UInt32)
    case set(RegularExpression.CharacterSet)
    case any
    case textStart
    case textEnd
    case wordBoundary(Bool)
    case group(RegularExpressionNode, number: Int)
    case sequence([RegularExpressionNode])
    case choice([RegularExpressionNode])
    case repeated(RegularExpressionNode, minimum: Int, maximum: Int?, isGreedy: Bool)
}

/// Parses an expression.
struct RegularExpressionParser {
    private let text: [UInt8]
    private var index = 0
    private var depth = 0
    private(set) var captureCount = 0
    private(set) var ignoresCase = false

    init(_ text: [UInt8]) { self.text = text }

    mutating func parse() throws(PatternFault) -> RegularExpressionNode {
        if consume("(?i)") { ignoresCase = true }
        let node = try choice()
        guard index == text.count else { throw fault("\")\" without \"(\"") }
        return node
    }

    private func fault(_ message: String, at place: Int? = nil) -> PatternFault {
        PatternFault(message: message, offset: place ?? index)
    }

    private mutating func consume(_ word: StaticString) -> Bool {
        let count = word.utf8CodeUnitCount
        guard index + count <= text.count, text.span.extracting(index..<index + count).equals(word) else {
            return false
        }
        index += count
        return true
    }

    private mutating func choice() throws(PatternFault) -> RegularExpressionNode {
        var branches = [try sequence()]
        while consume("|") { branches.append(try sequence()) }
        return branches.count == 1 ? branches[0] : .choice(branches)
    }

    private mutating func sequence() throws(PatternFault) -> RegularExpressionNode {
        var nodes: [RegularExpressionNode] = []
        while index < text.count, text[index] != UInt8(ascii: "|"), text[index] != UInt8(ascii: ")") {
            nodes.append(try repetition())
        }
        return nodes.isEmpty ? .empty : nodes.count == 1 ? nodes[0] : .sequence(nodes)
    }

    private mutating func repetition() throws(PatternFault) -> RegularExpressionNode {
        let start = index
        let node = try atom()
        let (minimum, maximum): (Int, Int?)
        if consume("*") {
            (minimum, maximum) = (0, nil)
        } else if consume("+") {
            (minimum, maximum) = (1, nil)
        } else if consume("?") {
            (minimum, maximum) = (0, 1)
        } else if index < text.count, text[index] == UInt8(ascii: "{") {
            (minimum, maximum) = try bounds()
        } else {
            return node
        }
        switch node {
        case .textStart, .textEnd, .wordBoundary: throw fault("nothing to repeat", at: start)
        default: break
        }
        let isGreedy = !consume("?")
        if index < text.count, [UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?")].contains(text[index]) {
            throw fault("nothing to repeat")
        }
        return .repeated(node, minimum: minimum, maximum: maximum, isGreedy: isGreedy)
    }

    private mutating func bounds() throws(PatternFault) -> (Int, Int?) {
        let start = index
        index += 1
        guard let minimum = number() else {
            throw fault("a number must follow \"{\"; write \\{ for the character", at: start)
        }
        var maximum: Int? = minimum
        if consume(",") { maximum = number() }
        guard consume("}") else { throw fault("\"{\" without \"}\"", at: start) }
        guard max(minimum, maximum ?? 0) <= RegularExpression.maximumRepetitions else {
            throw fault("more than \(RegularExpression.maximumRepetitions) repetitions", at: start)
        }
        if let maximum, maximum < minimum { throw fault("the bounds are in the wrong order", at: start) }
        return (minimum, maximum)
    }

    private mutating func number() -> Int? {
        var value: Int?
        while index < text.count, (0x30...0x39).contains(text[index]) {
            value = min((value ?? 0) * 10 + Int(text[index] - 0x30), 1_000_000)
            index += 1
        }
        return value
    }

    private mutating func atom() throws(PatternFault) -> RegularExpressionNode {
        let start = index
        switch text[index] {
        case UInt8(ascii: "("): return try group()
        case UInt8(ascii: "["): return .set(try set())
        case UInt8(ascii: "."):
            index += 1
            return .any
        case UInt8(ascii: "^"):
            index += 1
            return .textStart
        case UInt8(ascii: "$"):
            index += 1
            return .textEnd
        case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"), UInt8(ascii: "{"):
            throw fault("nothing to repeat", at: start)
        case UInt8(ascii: "\\"):
            if consume("\\b") { return .wordBoundary(true) }
            if consume("\\B") { return .wordBoundary(false) }
            switch try escape() {
            case .character(let character): return .character(fold(character))
            case .set(let set): return .set(set)
            }
        default: return .character(fold(try character()))
        }
    }

    private func fold(_ character: UInt32) -> UInt32 {
        ignoresCase ? RegularExpression.folded(character) : character
    }

    private mutating func group() throws(PatternFault) -> RegularExpressionNode {
        let start = index
        depth += 1
        defer { depth -= 1 }
        guard depth <= RegularExpression.maximumDepth else {
            throw fault("groups nested deeper than \(RegularExpression.maximumDepth)", at: start)
        }
        var number: Int?
        if !consume("(?:") {
            index += 1
            if index < text.count, text[index] == UInt8(ascii: "?") {
                throw fault("\"(?\" is supported only as (?:…) and, at the beginning, as (?i)", at: start)
            }
            captureCount += 1
            guard captureCount <= RegularExpression.maximumCaptures else { throw fault("too many captures", at: start) }
            number = captureCount
        }
        let node = try choice()
        guard consume(")") else { throw fault("\"(\" without \")\"", at: start) }
        return number.map { .group(node, number: $0) } ?? node
    }

    private enum Escaped {
        case character(UInt32)
        case set(RegularExpression.CharacterSet)
    }

    private mutating func escape() throws(PatternFault) -> Escaped {
        let start = index
        index += 1
        guard index < text.count else { throw fault("\"\\\" at the end", at: start) }
        let letter = text[index]
        index += 1
        switch letter {
        case UInt8(ascii: "n"): return .character(0x0A)
        case UInt8(ascii: "r"): return .character(0x0D)
        case UInt8(ascii: "t"): return .character(0x09)
        case UInt8(ascii: "d"), UInt8(ascii: "D"): return .set(Self.set([0x30...0x39], letter))
        case UInt8(ascii: "w"), UInt8(ascii: "W"):
            return .set(Self.set([0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A], letter))
        case UInt8(ascii: "s"), UInt8(ascii: "S"): return .set(Self.set([0x09...0x0D, 0x20...0x20], letter))
        case UInt8(ascii: "x"):
            let digits = consume("{") ? hexadecimal(upTo: 6, closed: true) : hexadecimal(upTo: 2, closed: false)
            guard let digits, Unicode.Scalar(digits) != nil else { throw fault("not a Unicode character", at: start) }
            return .character(digits)
        case 0x30...0x39: throw fault("back references are not supported", at: start)
        case 0x61...0x7A, 0x41...0x5A: throw fault("an unknown escape", at: start)
        default:
            index -= 1
            return .character(try character())
        }
    }

    private mutating func hexadecimal(upTo maximum: Int, closed: Bool) -> UInt32? {
        var value: UInt32 = 0
        var count = 0
        while index < text.count, count < maximum, let digit = Character(Unicode.Scalar(text[index])).hexDigitValue {
            value = value << 4 | UInt32(digit)
            index += 1
            count += 1
        }
        guard count > 0, closed || count == maximum else { return nil }
        return !closed || consume("}") ? value : nil
    }

    private static func set(_ ranges: [ClosedRange<UInt32>], _ letter: UInt8) -> RegularExpression.CharacterSet {
        RegularExpression.CharacterSet(ranges: ranges, isComplement: letter & 0x20 == 0)
    }

    private mutating func set() throws(PatternFault) -> RegularExpression.CharacterSet {
        let start = index
        index += 1
        var set = RegularExpression.CharacterSet()
        set.isComplement = consume("^")
        var isFirst = true
        while true {
            guard index < text.count else { throw fault("\"[\" without \"]\"", at: start) }
            if !isFirst, consume("]") { break }
            isFirst = false
            if index + 1 < text.count, text[index] == UInt8(ascii: "["), text[index + 1] == UInt8(ascii: ":") {
                throw fault("classes such as [:alpha:] are not supported; write their characters")
            }
            guard let low = try member(&set) else { continue }
            guard index + 1 < text.count, text[index] == UInt8(ascii: "-"), text[index + 1] != UInt8(ascii: "]") else {
                set.ranges.append(low...low)
                continue
            }
            let place = index
            index += 1
            guard let high = try member(&set), high >= low else {
                throw fault("the range has no end after its beginning", at: place)
            }
            set.ranges.append(low...high)
        }
        if ignoresCase { fold(&set) }
        return set
    }

    /// Parses a character of a set; returns nil for a class, after adding its ranges.
    private mutating func member(_ set: inout RegularExpression.CharacterSet) throws(PatternFault) -> UInt32? {
        let start = index
        guard text[index] == UInt8(ascii: "\\") else { return try character() }
        switch try escape() {
        case .character(let character): return character
        case .set(let inner):
            guard !inner.isComplement else {
                throw fault("a complement such as \\D is not supported inside [ ]", at: start)
            }
            set.ranges += inner.ranges
            return nil
        }
    }

    /// Adds the lower-case letters for the capital letters of each range, because characters are compared in lower
    /// case.
    private func fold(_ set: inout RegularExpression.CharacterSet) {
        for range in set.ranges {
            let (low, high) = (max(range.lowerBound, 0x41), min(range.upperBound, 0x5A))
            if low <= high { set.ranges.append((low | 0x20)...(high | 0x20)) }
        }
    }

    private mutating func character() throws(PatternFault) -> UInt32 {
        guard index < text.count else { throw fault("a character is missing") }
        var decoder = Unicode.UTF8()
        var bytes = text[index..<min(index + 4, text.count)].makeIterator()
        guard case .scalarValue(let scalar) = decoder.decode(&bytes) else { throw fault("not UTF-8") }
        index += scalar.utf8.count
        return scalar.value
    }
}

/// Compiles a syntax tree.
struct RegularExpressionCompiler {
    private(set) var program: [RegularExpression.Instruction] = []
    private(set) var sets: [RegularExpression.CharacterSet] = []
    private var visits = 0

    mutating func compile(_ node: RegularExpressionNode) throws(PatternFault) {
        try emit(.save(0))
        try add(node)
        try emit(.save(1))
        try emit(.match)
    }

    private mutating func emit(_ instruction: RegularExpression.Instruction) throws(PatternFault) {
        guard program.count < RegularExpression.maximumInstructions else { throw Self.tooLarge }
        program.append(instruction)
    }

    private static var tooLarge: PatternFault {
        let maximum = RegularExpression.maximumInstructions
        return PatternFault(message: "the expression is too large: more than \(maximum) steps", offset: 0)
    }

    private mutating func add(_ node: RegularExpressionNode) throws(PatternFault) {
        // Limits nested repetitions of nodes that emit no instructions.
        visits += 1
        guard visits <= 16 * RegularExpression.maximumInstructions else { throw Self.tooLarge }
        switch node {
        case .empty: break
        case .character(let character): try emit(.character(character))
        case .set(let set):
            if let known = sets.firstIndex(of: set) {
                try emit(.set(known))
            } else {
                sets.append(set)
                try emit(.set(sets.count - 1))
            }
        case .any: try emit(.any)
        case .textStart: try emit(.textStart)
        case .textEnd: try emit(.textEnd)
        case .wordBoundary(let isWanted): try emit(.wordBoundary(isWanted))
        case .group(let inner, let number):
            try emit(.save(2 * number))
            try add(inner)
            try emit(.save(2 * number + 1))
        case .sequence(let nodes): for node in nodes { try add(node) }
        case .choice(let branches): try add(choice: branches[...])
        case .repeated(let inner, let minimum, let maximum, let isGreedy):
            for _ in 0..<minimum { try add(inner) }
            guard let maximum else { return try addLoop(inner, isGreedy) }
            var splits: [Int] = []
            for _ in minimum..<maximum {
                splits.append(program.count)
                try emit(.split(0, 0))
                try add(inner)
            }
            for split in splits { set(split, taking: split + 1, leaving: program.count, isGreedy) }
        }
    }

    private mutating func addLoop(_ node: RegularExpressionNode, _ isGreedy: Bool) throws(PatternFault) {
        let split = program.count
        try emit(.split(0, 0))
        try add(node)
        try emit(.jump(split))
        set(split, taking: split + 1, leaving: program.count, isGreedy)
    }

    private mutating func set(_ split: Int, taking inner: Int, leaving end: Int, _ isGreedy: Bool) {
        program[split] = isGreedy ? .split(inner, end) : .split(end, inner)
    }

    private mutating func add(choice branches: ArraySlice<RegularExpressionNode>) throws(PatternFault) {
        guard let first = branches.first else { return }
        guard branches.count > 1 else { return try add(first) }
        let split = program.count
        try emit(.split(0, 0))
        try add(first)
        let jump = program.count
        try emit(.jump(0))
        program[split] = .split(split + 1, program.count)
        try add(choice: branches.dropFirst())
        program[jump] = .jump(program.count)
    }
}
