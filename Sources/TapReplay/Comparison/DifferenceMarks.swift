internal import XMPPCore

/// The parts of an item's text that differ, so that a report can mark them.
struct DifferenceMarks {
    /// A place in the item: its path without namespaces, its number among siblings of the same name, and its value.
    private struct Place {
        let path: [String]
        let numbers: [Int]
        let value: String
        let range: Range<Int>
    }

    /// The ranges in UTF-8 bytes of the text, in order and without overlaps.
    private(set) var ranges: [Range<Int>] = []

    /// - Parameters:
    ///   - text: The item.
    ///   - values: The path of each difference with the value of this side; nil if this side has none.
    init(_ text: String, _ values: [(path: String, value: String?)]) {
        let wanted = values.filter { $0.value != nil }
        guard !wanted.isEmpty else { return }
        let places = Self.places(Array(text.utf8))
        var found: [Range<Int>] = []
        for (path, value) in wanted {
            let (names, numbers) = Self.parts(path)
            let candidates = places.filter { $0.path == names }
            let isElement = names.last.map { !$0.hasPrefix("@") && $0 != "text()" } == true
            let numbered = candidates.first { zip($0.numbers, numbers).allSatisfy { $1 == 0 || $0 == $1 } }
            // The number counts siblings on the recorded side. The live side may have another order, so the value
            // decides.
            let equal = candidates.first { $0.value == value }
            if let place = isElement || numbered?.value == value ? numbered : equal ?? numbered {
                found.append(place.range)
            }
        }
        for range in found.sorted(by: { $0.lowerBound < $1.lowerBound })
        where range.lowerBound >= ranges.last?.upperBound ?? 0 {
            ranges.append(range)
        }
    }

    /// Returns the names of a path without namespaces, and the number of each name; 0 if a name has no number.
    private static func parts(_ path: String) -> (names: [String], numbers: [Int]) {
        var names: [String] = []
        var numbers: [Int] = []
        var name = ""
        var number = ""
        var (isInBraces, isInNumber) = (false, false)
        func end() {
            names.append(name)
            numbers.append(Int(number) ?? 0)
            (name, number) = ("", "")
        }
        for character in path {
            switch character {
            case "{": isInBraces = true
            case "}": isInBraces = false
            case _ where isInBraces: break
            case "[": isInNumber = true
            case "]": isInNumber = false
            case "/": end()
            default: if isInNumber { number.append(character) } else { name.append(character) }
            }
        }
        end()
        return (names, numbers)
    }

    private static func places(_ item: [UInt8]) -> [Place] {
        struct Key: Hashable {
            let name: String
            let namespace: Namespace
        }
        var places: [Place] = []
        var path: [String] = []
        var numbers: [Int] = []
        var counts: [[Key: Int]] = [[:]]
        var reader = ItemReader()
        reader.begin()
        let span = item.span
        func add(_ name: String, _ value: String, _ range: Range<Int>) {
            places.append(Place(path: path + [name], numbers: numbers + [0], value: value, range: range))
        }
        while let token = reader.next(span) {
            switch token {
            case .start:
                let key = Key(name: span.slice(reader.name).string(), namespace: reader.namespace)
                let number = counts[counts.count - 1][key, default: 0] + 1
                counts[counts.count - 1][key] = number
                path.append(key.name)
                numbers.append(number)
                counts.append([:])
                places.append(Place(path: path, numbers: numbers, value: "", range: reader.tagRange.range))
                for index in 0..<reader.attributeCount {
                    let attribute = reader.attribute(index, span)
                    guard !attribute.isDeclaration else { continue }
                    var value: [UInt8] = []
                    AttributeValue.decode(span.slice(attribute.value), into: &value)
                    let name = span.slice(attribute.name).string()
                    let prefix = attribute.namespace == .xml ? "@xml:" : "@"
                    add(prefix + name, String(decoding: value, as: UTF8.self), attribute.value.range)
                }
            case .text(let range): add("text()", span.slice(range).string(), range.range)
            case .section(let range, _): add("text()", span.slice(range).string(), range.range)
            case .end:
                guard counts.count > 1, !path.isEmpty else { return places }
                path.removeLast()
                numbers.removeLast()
                counts.removeLast()
            case .fault: return places
            }
        }
        return places
    }

    /// Returns the text after passing its marked and its plain parts through the given functions.
    func text(_ text: String, marked: (String) -> String, plain: (String) -> String) -> String {
        let bytes = Array(text.utf8)
        func part(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }
        var result = ""
        var end = 0
        for range in ranges where range.upperBound <= bytes.count {
            result += plain(part(end..<range.lowerBound)) + marked(part(range))
            end = range.upperBound
        }
        return result + plain(part(end..<bytes.count))
    }
}

extension Divergence {
    /// The ranges of the differing parts in the recorded item.
    var recordedMarks: DifferenceMarks {
        DifferenceMarks(recorded?.text ?? "", differences.map { ($0.path, $0.recorded) })
    }
    /// The ranges of the differing parts in the live item.
    var liveMarks: DifferenceMarks { DifferenceMarks(live?.text ?? "", differences.map { ($0.path, $0.live) }) }
}
