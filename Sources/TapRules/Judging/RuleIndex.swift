package import TapRecord
package import XMPPCore

/// Preselects the rules that can match an item by its head and the names of its children.
///
/// Excluded rules cannot match; selected rules may.
package struct RuleIndex: Sendable {
    /// The rules that can match items of a stage, direction and kind, before or after the login.
    ///
    /// A class, because copying a structure with these arrays for each item is slow.
    final class Slot: Sendable {
        /// The rule numbers in ascending order. The bit sets refer to positions in this array.
        let rules: [Int]
        /// For each type, the rules that can match it; empty if no rule tests the type.
        fileprivate let byType: [[UInt64]]
        /// The rules by required element.
        fileprivate let elements: KeyedRules
        /// The rules by required address.
        fileprivate let addresses: AddressedRules

        fileprivate init(_ rules: [Int], of all: [Rule]) {
            self.rules = rules
            byType = Self.byType(rules.map { all[$0].types })
            elements = KeyedRules(rules.map { all[$0].neededKey })
            addresses = AddressedRules(rules.map { all[$0] })
        }

        fileprivate var isEmpty: Bool { rules.isEmpty }
        fileprivate var wordCount: Int { (rules.count + 63) / 64 }
    }

    private let slots: [Slot]
    /// One bit for each slot with rules.
    private let taken: UInt32

    /// - Parameter asks: Returns whether a rule applies after the login (`isOpen`) or before it.
    init(_ rules: [Rule], _ applies: (Rule, _ isOpen: Bool) -> Bool) {
        var slots = Array(repeating: [Int](), count: 32)
        for (number, rule) in rules.enumerated() {
            for direction in Direction.allCases where rule.chain.includes(direction) && !rule.excludes(direction) {
                for kind in [StanzaHead.Kind.message, .presence, .iq, .nonza] where rule.kinds.contains(RuleKinds(kind))
                {
                    for isOpen in [false, true] where applies(rule, isOpen) {
                        slots[Self.place(rule.chain.stage, direction, isOpen, kind)].append(number)
                    }
                }
            }
        }
        self.slots = slots.map { Slot($0, of: rules) }
        taken = slots.indices.reduce(0) { slots[$1].isEmpty ? $0 : $0 | 1 << UInt32($1) }
    }

    private static func place(_ stage: Int, _ direction: Direction, _ isOpen: Bool, _ kind: StanzaHead.Kind) -> Int {
        let number = RuleKinds(kind).rawValue.trailingZeroBitCount
        return stage * stageSlots + (Int(direction.rawValue) * 2 + (isOpen ? 1 : 0)) * 4 + number
    }

    /// Number of slots of a stage.
    private static let stageSlots = 16

    /// Returns the rules of a stage that can match an item with these properties.
    func rules(_ stage: Int, _ direction: Direction, isOpen: Bool, _ kind: StanzaHead.Kind) -> [Int] {
        slots[Self.place(stage, direction, isOpen, kind)].rules
    }

    /// Returns whether any rule can match an item with these properties.
    func mayMatch(_ direction: Direction, isOpen: Bool, _ kind: StanzaHead.Kind) -> Bool {
        let place = Self.place(0, direction, isOpen, kind)
        return taken >> UInt32(place) & (1 | 1 << UInt32(Self.stageSlots)) != 0
    }

    /// Selects the rules that can match the last item of a decoder; returns false if there are none.
    ///
    /// - Parameter jid: The session's full JID, nil until known; the default for absent addresses.
    package func select(
        _ head: StanzaHead,
        _ decoder: borrowing StreamDecoder,
        _ direction: Direction,
        isOpen: Bool,
        jid: String?,
        into selection: inout RuleSelection
    ) -> Bool {
        let place = Self.place(0, direction, isOpen, head.kind)
        selection.isMade = true
        let first = slots[place].select(head, decoder, jid, &selection.bits.0, &selection.scratch)
        let next = place + Self.stageSlots
        return slots[next].select(head, decoder, jid, &selection.bits.1, &selection.scratch) || first
    }
}

/// The rules to evaluate for an item: a bit set for each stage, with one bit for each rule of the slot.
package struct RuleSelection {
    fileprivate(set) var bits: ([UInt64], [UInt64]) = ([], [])
    fileprivate var scratch: [UInt64] = []
    /// False if all rules are evaluated.
    fileprivate(set) var isMade = false

    /// Selects all rules for the next item.
    package mutating func reset() { isMade = false }

    /// Returns the position of the next selected rule of a stage, from `place` on; a position past the end if there is
    /// none.
    func next(from place: Int, stage: Int) -> Int {
        isMade ? Self.next(from: place, stage == 0 ? bits.0 : bits.1) : place
    }

    private static func next(from place: Int, _ bits: [UInt64]) -> Int {
        var place = place
        while place >> 6 < bits.count {
            let rest = bits[place >> 6] >> UInt64(place & 63)
            if rest != 0 { return place + rest.trailingZeroBitCount }
            place = (place >> 6 + 1) << 6
        }
        return place
    }
}

/// A hash table from a required key to rules. The keys are hashes already, so the table does not hash them again.
struct KeyedRules {
    /// Bit set of the rules without a key; all rules if none has a key.
    private(set) var free: [UInt64] = []
    /// The keys of the table, with open addressing. The size is a power of two, at most a quarter of the entries are
    /// occupied, and 0 marks an empty entry.
    private var keys: [UInt64] = []
    private var rows: [UInt64] = []

    init() {}

    /// - Parameter keys: The key of each rule; nil if it has none.
    init(_ keys: [UInt64?]) {
        // 0 marks empty entries. A rule with key 0 is treated as one without a key, so that it is always evaluated.
        let keys = keys.map { $0 == 0 ? nil : $0 }
        let wordCount = (keys.count + 63) / 64
        free = Array(repeating: 0, count: wordCount)
        let different = Set(keys.compactMap(\.self))
        if !different.isEmpty {
            self.keys = Array(repeating: 0, count: 1 << (Int.bitWidth - (different.count * 4).leadingZeroBitCount))
            rows = Array(repeating: 0, count: self.keys.count * wordCount)
        }
        for (place, key) in keys.enumerated() {
            let bit = UInt64(1) << UInt64(place & 63)
            guard let key else {
                free[place >> 6] |= bit
                continue
            }
            let row = self.place(of: key)
            self.keys[row] = key
            rows[row * wordCount + place >> 6] |= bit
        }
    }

    var isEmpty: Bool { keys.isEmpty }

    /// Returns the position of a key, or of the empty entry for it.
    @inline(__always)
    private func place(of key: UInt64) -> Int {
        let mask = keys.count - 1
        var place = Int(truncatingIfNeeded: key) & mask
        while keys[place] != key, keys[place] != 0 { place = (place + 1) & mask }
        return place
    }

    /// Adds the rules with this key.
    @inline(__always)
    func add(_ key: UInt64, to selection: inout [UInt64]) {
        let place = place(of: key)
        guard keys[place] == key else { return }
        for word in 0..<selection.count { selection[word] |= rows[place * selection.count + word] }
    }
}

extension RuleIndex.Slot {
    /// - Parameter types: For each rule, a bit set of the types that it can match.
    private static func byType(_ types: [UInt32]) -> [[UInt64]] {
        guard types.contains(where: { $0 != ItemType.all }) else { return [] }
        var byType = Array(
            repeating: Array(repeating: UInt64(0), count: (types.count + 63) / 64),
            count: ItemType.count
        )
        for (place, types) in types.enumerated() {
            for type in 0..<ItemType.count where types >> UInt32(type) & 1 == 1 {
                byType[type][place >> 6] |= 1 << UInt64(place & 63)
            }
        }
        return byType
    }

    fileprivate func select(
        _ head: StanzaHead,
        _ decoder: borrowing StreamDecoder,
        _ jid: String?,
        _ selection: inout [UInt64],
        _ scratch: inout [UInt64]
    ) -> Bool {
        guard !isEmpty else { return false }
        let wordCount = wordCount
        if selection.count != wordCount { selection = Array(repeating: 0, count: wordCount) }
        for word in 0..<wordCount { selection[word] = elements.free[word] }
        if !elements.isEmpty, !addKeyed(head, decoder, to: &selection) {
            for word in 0..<wordCount { selection[word] = .max }
        }
        if !byType.isEmpty, let type = ItemType.of(head, decoder.bytes) {
            for word in 0..<wordCount { selection[word] &= byType[type][word] }
        }
        guard Self.hasAny(selection) else { return false }
        guard !addresses.isEmpty else { return true }
        addresses.exclude(head, decoder.bytes, jid, from: &selection, &scratch)
        return Self.hasAny(selection)
    }

    private static func hasAny(_ selection: [UInt64]) -> Bool {
        var any: UInt64 = 0
        for word in selection { any |= word }
        return any != 0
    }

    private static let ampersand = [UInt8(ascii: "&")]

    /// Adds the rules that require the item's element or a child; returns false if names need decoding.
    private func addKeyed(_ head: StanzaHead, _ decoder: borrowing StreamDecoder, to selection: inout [UInt64]) -> Bool
    {
        // Names and namespaces with character references cannot be compared as bytes.
        guard !head.isUnusual, !head.hasDoubtfulNamespace else { return false }
        let bytes = decoder.bytes
        let own = head.namespace.namespace
        add(ElementKey(of: .item, own, Span()), head.name, bytes, to: &selection)
        guard head.payloadName != nil else { return true }
        return decoder.forEachChild { child in
            let uri = bytes.slice(child.uri)
            // The namespace is declared outside the item or needs decoding.
            if child.namespace == .other, uri.isEmpty || uri.contains(Self.ampersand.span) { return false }
            add(ElementKey(of: .child, child.namespace, uri), child.name, bytes, to: &selection)
            if child.namespace == own { add(ElementKey(of: .ownChild), child.name, bytes, to: &selection) }
            return true
        } && own != .other
    }

    @inline(__always)
    private func add(_ key: ElementKey, _ name: ByteRange, _ bytes: Span<UInt8>, to selection: inout [UInt64]) {
        elements.add(key.value, to: &selection)
        elements.add(key.named(bytes.slice(name)).value, to: &selection)
    }
}

/// A hash of an element name. Different names rarely have the same hash.
private struct ElementKey {
    /// The element that a name refers to.
    enum Place: UInt64 {
        case item = 1
        case child
        /// A child in the item's own namespace.
        case ownChild
    }

    private(set) var value: UInt64

    /// Creates the key of an element with any name in the item's own namespace.
    init(of place: Place) { value = mixed(0xCBF2_9CE4_8422_2325, place.rawValue) }

    /// Creates the key of an element with any name in a namespace; `uri` distinguishes namespaces that are
    /// ``Namespace/other``. The keys of items have no `uri`, so the index does not distinguish these namespaces for items.
    init(of place: Place, _ namespace: Namespace, _ uri: Span<UInt8>) {
        self.init(of: place)
        value = mixed(value, UInt64(namespace.rawValue) + 1)
        if namespace == .other { add(uri) }
    }

    func named(_ name: Span<UInt8>) -> ElementKey {
        var key = self
        key.value = mixed(key.value, 0xFF)
        key.add(name)
        return key
    }

    private mutating func add(_ bytes: Span<UInt8>) {
        for index in bytes.indices { value = mixed(value, UInt64(bytes[index])) }
    }
}

/// Adds a byte to an FNV-1a hash, and folds the upper bits into the lower ones.
@inline(__always)
func mixed(_ hash: UInt64, _ byte: UInt64) -> UInt64 {
    let hash = (hash ^ byte) &* 0x0000_0100_0000_01B3
    return hash ^ hash >> 29
}

/// The types of items that the index distinguishes.
private enum ItemType {
    static let names: [StaticString] = [
        "get", "set", "result", "error", "chat", "normal", "groupchat", "headline", "available", "unavailable",
        "subscribe", "subscribed", "unsubscribe", "unsubscribed", "probe",
    ]
    static let none = names.count
    static let other = names.count + 1
    static let count = names.count + 2
    static let all = UInt32(1) << UInt32(count) - 1

    /// Returns the type of an item; nil if it needs decoding.
    static func of(_ head: StanzaHead, _ bytes: Span<UInt8>) -> Int? {
        guard let type = head.type else {
            return switch head.kind {
            case .message: 5
            case .presence: 8
            case .iq, .nonza: none
            }
        }
        return type.needsDecoding ? nil : number(of: bytes.slice(type.range))
    }

    static func number(of name: Span<UInt8>) -> Int {
        for index in names.indices where name.equals(names[index]) { return index }
        return other
    }
}

extension Rule {
    /// A bit set of the item types that the rule can match.
    fileprivate var types: UInt32 {
        var types = ItemType.all
        for condition in conditionsBeforeCounts {
            guard case .type(let named) = condition.test else { continue }
            var bits: UInt32 = 0
            for name in named { bits |= 1 << UInt32(ItemType.number(of: name.span)) }
            // A negated condition on unlisted types can be true for other unlisted types.
            if condition.isNegated { bits = ~bits | 1 << UInt32(ItemType.other) }
            types &= bits
        }
        return types
    }

    /// The key of the element or child that an item must have to match the rule; nil if the index cannot determine one.
    fileprivate var neededKey: UInt64? {
        var key: UInt64?
        for condition in conditionsBeforeCounts where !condition.isNegated {
            switch condition.test {
            case .payload(let namespace): return ElementKey(of: .child, namespace.namespace, namespace.uri.span).value
            case .inspect(let path, let inspection) where inspection.needsPlace:
                guard let step = path.steps.first else { continue }
                if let found = Self.key(.child, step) { return found }
            case .element(let step): key = key ?? Self.key(.item, step)
            default: break
            }
        }
        return key
    }

    private static func key(_ place: ElementKey.Place, _ step: StanzaPath.Step) -> UInt64? {
        guard let namespace = step.namespace else {
            // For items, the index does not distinguish namespaces that are not built in.
            return place == .child ? step.name.map { ElementKey(of: .ownChild).named($0.span).value } : nil
        }
        let uri = place == .item ? [] : namespace.uri
        let key = ElementKey(of: place, namespace.namespace, uri.span)
        return step.name.map { key.named($0.span).value } ?? key.value
    }
}

extension RuleTest.Inspection {
    /// Whether the condition can be true only if the path exists. An absent text is compared as an empty one, which the
    /// condition may match.
    fileprivate var needsPlace: Bool {
        switch self {
        case .exists, .equals: true
        case .contains(let text): text.literal.map { !$0.isEmpty } ?? false
        case .lua(let pattern): (try? pattern.firstMatch(in: [])) == .some(nil)
        case .regular(let expression): (try? expression.firstMatch(in: [])) == .some(nil)
        case .luaText: false
        }
    }
}
