internal import TapRecord
internal import XMPPCore

/// A volatile value in 64 bits: its class and hash, or a reference to a number.
struct VolatileValue: Hashable, BitwiseCopyable, Sendable {
    /// 8 bits of class, 56 bits of hash or reference.
    private let bits: UInt64

    private static let numberClass: UInt64 = 0xFF

    init(_ valueClass: ValueClass, _ hash: UInt64) { bits = valueClass.code << 56 | hash >> 8 }

    /// Creates a reference to a number for which the rule at index `rule` allows a tolerance.
    init(numberAt index: Int, rule: Int) {
        bits =
            Self.numberClass << 56 | UInt64(UInt16(truncatingIfNeeded: rule)) << 32
            | UInt64(UInt32(truncatingIfNeeded: index))
    }

    /// The index of the number and of its rule; nil if the value is not a number.
    var number: (index: Int, rule: Int)? {
        guard bits >> 56 == Self.numberClass else { return nil }
        return (Int(bits & 0xFFFF_FFFF), Int(bits >> 32 & 0xFFFF))
    }
}

extension ValueClass {
    fileprivate var code: UInt64 {
        switch self {
        case .streamID: 1
        case .stanzaID: 2
        case .resource: 3
        case .account: 4
        case .domain: 5
        case .streamManagementID: 6
        case .archiveID: 7
        case .originID: 8
        case .itemID: 9
        case .version: 10
        case .exchangeID: 11
        case .url: 12
        case .token: 13
        case .rosterVersion: 14
        }
    }
}

/// A hash of an item's meaning without its volatile values.
struct StanzaDigest: Sendable {
    /// A hash that is equal for items with the same meaning, apart from their volatile values.
    var shape: UInt64
    /// Whether part of the item was redacted and is not compared.
    var isUndecided: Bool
    /// A hash of the optional elements and attributes, which are not part of the shape; 0 if there are none.
    var optional: UInt64
}

/// Computes digests of the items of one side.
///
/// Use one digester for many items: it then allocates memory only to sort.
struct StanzaDigester {
    let rules: NoiseRules
    /// The accounts and domains of this side.
    let names: AddressNames
    /// The volatile values of the last item, in an order that does not depend on how the item was written.
    private(set) var values: [VolatileValue] = []
    /// The numbers, in all items so far, for which a rule allows a tolerance.
    private(set) var numbers: [Double] = []

    private var path: [Element] = []
    private var found: [Int] = []
    /// Sort keys of the values (`keys`), and the hashes of the children of open elements (`hashes`).
    private var keys: [UInt64] = []
    private var hashes: [UInt64] = []
    private var isUndecided = false
    private var optional: UInt64 = 0
    /// The classes of the values so far that the server generated, by the hash of the value.
    private var serverValues: [UInt64: ValueClass] = [:]
    /// Length of the path to the element for which a digest is computed.
    private var depth = 0

    init(rules: NoiseRules, names: AddressNames) {
        self.rules = rules
        self.names = names
    }

    /// Returns the digest of an item.
    mutating func digest(_ element: Element) -> StanzaDigest {
        values.removeAll(keepingCapacity: true)
        keys.removeAll(keepingCapacity: true)
        return digest(element, in: [])
    }

    /// Returns the digest of a nested element and appends its volatile values to ``values``.
    mutating func digest(_ element: Element, in path: [Element]) -> StanzaDigest {
        if path.isEmpty { self.path.removeAll(keepingCapacity: true) } else { self.path = path }
        isUndecided = false
        optional = 0
        depth = path.count + 1
        let shape = hash(element, nickname: path.isEmpty ? element.nicknameAttribute : nil)
        return StanzaDigest(shape: shape, isUndecided: isUndecided, optional: optional)
    }

    private mutating func hash(_ element: Element, nickname: StaticString? = nil) -> UInt64 {
        path.append(element)
        defer { path.removeLast() }
        var hash = element.withName { Hash.of($0, seed: Hash.nameSeed) }
        rules.fill(&found, for: path, name: hash)
        if !element.isContent(of: path[0]) { hash = Hash.mix(hash, element.withNamespaceURI { Hash.of($0, seed: 2) }) }
        switch found.isEmpty ? nil : rules.action(for: NoiseRules.elementTarget, found)?.1 {
        case .ignore: return 0
        case .present: return hash
        default: break
        }
        let occurrence = path.count > depth ? rules.occurrence(found, path) : nil
        if occurrence == .mayBeAbsent || occurrence == .anyNumber {
            addOptional(element)
            return 0
        }
        let implied = path.count == 1 ? element.impliedAddresses : ImpliedAddresses()
        hash = Hash.mix(hash, attributes(element, nickname, implied))
        guard path.count < StanzaForm.maximumDepth else { return hash }
        guard element.firstChild != nil else { return Hash.mix(hash, text(element)) }
        let isOrdered = element.hasOrderedChildren && occurrence != .anyOrder
        let rule = found.isEmpty ? nil : rules.action(for: NoiseRules.textTarget, found)
        switch rule?.1 {
        case .ignore: return Hash.mix(hash, children(element, isOrdered: isOrdered))
        case .present where !element.isElementOnly:
            return Hash.mix(Hash.mix(hash, children(element, isOrdered: isOrdered)), 3)
        default:
            guard element.isElementOnly else { return Hash.mix(hash, mixed(element, rule)) }
            return Hash.mix(hash, children(element, isOrdered: isOrdered))
        }
    }

    /// Adds an optional element to the combined hash of optional elements. It is not part of the shape, and its
    /// volatile values are left out, because an item without the element lacks them.
    private mutating func addOptional(_ element: Element) {
        let (count, depth) = (values.count, depth)
        path.removeLast()
        self.depth = path.count + 1
        optional &+= Hash.mix(hash(element), 12)
        path.append(element)
        self.depth = depth
        values.removeSubrange(count...)
        keys.removeSubrange(count...)
    }

    // MARK: Attributes

    /// Returns a hash that is independent of the order of attributes. Volatile values are sorted by the hashes of the
    /// attribute names.
    private mutating func attributes(
        _ element: Element,
        _ nickname: StaticString?,
        _ implied: ImpliedAddresses
    ) -> UInt64 {
        var sum: UInt64 = 0
        let first = values.count
        element.forEachAttribute { name, uri, value in
            if uri.isEmpty, implied.contain(name) || AttributeDefaults.isDefault(name, value, of: element) { return }
            let key = NoiseRules.key(name, uri)
            let count = values.count
            if let hash = attribute(name, uri, value, key, nickname) { sum &+= Hash.mix(key, hash) }
            for index in count..<values.count { keys[index] = key }
        }
        sortValues(from: first)
        return sum
    }

    /// Returns the hash of an attribute; nil if it is ignored.
    private mutating func attribute(
        _ name: Span<UInt8>,
        _ uri: Span<UInt8>,
        _ value: Span<UInt8>,
        _ key: UInt64,
        _ nickname: StaticString?
    ) -> UInt64? {
        if !found.isEmpty {
            let rule = rules.action(for: key, found)
            if rules.isOptional(attribute: key, found) {
                // The value of an attribute with a rule may differ in each session, so it is not hashed.
                optional &+= Hash.mix(key, rule == nil ? literal(value) : 12)
                return nil
            }
            if let (index, action) = rule { return self.value(value, action, index) }
        }
        guard uri.isEmpty, Self.isAddress(name) else { return literal(value) }
        let isNickname = nickname.map { name.equals($0) } ?? false
        if path.count == 1, name.equals("to"), !isNickname, path[0].isNamed("presence"),
            path[0].attribute("from") != nil
        {
            return literal(value.extracting(..<(value.place(of: UInt8(ascii: "/")) ?? value.count)))
        }
        return address(value, isNickname: isNickname)
    }

    /// Returns whether an attribute with this name contains a JID.
    static func isAddress(_ name: Span<UInt8>) -> Bool {
        switch name.count {
        case 2: name.equals("to") || name.equals("by")
        case 3: name.equals("jid")
        case 4: name.equals("from")
        case 9: name.equals("initiator") || name.equals("responder")
        default: false
        }
    }

    // MARK: Values

    private mutating func add(_ value: VolatileValue) {
        values.append(value)
        keys.append(0)
    }

    /// Returns the hash of a value under a rule; nil if it is ignored.
    private mutating func value(_ value: Span<UInt8>, _ action: NoiseRules.Action, _ rule: Int) -> UInt64? {
        switch action {
        case .ignore: return nil
        case .present, .follow: return 3
        case .matches(let expression): return expression.matches([UInt8](value)) ? 1 : literal(value)
        case .number:
            guard let number = Double(value.string()), number.isFinite else { return literal(value) }
            add(VolatileValue(numberAt: numbers.count, rule: rule))
            numbers.append(number)
            return 1
        case .bind(.itemID) where value.holds(UInt8(ascii: "@")): return address(value, isNickname: false)
        // The id of an iq only links request and answer, so it is not compared.
        case .bind(.stanzaID) where path.count == 1 && path[0].isNamed("iq"): return 2
        case .bind(let valueClass):
            if value.isEmpty { return literal(value) }
            if valueClass.isOfServer, value.count >= ValueClass.serverValueSize {
                serverValues[Hash.of(value, seed: 15)] = valueClass
            }
            add(VolatileValue(valueClass, Hash.of(value, seed: valueClass.code)))
            return 2
        case .bindSuffix(let valueClass):
            guard let mark = value.lastPlace(of: UInt8(ascii: "#")) else { return literal(value) }
            let suffix = value.extracting((mark + 1)...)
            add(VolatileValue(valueClass, Hash.of(suffix, seed: valueClass.code)))
            return literal(value.extracting(...mark))
        case .address: return address(value, isNickname: false)
        case .occurs: return literal(value)
        }
    }

    private mutating func address(_ value: Span<UInt8>, isNickname: Bool) -> UInt64 {
        guard !isNickname, let slash = value.place(of: UInt8(ascii: "/")) else { return literal(value) }
        let bare = literal(value.extracting(..<slash))
        add(Self.resource(value.extracting((slash + 1)...), of: bare))
        return Hash.mix(bare, 6)
    }

    private static func resource(_ resource: Span<UInt8>, of bare: UInt64) -> VolatileValue {
        VolatileValue(.resource, Hash.mix(bare, Hash.of(resource, seed: 5)))
    }

    /// Returns the entry that ``values`` contains for a value; for a resource, pass the full JID.
    mutating func value(_ text: String, _ valueClass: ValueClass) -> VolatileValue {
        let bytes = text.utf8Span.span
        guard valueClass == .resource, let slash = bytes.place(of: UInt8(ascii: "/")) else {
            return VolatileValue(valueClass, Hash.of(bytes, seed: valueClass.code))
        }
        return Self.resource(bytes.extracting((slash + 1)...), of: literal(bytes.extracting(..<slash)))
    }

    private mutating func literal(_ value: Span<UInt8>) -> UInt64 {
        if value.isMoment { return 7 }
        if value.isPlaceholder {
            isUndecided = true
            return 8
        }
        if !serverValues.isEmpty, let hash = serverValue(value) { return hash }
        if let shared = names.shared(value) { return Hash.of(shared.span, seed: 9) }
        return Hash.of(value, seed: 9)
    }

    /// Returns the hash of a text that equals, or contains as a URL, an earlier value that the server generated, and
    /// adds the value to ``values``. Returns nil for other texts.
    private mutating func serverValue(_ text: Span<UInt8>) -> UInt64? {
        guard text.count >= ValueClass.serverValueSize else { return nil }
        if let valueClass = serverValues[Hash.of(text, seed: 15)] {
            add(VolatileValue(valueClass, Hash.of(text, seed: valueClass.code)))
            return 2
        }
        guard let range = text.urlRange else { return nil }
        let url = text.extracting(range)
        guard let valueClass = serverValues[Hash.of(url, seed: 15)] else { return nil }
        add(VolatileValue(valueClass, Hash.of(url, seed: valueClass.code)))
        let before = Hash.of(text.extracting(..<range.lowerBound), seed: 9)
        return Hash.mix(before, Hash.of(text.extracting(range.upperBound...), seed: 9))
    }

    // MARK: Contents

    private mutating func text(_ element: Element) -> UInt64 {
        var hash: UInt64 = 0
        let rule = found.isEmpty ? nil : rules.action(for: NoiseRules.textTarget, found)
        // A text usually is a single run; several runs are joined.
        var runs = 0
        element.forEachText { _ in runs += 1 }
        guard runs > 0 || rule != nil else { return 0 }
        if runs == 0, case .present = rule?.1 { return 0 }
        func hashed(_ text: Span<UInt8>) -> UInt64 {
            guard let (index, action) = rule else { return literal(text) }
            return value(text, action, index) ?? 0
        }
        if runs == 1 {
            element.forEachText { hash = hashed($0) }
        } else {
            hash = hashed(element.text.utf8Span.span)
        }
        return hash
    }

    /// Returns a hash of the children. It depends on their order only if the order is significant.
    private mutating func children(_ element: Element, isOrdered: Bool) -> UInt64 {
        let (firstValue, firstHash) = (values.count, hashes.count)
        element.forEachElement { child in
            let count = values.count
            let hash = self.hash(child)
            guard hash != 0 else { return true }
            hashes.append(hash)
            for index in count..<values.count { keys[index] = hash }
            return true
        }
        if !isOrdered, hashes.count > firstHash + 1 {
            sortValues(from: firstValue)
            if !Self.isSorted(hashes[firstHash...]) { hashes[firstHash...].sort() }
        }
        var hash: UInt64 = 10
        for index in firstHash..<hashes.count { hash = Hash.mix(hash, hashes[index]) }
        hashes.removeSubrange(firstHash...)
        return hash
    }

    private mutating func mixed(_ element: Element, _ rule: (Int, NoiseRules.Action)?) -> UInt64 {
        var hash: UInt64 = 11
        for content in element.contents {
            switch content {
            case .element(let child): hash = Hash.mix(hash, self.hash(child))
            case .text(let text):
                let bytes = text.utf8Span.span
                hash = Hash.mix(hash, rule.map { value(bytes, $0.1, $0.0) ?? 0 } ?? literal(bytes))
            }
        }
        return hash
    }

    /// Sorts the values from `first` on by their keys; the sort is stable.
    private mutating func sortValues(from first: Int) {
        guard values.count > first + 1, !Self.isSorted(keys[first...]) else { return }
        let order = (first..<keys.count).sorted { (keys[$0], $0) < (keys[$1], $1) }
        let sorted = order.map { (values[$0], keys[$0]) }
        for (index, entry) in sorted.enumerated() { (values[first + index], keys[first + index]) = entry }
    }

    private static func isSorted(_ hashes: ArraySlice<UInt64>) -> Bool {
        for index in hashes.indices.dropFirst() where hashes[index - 1] > hashes[index] { return false }
        return true
    }
}

extension Element {
    /// The attribute of a group chat stanza in which the resource is a nickname and therefore significant (XEP-0045):
    /// `to` for stanzas to the room, `from` for stanzas from it. nil for other stanzas.
    var nicknameAttribute: StaticString? {
        guard isNamed("presence") || isNamed("message") else { return nil }
        let payload = firstChild { $0.namespace == .mucUser || $0.namespace == .muc }
        let isGroupChat = attribute("type", is: "groupchat")
        guard isGroupChat || payload != nil else { return nil }
        guard let from = attribute("from"), payload?.namespace != .muc else { return "to" }
        // A message to all occupants is addressed to the room itself, and is delivered from an occupant to one client.
        guard isGroupChat, from.contains("/"), let to = attribute("to") else { return "from" }
        return to.contains("/") ? "from" : "to"
    }

    /// Whether a server that delivers the stanza may address it to the bare or the full JID of the client: presence (RFC
    /// 6121 §4.3.2), and requests, which other clients can only send to the full JID (§8.5.2.1.3).
    var mayNameAccount: Bool { isNamed("presence") || isRequest }

    /// Whether the element is an iq of type `get` or `set`.
    var isRequest: Bool { isNamed("iq") && (attribute("type", is: "get") || attribute("type", is: "set")) }

    /// Whether the element is a push, which informs a client of a change of its roster or its block list (RFC 6121
    /// §2.1.6, XEP-0191 §3.3).
    var isPush: Bool {
        isNamed("iq") && attribute("type", is: "set") && attribute("to") != nil
            && firstChild.map { [.roster, .blocking, .privacy].contains($0.namespace) } == true
    }

    /// The addresses of a stanza that may be omitted without a change of meaning.
    var impliedAddresses: ImpliedAddresses {
        var implied = ImpliedAddresses()
        guard attribute("from") != nil else {
            implied.to = isPush
            return implied
        }
        withAttribute("to") { to in
            withAttribute("from") { from in
                guard to.count >= from.count, to.extracting(..<from.count).equals(from) else { return }
                if to.count == from.count, from.holds(UInt8(ascii: "/")) {
                    implied.to = true
                } else if to.count == from.count
                    || to[from.count] == UInt8(ascii: "/") && !from.holds(UInt8(ascii: "/"))
                {
                    implied.from = true
                    implied.to = isRequest
                }
            }
        }
        return implied
    }

    /// Whether the order of children is significant: for items of a node (order of publication), values and items of
    /// data forms (XEP-0004) but not the choices of a list, and XHTML (XEP-0071).
    var hasOrderedChildren: Bool {
        if isNamed("items") { return true }
        if namespace == .other { return withNamespaceURI { $0.equals("http://www.w3.org/1999/xhtml") } }
        let isList = attribute("type", is: "list-multi") || attribute("type", is: "jid-multi")
        return namespace == .dataForms && (isNamed("field") && !isList || firstChild { $0.isNamed("item") } != nil)
    }
}

/// Addresses of a stanza that may be omitted.
struct ImpliedAddresses {
    /// Whether the sender is the account that receives the stanza (RFC 6120 §8.1.2.1).
    var from = false
    /// Whether the recipient is the client that sent the stanza, or the stanza is a request of the account to its
    /// client.
    var to = false

    /// Returns whether the attribute with this name may be omitted.
    func contain(_ name: Span<UInt8>) -> Bool { from && name.equals("from") || to && name.equals("to") }
}

/// A fast 64-bit hash for digests. The results are the same in every run.
enum Hash {
    /// The seed for element names.
    static let nameSeed: UInt64 = 1

    static func mix(_ one: UInt64, _ other: UInt64) -> UInt64 {
        let product = (one ^ 0x9E37_79B9_7F4A_7C15).multipliedFullWidth(by: other ^ 0xE703_7ED1_A0B4_28DB)
        return product.high ^ product.low
    }

    static func of(_ bytes: Span<UInt8>, seed: UInt64) -> UInt64 {
        bytes.withUnsafeBytes { raw in
            var hash = seed &* 0xA076_1D64_78BD_642F
            var index = 0
            while index &+ 8 <= raw.count {
                hash = mix(hash, raw.loadUnaligned(fromByteOffset: index, as: UInt64.self))
                index &+= 8
            }
            var rest: UInt64 = 0
            while index < raw.count {
                rest = rest << 8 | UInt64(raw[index])
                index &+= 1
            }
            return mix(mix(hash, rest), UInt64(truncatingIfNeeded: raw.count))
        }
    }
}

extension Span where Element == UInt8 {
    func place(of byte: UInt8) -> Int? { indices.first { self[$0] == byte } }
    func lastPlace(of byte: UInt8) -> Int? { indices.last { self[$0] == byte } }
    func holds(_ byte: UInt8) -> Bool { place(of: byte) != nil }

    /// Whether the text is a timestamp of RFC 3339 or of XEP-0091.
    var isMoment: Bool {
        guard count >= 17, count <= 40, isDigit(0) else { return false }
        if count == 17 { return hasForm("00000000T00:00:00", at: 0) }
        guard hasForm("0000-00-00T00:00:00", at: 0) else { return false }
        var index = 19
        if index < count, self[index] == UInt8(ascii: ".") {
            index += 1
            guard isDigit(index) else { return false }
            while isDigit(index) { index += 1 }
        }
        let zone = count - index
        return zone == 1 && self[index] == UInt8(ascii: "Z")
            || zone == 6 && (hasForm("+00:00", at: index) || hasForm("-00:00", at: index))
    }

    private func isDigit(_ index: Int) -> Bool { index < count && self[index] >= 0x30 && self[index] <= 0x39 }

    /// Returns whether the text at `start` has the given form, in which `0` matches any digit.
    private func hasForm(_ form: StaticString, at start: Int) -> Bool {
        guard count - start >= form.utf8CodeUnitCount else { return false }
        for index in 0..<form.utf8CodeUnitCount {
            let expected = form.utf8Start[index]
            guard expected == 0x30 ? isDigit(start + index) : self[start + index] == expected else { return false }
        }
        return true
    }

    /// Whether the text is a placeholder of a redacted secret.
    var isPlaceholder: Bool { count > 11 && self[0] == 0x5B && Placeholder.isPlaceholder(self) }
}
