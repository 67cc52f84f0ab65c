/// What the preparation of addresses asks about code points, unpacked from ``UnicodeData`` when first asked.
///
/// Addresses of ASCII alone never come here. The tables take about 90 KB.
struct UnicodeTables: Sendable {
    /// The one instance; unpacking takes well under a millisecond.
    static let shared = UnicodeTables()

    /// Decompositions of type wide and narrow: half-width and full-width forms (RFC 8264 §5.2.1).
    let width: CodePointMap
    /// Simple lower case, one code point to one.
    let lowerCase: CodePointMap
    let canonical: CanonicalMaps

    /// Where runs of code points with the same properties begin.
    private let starts: [UInt32]
    /// The number of each run's properties in `records`.
    private let numbers: [UInt8]
    private let records: [CodePointProperties]
    /// The run in which each page of 256 code points begins.
    private let pages: [UInt16]

    private init() {
        width = CodePointMap(UnicodeData.width)
        lowerCase = CodePointMap(UnicodeData.lowerCase)
        canonical = CanonicalMaps(UnicodeData.decompositions)

        var records: [CodePointProperties] = []
        UnicodeData.records.withUTF8Buffer { text in
            var reader = PackedNumbers(text)
            while let bits = reader.next() { records.append(CodePointProperties(bits: bits)) }
        }
        self.records = records

        var starts: [UInt32] = []
        var numbers: [UInt8] = []
        var pages: [UInt16] = []
        UnicodeData.runs.withUTF8Buffer { text in
            var reader = PackedNumbers(text)
            var start: UInt32 = 0
            while let length = reader.next(), let number = reader.next() {
                while UInt32(pages.count) << 8 < start &+ length {
                    pages.append(UInt16(truncatingIfNeeded: starts.count))
                }
                starts.append(start)
                numbers.append(UInt8(truncatingIfNeeded: number))
                start &+= length
            }
        }
        self.starts = starts
        self.numbers = numbers
        self.pages = pages
    }

    /// The properties of a code point.
    subscript(scalar: Unicode.Scalar) -> CodePointProperties {
        let page = Int(scalar.value >> 8)
        // The run is one of those that begin between the run of this page's start and that of the next one's.
        var low = Int(pages[page])
        var high = page + 1 < pages.count ? Int(pages[page + 1]) : starts.count - 1
        while low < high {
            let middle = (low + high + 1) / 2
            if starts[middle] <= scalar.value { low = middle } else { high = middle - 1 }
        }
        return records[Int(numbers[low])]
    }
}

/// A map from single code points to single code points.
struct CodePointMap: Sendable {
    private let sources: [UInt32]
    private let targets: [Unicode.Scalar]

    fileprivate init(_ packed: StaticString) {
        var sources: [UInt32] = []
        var targets: [Unicode.Scalar] = []
        packed.withUTF8Buffer { text in
            var reader = PackedNumbers(text)
            var source: UInt32 = 0
            var distance: Int32 = 0
            while let step = reader.next(), let change = reader.nextSigned() {
                source &+= step
                distance &+= change
                guard let target = Unicode.Scalar(source &+ UInt32(bitPattern: distance)) else { continue }
                sources.append(source)
                targets.append(target)
            }
        }
        self.sources = sources
        self.targets = targets
    }

    /// What a code point is mapped to, or `nil` where it stays.
    subscript(scalar: Unicode.Scalar) -> Unicode.Scalar? {
        sources.position(of: scalar.value).map { targets[$0] }
    }
}

/// Canonical decompositions of one step, and the compositions that undo them (UAX #15).
struct CanonicalMaps: Sendable {
    private let sources: [UInt32]
    private let targets: [(first: Unicode.Scalar, second: Unicode.Scalar?)]
    /// The pairs that compose, each as `first << 32 | second`, sorted.
    private let pairs: [UInt64]
    private let composites: [Unicode.Scalar]

    fileprivate init(_ packed: StaticString) {
        var sources: [UInt32] = []
        var targets: [(first: Unicode.Scalar, second: Unicode.Scalar?)] = []
        var compositions: [(pair: UInt64, composite: Unicode.Scalar)] = []
        packed.withUTF8Buffer { text in
            var reader = PackedNumbers(text)
            var source: UInt32 = 0
            var first: UInt32 = 0
            while let step = reader.next(), let change = reader.nextSigned(), let second = reader.next() {
                source &+= step >> 1
                first &+= UInt32(bitPattern: change)
                guard let composite = Unicode.Scalar(source), let firstScalar = Unicode.Scalar(first) else { continue }
                sources.append(source)
                targets.append((firstScalar, second == 0 ? nil : Unicode.Scalar(second)))
                if step & 1 == 0, second != 0 { compositions.append((UInt64(first) << 32 | UInt64(second), composite)) }
            }
        }
        self.sources = sources
        self.targets = targets
        compositions.sort { $0.pair < $1.pair }
        pairs = compositions.map(\.pair)
        composites = compositions.map(\.composite)
    }

    /// What a code point decomposes into, in one step; `nil` where it does not.
    func decomposition(of scalar: Unicode.Scalar) -> (first: Unicode.Scalar, second: Unicode.Scalar?)? {
        sources.position(of: scalar.value).map { targets[$0] }
    }

    /// What two code points compose into, or `nil` where they stay two.
    func composite(of first: Unicode.Scalar, _ second: Unicode.Scalar) -> Unicode.Scalar? {
        pairs.position(of: UInt64(first.value) << 32 | UInt64(second.value)).map { composites[$0] }
    }
}

// MARK: -

/// Reads the numbers that generate.py writes; line ends are skipped.
private struct PackedNumbers {
    private let text: UnsafeBufferPointer<UInt8>
    private var position = 0

    init(_ text: UnsafeBufferPointer<UInt8>) { self.text = text }

    mutating func next() -> UInt32? {
        var value: UInt32 = 0
        var shift: UInt32 = 0
        while position < text.count {
            let byte = text[position]
            position += 1
            guard byte >= 0x30 else { continue }
            let group = UInt32(byte) - 0x30
            value |= (group & 31) << shift
            guard group >= 32 else { return value }
            shift += 5
        }
        return nil
    }

    mutating func nextSigned() -> Int32? {
        next().map { value in
            let half = Int32(bitPattern: value >> 1)
            return value & 1 == 0 ? half : -half - 1
        }
    }
}

extension Array where Element: Comparable {
    /// The position of an element in a sorted array.
    fileprivate func position(of element: Element) -> Int? {
        var low = 0
        var high = count
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < element { low = middle + 1 } else { high = middle }
        }
        return low < count && self[low] == element ? low : nil
    }
}
