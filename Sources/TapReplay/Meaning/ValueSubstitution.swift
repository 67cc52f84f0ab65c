internal import TapRecord
internal import XMPPCore

extension ValueBindings {
    /// Returns an item with all bound values translated; other bytes are unchanged.
    ///
    /// A value is replaced if a rule of its class applies to its place; accounts, domains and full JIDs are replaced
    /// wherever they occur as whole words, longest first.
    package func substituted(_ item: [UInt8], _ way: Way, rules: NoiseRules = NoiseRules()) -> [UInt8] {
        guard count > 0 else { return item }
        var substitution = ValueSubstitution(way, ItemTemplates())
        var filled: [UInt8] = []
        substitution.fill(item, rules: rules, from: self, into: &filled)
        return filled
    }
}

/// Items with the places of their values: several sessions that share them parse each item once.
struct ItemTemplates: Sendable {
    /// How a value is looked up before it is treated as an address or as text with addresses.
    enum Meaning: Sendable {
        case none
        case bound(ValueClass)
        /// Like `bound`, but only for the part after the last `#`.
        case boundSuffix(ValueClass)

        init(_ action: NoiseRules.Action?) {
            switch action {
            case .bind(let valueClass), .follow(let valueClass): self = .bound(valueClass)
            case .bindSuffix(let valueClass): self = .boundSuffix(valueClass)
            default: self = .none
            }
        }
    }

    /// A value: that of an attribute, or a run of text.
    struct Place: Sendable {
        /// The position relative to the first byte of the item.
        let range: Range<UInt32>
        /// The position of the value with references resolved; equal to `range` if it contains none.
        let value: Range<UInt32>
        /// The number of the value in ``ids``; nil if the value is not in ``ids``.
        let id: UInt32?
        /// The number of the value among the addresses; nil if it is not an address.
        let address: UInt32?
        let meaning: Meaning
        /// Whether the value may contain one of ``addressTexts``.
        let hasWord: Bool

        /// Whether the value can change if only ``addressTexts`` are bound as addresses.
        fileprivate var isLikely: Bool {
            if case .none = meaning { address != nil || hasWord } else { true }
        }
    }

    /// An item: the range of its bytes, and the ranges of its places in ``places`` and in ``likelyPlaces``.
    struct Item: Sendable {
        let bytes: Range<Int>
        let places: Range<Int>
        let likelyPlaces: Range<Int>
    }

    /// Ids whose live ids can be derived, with their numbers.
    let ids: [String: Int]
    /// Accounts, domains and full JIDs that differ on the other side.
    let addressTexts: Set<[UInt8]>
    private let isFirst: [Bool]
    private(set) var items: [Item] = []
    /// The bytes of all items; each is followed by the resolved values of places with references.
    private(set) var bytes: [UInt8] = []
    private(set) var places: [Place] = []
    /// Copies of the places with values that are likely to change, kept together to read less memory.
    private(set) var likelyPlaces: [Place] = []
    private var addresses: [String: Int] = [:]
    var addressCount: Int { addresses.count }

    init(ids: [String: Int] = [:], addressTexts: [String] = []) {
        self.ids = ids
        self.addressTexts = Set(addressTexts.map { Array($0.utf8) }.filter { !$0.isEmpty })
        isFirst = self.addressTexts.firstBytes
    }

    /// Reserves memory for a number of items with a total size in bytes.
    mutating func reserve(_ count: Int, bytes size: Int) {
        items.reserveCapacity(count)
        bytes.reserveCapacity(size)
    }

    /// Removes the items. The numbers of addresses remain.
    mutating func removeItems() {
        items.removeAll(keepingCapacity: true)
        bytes.removeAll(keepingCapacity: true)
        places.removeAll(keepingCapacity: true)
        likelyPlaces.removeAll(keepingCapacity: true)
    }

    /// Adds an item; it has no places if it is not a single complete element.
    ///
    /// - Returns: The index of the item.
    mutating func add(_ item: [UInt8], rules: NoiseRules) -> Int {
        let (start, firstPlace) = (bytes.count, places.count)
        bytes += item
        // Offsets have 32 bits; real items are far shorter.
        let isShort = item.count < Int(UInt32.max) / 2
        if !isShort || !read(item.span, at: start, rules) { places.removeLast(places.count - firstPlace) }
        let firstLikely = likelyPlaces.count
        likelyPlaces += places[firstPlace...].lazy.filter(\.isLikely)
        items.append(
            Item(
                bytes: start..<(start + item.count),
                places: firstPlace..<places.count,
                likelyPlaces: firstLikely..<likelyPlaces.count
            )
        )
        return items.count - 1
    }

    /// Reads the item's bytes and its parsed element in parallel, to match rules with positions.
    ///
    /// - Returns: Whether the item is a single complete element.
    private mutating func read(_ item: Span<UInt8>, at start: Int, _ rules: NoiseRules) -> Bool {
        // Both parsers read the item without a stream header, so stream content is in no namespace.
        var elements = ElementReader()
        guard let root = elements.read(item) else { return false }
        var reader = ItemReader()
        reader.begin()
        var path: [Element] = []
        /// The remaining children of each open element.
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
        // Rules for attributes with a namespace are rare, so the values of these attributes are only searched for
        // addresses.
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
        let range = range.range
        var plain = range
        if !bytes.span.extracting((start + range.lowerBound)..<(start + range.upperBound)).equals(value.span) {
            plain = (bytes.count - start)..<(bytes.count - start + value.count)
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
                range: UInt32(clamping: range.lowerBound)..<UInt32(clamping: range.upperBound),
                value: UInt32(clamping: plain.lowerBound)..<UInt32(clamping: plain.upperBound),
                id: id.map { UInt32(clamping: $0) },
                address: address.map { UInt32(clamping: $0) },
                meaning: Meaning(action),
                hasWord: hasWord
            )
        )
    }

    private func mayHoldWord(_ value: [UInt8]) -> Bool {
        guard !addressTexts.isEmpty else { return false }
        return value.indices.contains { index in
            isFirst[Int(value[index])] && addressTexts.contains { AddressNames.occurs($0, at: index, in: value.span) }
        }
    }
}

/// Fills templates in one direction; caches translated addresses until another address is bound.
struct ValueSubstitution {
    /// The translation of an address.
    private enum Known {
        case unknown, same
        case other([UInt8])
    }

    private let way: ValueBindings.Way
    private var templates: ItemTemplates
    /// The ``ValueBindings/addressVersion`` of the cached state; nil before the first item.
    private var version: Int?
    private var suffix: [UInt8] = []
    private var addresses: [(text: [UInt8], other: [UInt8])] = []
    /// For each byte, whether an address begins with it.
    private var isFirst: [Bool] = []
    /// Whether addresses other than the templates' addresses are bound.
    private var hasOthers = false
    /// The cached translations of the templates' addresses, by number.
    private var known: [Known] = []

    init(_ way: ValueBindings.Way, _ templates: ItemTemplates) { (self.way, self.templates) = (way, templates) }

    /// Appends an item with all bound values translated. The next call removes its template, because the templates of a
    /// long script would need more memory than its items. Every call must pass the same bindings.
    mutating func fill(
        _ item: [UInt8],
        rules: NoiseRules,
        from bindings: ValueBindings,
        into output: inout [UInt8]
    ) {
        templates.removeItems()
        fill(templates.add(item, rules: rules), from: bindings, into: &output)
    }

    /// Appends the item of a template with all bound values translated. Every call must pass the same bindings.
    mutating func fill(_ number: Int, from bindings: ValueBindings, into output: inout [UInt8]) {
        if version != bindings.addressVersion { learn(bindings) }
        while known.count < templates.addressCount { known.append(.unknown) }
        let item = templates.items[number]
        let start = item.bytes.lowerBound
        var copied = start
        let searchesAll = hasOthers || bindings.hasServerValues
        for index in searchesAll ? item.places : item.likelyPlaces {
            let place = searchesAll ? templates.places[index] : templates.likelyPlaces[index]
            let end = start + Int(place.range.upperBound)
            if let id = place.id, way == .toLive, bindings.isStoodInFor(Int(id)) {
                output.append(templates.bytes.span.extracting(copied..<end))
                output += suffix
                copied = end
                continue
            }
            guard let changed = other(place, of: item, bindings) else { continue }
            output.append(templates.bytes.span.extracting(copied..<(start + Int(place.range.lowerBound))))
            if changed.contains(where: Self.isSpecial) {
                for byte in changed { Self.append(byte, to: &output) }
            } else {
                output += changed
            }
            copied = end
        }
        output.append(templates.bytes.span.extracting(copied..<item.bytes.upperBound))
    }

    private mutating func learn(_ bindings: ValueBindings) {
        version = bindings.addressVersion
        suffix = Array(bindings.suffix.utf8)
        addresses = bindings.addresses(way).filter { $0.text != $0.other && !$0.text.isEmpty }
        isFirst = addresses.map(\.text).firstBytes
        hasOthers = addresses.contains { !templates.addressTexts.contains($0.text) }
        known.removeAll(keepingCapacity: true)
    }

    /// Returns the translated value; nil if it does not change.
    private mutating func other(
        _ place: ItemTemplates.Place,
        of item: ItemTemplates.Item,
        _ bindings: ValueBindings
    ) -> [UInt8]? {
        let start = item.bytes.lowerBound
        let range = (start + Int(place.value.lowerBound))..<(start + Int(place.value.upperBound))
        // A copy, because the cache changes while the value is read.
        let bytes = templates.bytes
        let value = bytes.span.extracting(range)
        switch place.meaning {
        case .bound(let valueClass) where bindings.mayHold(valueClass):
            let text = value.string()
            if let bound = bindings.value(for: text, valueClass, way) { return bound == text ? nil : Array(bound.utf8) }
        case .boundSuffix(let valueClass) where bindings.mayHold(valueClass):
            if let whole = bindings.value(for: value.string(), valueClass, way) { return Array(whole.utf8) }
            if let mark = value.lastPlace(of: UInt8(ascii: "#")) {
                let suffix = value.extracting((mark + 1)...).string()
                if let bound = bindings.value(for: suffix, valueClass, way), bound != suffix {
                    return [UInt8](value.extracting(...mark)) + Array(bound.utf8)
                }
            }
        case .none, .bound, .boundSuffix: break
        }
        if bindings.hasServerValues, let other = bindings.text(value.string(), way) { return Array(other.utf8) }
        guard !addresses.isEmpty else { return nil }
        if let address = place.address { return self.address(Int(address), value, bindings) }
        return place.hasWord || hasOthers ? translated(value) : nil
    }

    private mutating func address(_ number: Int, _ value: Span<UInt8>, _ bindings: ValueBindings) -> [UInt8]? {
        switch known[number] {
        case .same: return nil
        case .other(let other): return other
        case .unknown: break
        }
        let text = value.string()
        let jid = bindings.jid(text, way)
        let other = jid == text ? translated(value) : Array(jid.utf8)
        known[number] = other.map { .other($0) } ?? .same
        return other
    }

    /// Returns a text with its addresses translated; nil if it contains none.
    private func translated(_ value: Span<UInt8>) -> [UInt8]? {
        guard !addresses.isEmpty else { return nil }
        var result: [UInt8] = []
        var copied = 0
        var index = 0
        while index < value.count {
            guard isFirst[Int(value[index])], index == 0 || AddressNames.mayPrecede(value[index - 1]),
                let found = addresses.first(where: { AddressNames.occurs($0.text, at: index, in: value) })
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
    /// For each byte, whether one of the texts begins with it.
    fileprivate var firstBytes: [Bool] {
        var isFirst = [Bool](repeating: false, count: 256)
        for text in self { if let byte = text.first { isFirst[Int(byte)] = true } }
        return isFirst
    }
}
