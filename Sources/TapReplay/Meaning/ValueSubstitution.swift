internal import TapRecord
internal import XMPPCore

extension ValueBindings {
    /// An item with each bound value as it is on the other side; all other bytes stay as they are.
    ///
    /// A value is replaced where a rule says that one of its class stands there; accounts, domains and full JIDs wherever they
    /// stand as a whole word, the longest first.
    public func substituted(_ item: [UInt8], _ way: Way, rules: NoiseRules = NoiseRules()) -> [UInt8] {
        guard count > 0 else { return item }
        var templates = ItemTemplates()
        let number = templates.add(item, rules: rules)
        var substitution = ValueSubstitution(way)
        return substitution.filled(templates, number, from: self)
    }
}

/// Items with the places of their values, so that each is parsed once however many sessions send it.
struct ItemTemplates: Sendable {
    /// What a value is looked up as, before it is as an address, or as the addresses that stand in it as words.
    enum Meaning: Sendable {
        case none
        case bound(ValueClass)
        /// What follows the last `#`.
        case boundSuffix(ValueClass)

        init(_ action: NoiseRules.Action?) {
            switch action {
            case .bind(let valueClass), .follow(let valueClass): self = .bound(valueClass)
            case .bindSuffix(let valueClass): self = .boundSuffix(valueClass)
            default: self = .none
            }
        }
    }

    /// A value: an attribute's, or a run of text.
    struct Place: Sendable {
        /// Where it stands in ``bytes``.
        let range: Range<Int>
        /// The same, or where it stands without references.
        let value: Range<Int>
        let meaning: Meaning
        /// Its number among ``ids``.
        let id: Int?
        /// Its number among the addresses; nil of what is none.
        let address: Int?
        /// Whether one of ``words`` may stand in it.
        let hasWord: Bool
    }

    private struct Item: Sendable {
        let bytes: Range<Int>
        let places: Range<Int>
    }

    /// Ids that stand-ins are made for, with their numbers.
    let ids: [String: Int]
    /// Accounts, domains and full JIDs that have others on the other side.
    let words: Set<[UInt8]>
    private let isFirst: [Bool]
    private var items: [Item] = []
    /// All items, and behind each those of its values that stand in it with references.
    private(set) var bytes: [UInt8] = []
    private(set) var places: [Place] = []
    private var addresses: [String: Int] = [:]
    var addressCount: Int { addresses.count }

    init(ids: [String: Int] = [:], words: [String] = []) {
        self.ids = ids
        self.words = Set(words.map { Array($0.utf8) }.filter { !$0.isEmpty })
        isFirst = self.words.firstBytes
    }

    /// Where an item and its places are.
    func item(_ number: Int) -> (bytes: Range<Int>, places: Range<Int>) {
        (items[number].bytes, items[number].places)
    }

    /// Adds an item; what is no whole element has no places.
    ///
    /// - Returns: Its number.
    mutating func add(_ item: [UInt8], rules: NoiseRules) -> Int {
        let (start, firstPlace) = (bytes.count, places.count)
        bytes += item
        if !read(item.span, at: start, rules) { places.removeLast(places.count - firstPlace) }
        items.append(Item(bytes: start..<(start + item.count), places: firstPlace..<places.count))
        return items.count - 1
    }

    /// Goes through the item once with its bytes, and once with the element that the rules' places are of.
    ///
    /// - Returns: Whether it is one whole element.
    private mutating func read(_ item: Span<UInt8>, at start: Int, _ rules: NoiseRules) -> Bool {
        // The place of an element in a stream makes no difference here: the stream's own namespace is none in both readings.
        var elements = ElementReader()
        guard let root = elements.read(item) else { return false }
        var reader = ItemReader()
        reader.begin()
        var path: [Element] = []
        /// For each open element, its children that have not begun.
        var children: [ArraySlice<Element>] = []
        var found: [Int] = []
        var text = WireText()
        while let token = reader.next(item) {
            switch token {
            case .start:
                finish(&text, path, start, rules)
                let element = children.isEmpty ? root : children[children.count - 1].popFirst()
                guard let element else { return false }
                path.append(element)
                children.append(element.children[...])
                rules.fill(&found, for: path)
                for index in 0..<reader.attributeCount { add(reader.attribute(index, item), item, start, rules, found) }
            case .text(let range): text.append(text: range, of: item)
            case .section(let range, let markup): text.append(section: range, markup: markup, of: item)
            case .end:
                finish(&text, path, start, rules)
                _ = path.popLast()
                _ = children.popLast()
            case .fault: return false
            }
        }
        return true
    }

    private mutating func add(
        _ attribute: ItemReader.Attribute,
        _ item: Span<UInt8>,
        _ start: Int,
        _ rules: NoiseRules,
        _ found: [Int]
    ) {
        guard !attribute.isDeclaration else { return }
        var value: [UInt8] = []
        AttributeValue.decode(item.slice(attribute.value), into: &value)
        // A rule for an attribute of a namespace is rare enough to be left to whole words.
        let name = item.slice(attribute.name)
        let rule = attribute.namespace == .none ? rules.action(for: NoiseRules.key(name, Span()), found)?.1 : nil
        add(attribute.value, start, value, rule, isAddress: StanzaDigester.isAddress(name))
    }

    private mutating func finish(_ text: inout WireText, _ path: [Element], _ start: Int, _ rules: NoiseRules) {
        defer { text.removeAll() }
        guard !text.bytes.isEmpty, let element = path.last else { return }
        var found: [Int] = []
        rules.fill(&found, for: path)
        let rule = element.firstChild == nil ? rules.action(for: NoiseRules.textTarget, found)?.1 : nil
        add(text.range, start, text.bytes, rule, isAddress: false)
    }

    private mutating func add(
        _ range: ByteRange,
        _ start: Int,
        _ value: [UInt8],
        _ action: NoiseRules.Action?,
        isAddress: Bool
    ) {
        let range = (start + range.range.lowerBound)..<(start + range.range.upperBound)
        var plain = range
        if !bytes.span.extracting(range).equals(value.span) {
            plain = bytes.count..<(bytes.count + value.count)
            bytes += value
        }
        let text = String(decoding: value, as: UTF8.self)
        var id: Int?
        if case .bind(.stanzaID) = action { id = ids[text] }
        var address: Int?
        if isAddress {
            address = addresses[text] ?? addresses.count
            addresses[text] = address
        }
        let hasWord = !isAddress && mayHoldWord(value)
        places.append(
            Place(
                range: range,
                value: plain,
                meaning: Meaning(action),
                id: id,
                address: address,
                hasWord: hasWord
            )
        )
    }

    private func mayHoldWord(_ value: [UInt8]) -> Bool {
        guard !words.isEmpty else { return false }
        return value.indices.contains { index in
            isFirst[Int(value[index])] && words.contains { AddressNames.stands($0, at: index, in: value.span) }
        }
    }
}

/// Fills templates one way. What it knows of addresses it keeps until another address is bound.
struct ValueSubstitution {
    /// What an address is on the other side.
    private enum Known {
        case unknown, same
        case other([UInt8])
    }

    private let way: ValueBindings.Way
    /// The ``ValueBindings/addressVersion`` of what follows; nil before the first item.
    private var version: Int?
    private var addresses: [(text: [UInt8], other: [UInt8])] = []
    /// Of each byte, whether an address begins with it.
    private var isFirst: [Bool] = []
    /// Whether there are other addresses than the templates' words.
    private var hasOthers = false
    /// What the templates' addresses are on the other side, by their numbers.
    private var known: [Known] = []

    init(_ way: ValueBindings.Way) { self.way = way }

    /// An item with each bound value as it is on the other side. All calls are with the same bindings and templates.
    mutating func filled(_ templates: ItemTemplates, _ number: Int, from bindings: ValueBindings) -> [UInt8] {
        if version != bindings.addressVersion { learn(bindings, templates) }
        let item = templates.item(number)
        var result: [UInt8] = []
        result.reserveCapacity(item.bytes.count + 64)
        var copied = item.bytes.lowerBound
        for index in item.places {
            let place = templates.places[index]
            if let id = place.id, way == .toLive, bindings.isStoodInFor(id) {
                result.append(templates.bytes.span.extracting(copied..<place.range.upperBound))
                result.append(bindings.suffix.utf8Span.span)
                copied = place.range.upperBound
                continue
            }
            guard let changed = other(place, templates, bindings) else { continue }
            result.append(templates.bytes.span.extracting(copied..<place.range.lowerBound))
            if changed.contains(where: Self.isSpecial) {
                for byte in changed { Self.append(byte, to: &result) }
            } else {
                result += changed
            }
            copied = place.range.upperBound
        }
        result.append(templates.bytes.span.extracting(copied..<item.bytes.upperBound))
        return result
    }

    private mutating func learn(_ bindings: ValueBindings, _ templates: ItemTemplates) {
        version = bindings.addressVersion
        addresses = bindings.addresses(way).filter { $0.text != $0.other && !$0.text.isEmpty }
        isFirst = addresses.map(\.text).firstBytes
        hasOthers = addresses.contains { !templates.words.contains($0.text) }
        known = [Known](repeating: .unknown, count: templates.addressCount)
    }

    /// What a value is on the other side; nil where it is the same.
    private mutating func other(
        _ place: ItemTemplates.Place,
        _ templates: ItemTemplates,
        _ bindings: ValueBindings
    ) -> [UInt8]? {
        let value = templates.bytes.span.extracting(place.value)
        switch place.meaning {
        case .bound(let valueClass) where bindings.mayHold(valueClass):
            let text = value.string()
            if let bound = bindings.value(for: text, valueClass, way) { return bound == text ? nil : Array(bound.utf8) }
        case .boundSuffix(let valueClass) where bindings.mayHold(valueClass):
            if let mark = value.lastPlace(of: UInt8(ascii: "#")) {
                let suffix = value.extracting((mark + 1)...).string()
                if let bound = bindings.value(for: suffix, valueClass, way), bound != suffix {
                    return [UInt8](value.extracting(...mark)) + Array(bound.utf8)
                }
            }
        case .none, .bound, .boundSuffix: break
        }
        if let address = place.address { return self.address(address, value, bindings) }
        return place.hasWord || hasOthers ? words(value) : nil
    }

    private mutating func address(_ number: Int, _ value: Span<UInt8>, _ bindings: ValueBindings) -> [UInt8]? {
        switch known[number] {
        case .same: return nil
        case .other(let other): return other
        case .unknown: break
        }
        let text = value.string()
        let jid = bindings.jid(text, way)
        let other = jid == text ? words(value) : Array(jid.utf8)
        known[number] = other.map { .other($0) } ?? .same
        return other
    }

    /// A text with the addresses in it replaced; nil where none stands in it.
    private func words(_ value: Span<UInt8>) -> [UInt8]? {
        guard !addresses.isEmpty else { return nil }
        var result: [UInt8] = []
        var copied = 0
        var index = 0
        while index < value.count {
            guard isFirst[Int(value[index])], index == 0 || AddressNames.mayPrecede(value[index - 1]),
                let found = addresses.first(where: { AddressNames.stands($0.text, at: index, in: value) })
            else {
                index += 1
                continue
            }
            result.append(value.extracting(copied..<index))
            result += found.other
            index += found.text.count
            copied = index
        }
        guard copied > 0 else { return nil }
        result.append(value.extracting(copied...))
        return result
    }

    private static func isSpecial(_ byte: UInt8) -> Bool {
        byte == 0x22 || byte == 0x26 || byte == 0x27 || byte == 0x3C || byte == 0x3E
    }

    private static func append(_ byte: UInt8, to bytes: inout [UInt8]) {
        switch byte {
        case UInt8(ascii: "&"): bytes += "&amp;".utf8
        case UInt8(ascii: "<"): bytes += "&lt;".utf8
        case UInt8(ascii: ">"): bytes += "&gt;".utf8
        case UInt8(ascii: "'"): bytes += "&apos;".utf8
        case UInt8(ascii: "\""): bytes += "&quot;".utf8
        default: bytes.append(byte)
        }
    }
}

extension Sequence<[UInt8]> {
    /// Of each byte, whether one of the texts begins with it.
    fileprivate var firstBytes: [Bool] {
        var isFirst = [Bool](repeating: false, count: 256)
        for text in self { if let byte = text.first { isFirst[Int(byte)] = true } }
        return isFirst
    }
}
