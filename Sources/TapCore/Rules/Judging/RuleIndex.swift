internal import TapRecord
internal import XMPPCore

/// Which rules can hold for an item, as far as its head and the names of its children tell: the others are not asked.
///
/// What it leaves out cannot hold; what it leaves in need not.
struct RuleIndex: Sendable {
    /// Rules that can hold for items of a stage, a direction, a kind, before or after the session is open.
    struct Slot: Sendable {
        /// Their numbers, ascending. Elsewhere a rule is a bit by its place here.
        fileprivate(set) var rules: [Int] = []
        /// For each type the rules that can hold; empty where none asks for the type.
        fileprivate var byType: [[UInt64]] = []
        /// Rules that need no element of a certain name.
        fileprivate var free: [UInt64] = []
        /// Rules that do, by what they need; empty where none does.
        fileprivate var byKey: [UInt64: [UInt64]] = [:]
        /// A bit for each key of ``byKey``, by its lowest bits.
        fileprivate var keyFilter: UInt64 = 0

        fileprivate var isEmpty: Bool { rules.isEmpty }
        fileprivate var words: Int { (rules.count + 63) / 64 }
    }

    private let slots: [Slot]

    /// - Parameter asks: Whether a rule is to be asked, before or after the session is open.
    init(_ rules: [Rule], _ asks: (Rule, _ isOpen: Bool) -> Bool) {
        var slots = Array(repeating: Slot(), count: 32)
        for (number, rule) in rules.enumerated() {
            for direction in Direction.allCases where rule.chain.includes(direction) && !rule.excludes(direction) {
                for kind in [StanzaHead.Kind.message, .presence, .iq, .nonza] where rule.kinds.contains(RuleKinds(kind))
                {
                    for isOpen in [false, true] where asks(rule, isOpen) {
                        slots[Self.place(rule.chain.stage, direction, isOpen, kind)].rules.append(number)
                    }
                }
            }
        }
        for place in slots.indices where !slots[place].isEmpty { slots[place].fill(rules) }
        self.slots = slots
    }

    private static func place(_ stage: Int, _ direction: Direction, _ isOpen: Bool, _ kind: StanzaHead.Kind) -> Int {
        let number = RuleKinds(kind).rawValue.trailingZeroBitCount
        return ((stage * 2 + Int(direction.rawValue)) * 2 + (isOpen ? 1 : 0)) * 4 + number
    }

    /// The rules of a stage that can hold for such an item.
    func slot(_ stage: Int, _ direction: Direction, isOpen: Bool, _ kind: StanzaHead.Kind) -> Slot {
        slots[Self.place(stage, direction, isOpen, kind)]
    }

    /// Whether any rule can hold for such an item.
    func asks(_ direction: Direction, isOpen: Bool, _ kind: StanzaHead.Kind) -> Bool {
        !slots[Self.place(0, direction, isOpen, kind)].isEmpty || !slots[Self.place(1, direction, isOpen, kind)].isEmpty
    }

    /// Selects the rules that can hold for the last item of a decoder; false where none can.
    func select(
        _ head: StanzaHead,
        _ decoder: borrowing StreamDecoder,
        _ direction: Direction,
        isOpen: Bool,
        into selection: inout RuleSelection
    ) -> Bool {
        let first = slots[Self.place(0, direction, isOpen, head.kind)].select(head, decoder, into: &selection.words.0)
        let last = slots[Self.place(1, direction, isOpen, head.kind)].select(head, decoder, into: &selection.words.1)
        selection.isMade = true
        return first || last
    }
}

/// The rules that are to be asked about an item: for each stage a bit for each rule of its slot.
struct RuleSelection {
    fileprivate(set) var words: ([UInt64], [UInt64]) = ([], [])
    /// Otherwise all are asked.
    fileprivate(set) var isMade = false

    /// All rules are asked about the next item.
    mutating func reset() { isMade = false }

    /// Whether a rule is asked, by its place in the slot of its stage.
    func contains(_ place: Int, stage: Int) -> Bool {
        guard isMade else { return true }
        let words = stage == 0 ? words.0 : words.1
        return place >> 6 >= words.count || words[place >> 6] >> UInt64(place & 63) & 1 == 1
    }
}

extension RuleIndex.Slot {
    fileprivate mutating func fill(_ all: [Rule]) {
        let empty = Array(repeating: UInt64(0), count: words)
        free = empty
        var byType = Array(repeating: empty, count: ItemType.count)
        var asksTypes = false
        for (place, number) in rules.enumerated() {
            let bit = UInt64(1) << UInt64(place & 63)
            let types = all[number].types
            if types != ItemType.all { asksTypes = true }
            for type in 0..<ItemType.count where types >> UInt32(type) & 1 == 1 { byType[type][place >> 6] |= bit }
            if let key = all[number].neededKey {
                byKey[key, default: empty][place >> 6] |= bit
                keyFilter |= 1 << (key & 63)
            } else {
                free[place >> 6] |= bit
            }
        }
        if asksTypes { self.byType = byType }
    }

    fileprivate func select(_ head: StanzaHead, _ decoder: borrowing StreamDecoder, into selection: inout [UInt64])
        -> Bool
    {
        guard !isEmpty else { return false }
        if selection.count != words { selection = Array(repeating: 0, count: words) }
        for word in 0..<words { selection[word] = free[word] }
        if keyFilter != 0, !addKeyed(head, decoder, to: &selection) {
            for word in 0..<words { selection[word] = .max }
        }
        if !byType.isEmpty, let type = ItemType.of(head, decoder.bytes) {
            for word in 0..<words { selection[word] &= byType[type][word] }
        }
        var any: UInt64 = 0
        for word in 0..<words { any |= selection[word] }
        return any != 0
    }

    private static let ampersand = [UInt8(ascii: "&")]

    /// Adds the rules that need what the item has; false where that is not known.
    private func addKeyed(_ head: StanzaHead, _ decoder: borrowing StreamDecoder, to selection: inout [UInt64]) -> Bool
    {
        // What stands for a character by its number is compared by what it means.
        guard !head.isUnusual, !head.hasDoubtfulNamespace else { return false }
        let bytes = decoder.bytes
        let own = head.namespace.namespace
        add(ElementKey(of: .item, own, Span()), head.name, bytes, to: &selection)
        guard head.payloadName != nil else { return true }
        return decoder.forEachChild { child in
            let uri = bytes.slice(child.uri)
            // A name that is declared elsewhere, or has to be decoded.
            if child.namespace == .other, uri.isEmpty || uri.contains(Self.ampersand.span) { return false }
            add(ElementKey(of: .child, child.namespace, uri), child.name, bytes, to: &selection)
            if child.namespace == own { add(ElementKey(of: .ownChild), child.name, bytes, to: &selection) }
            return true
        } && own != .other
    }

    @inline(__always)
    private func add(_ key: ElementKey, _ name: ByteRange, _ bytes: Span<UInt8>, to selection: inout [UInt64]) {
        add(key.value, to: &selection)
        add(key.named(bytes.slice(name)).value, to: &selection)
    }

    @inline(__always)
    private func add(_ key: UInt64, to selection: inout [UInt64]) {
        guard keyFilter >> (key & 63) & 1 == 1, let rules = byKey[key] else { return }
        for word in 0..<words { selection[word] |= rules[word] }
    }
}

/// A hash of what an element is called. The same names have the same, others seldom.
private struct ElementKey {
    /// Which element is meant.
    enum Place: UInt64 {
        case item = 1
        case child
        /// A child in the item's own namespace.
        case ownChild
    }

    private(set) var value: UInt64

    /// An element of any name, in the item's own namespace.
    init(of place: Place) { value = Self.mix(0xCBF2_9CE4_8422_2325, place.rawValue) }

    /// An element of any name in a namespace; `uri` is that of ``Namespace/other``. Items of different URIs are not distinguished.
    init(of place: Place, _ namespace: Namespace, _ uri: Span<UInt8>) {
        self.init(of: place)
        value = Self.mix(value, UInt64(namespace.rawValue) + 1)
        if namespace == .other { add(uri) }
    }

    func named(_ name: Span<UInt8>) -> ElementKey {
        var key = self
        key.value = Self.mix(key.value, 0xFF)
        key.add(name)
        return key
    }

    private mutating func add(_ bytes: Span<UInt8>) {
        for index in bytes.indices { value = Self.mix(value, UInt64(bytes[index])) }
    }

    /// FNV-1a.
    private static func mix(_ hash: UInt64, _ byte: UInt64) -> UInt64 {
        let hash = (hash ^ byte) &* 0x0000_0100_0000_01B3
        return hash ^ hash >> 29
    }
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

    /// The type of an item; nil where that has to be decoded first.
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
    /// The types of the items for which it can hold, a bit for each.
    fileprivate var types: UInt32 {
        var types = ItemType.all
        for condition in conditionsBeforeCounts {
            guard case .type(let named) = condition.test else { continue }
            var bits: UInt32 = 0
            for name in named { bits |= 1 << UInt32(ItemType.number(of: name.span)) }
            // Of other types one that is not meant remains.
            if condition.isNegated { bits = ~bits | 1 << UInt32(ItemType.other) }
            types &= bits
        }
        return types
    }

    /// What an item must have for the rule to hold: itself or a child of a certain name or namespace; nil where that is
    /// nothing that the index distinguishes.
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
            // The index does not distinguish items of one name by namespace.
            return place == .child ? step.name.map { ElementKey(of: .ownChild).named($0.span).value } : nil
        }
        let uri = place == .item ? [] : namespace.uri
        let key = ElementKey(of: place, namespace.namespace, uri.span)
        return step.name.map { key.named($0.span).value } ?? key.value
    }
}

extension RuleTest.Inspection {
    /// Whether it can hold only where there is such a place: a text that is not there is an empty one.
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
