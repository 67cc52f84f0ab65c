internal import TapRecord
internal import XMPPCore

/// Selects the rules that can match the addresses of an item. Compares addresses as written, without PRECIS
/// preparation.
///
/// For an ASCII address without special forms, preparation changes only the case. Any other address excludes no rules.
struct AddressedRules: Sendable {
    /// The address that a rule compares.
    private enum Side: UInt64 { case from = 1, to, either }

    /// The required prefix or suffix of a local part or domain.
    private struct Affix: Hashable {
        let side: Side
        let isLocal: Bool
        let isSuffix: Bool
        /// The bytes in lower case.
        let bytes: [UInt8]
    }

    private var byKey = KeyedRules()
    /// Distinct affixes, each with a bit set of the rules that require it. The set covers only the words from the first
    /// to the last rule.
    private var affixes: [(affix: Affix, start: Int, rules: [UInt64])] = []
    private var needsFrom = false
    private var needsTo = false

    init() {}

    init(_ rules: [Rule]) {
        var keys: [UInt64?] = []
        var affixes: [Affix: (start: Int, rules: [UInt64])] = [:]
        for (place, rule) in rules.enumerated() {
            var key: UInt64?
            for condition in rule.conditionsBeforeCounts where !condition.isNegated {
                switch condition.test {
                case .address(let side, let pattern):
                    let side = side == .from ? Side.from : .to
                    key = key ?? Self.key(side, pattern)
                    for affix in Self.affixes(pattern, side) {
                        var bits = affixes.removeValue(forKey: affix) ?? (place >> 6, [])
                        bits.rules += repeatElement(0, count: (place >> 6) - bits.start + 1 - bits.rules.count)
                        bits.rules[(place >> 6) - bits.start] |= 1 << UInt64(place & 63)
                        affixes[affix] = bits
                    }
                case .with(let pattern): key = key ?? Self.key(.either, pattern)
                default: break
                }
            }
            keys.append(key)
        }
        byKey = KeyedRules(keys)
        let sides = Set(affixes.keys.map(\.side))
        self.affixes = affixes.map { ($0, $1.start, $1.rules) }
        needsFrom = !byKey.isEmpty || sides.contains(.from)
        needsTo = !byKey.isEmpty || sides.contains(.to)
    }

    var isEmpty: Bool { !needsFrom && !needsTo }

    /// Removes the rules that require a different address; `scratch` is a reusable buffer.
    func exclude(
        _ head: StanzaHead,
        _ bytes: Span<UInt8>,
        _ jid: String?,
        from selection: inout [UInt64],
        _ scratch: inout [UInt64]
    ) {
        if scratch.count != selection.count { scratch = Array(repeating: 0, count: selection.count) }
        for word in 0..<scratch.count { scratch[word] = byKey.free[word] }
        let isFromKnown = !needsFrom || exclude(.from, head.from, bytes, jid, &selection, &scratch)
        let isToKnown = !needsTo || exclude(.to, head.to, bytes, jid, &selection, &scratch)
        guard !byKey.isEmpty, isFromKnown, isToKnown else { return }
        for word in 0..<selection.count { selection[word] &= scratch[word] }
    }

    /// Adds the rules whose key matches an address to `added`, and removes the rules that require a different affix
    /// from `selection`. Returns false if the address is not plain.
    private func exclude(
        _ side: Side,
        _ attribute: StanzaHead.Attribute?,
        _ bytes: Span<UInt8>,
        _ jid: String?,
        _ selection: inout [UInt64],
        _ added: inout [UInt64]
    ) -> Bool {
        guard let attribute else {
            // An absent address means the full JID or the account; both have the same local part and domain.
            return jid.map { exclude(side, $0.utf8.span, &selection, &added) } ?? false
        }
        return !attribute.needsDecoding && exclude(side, bytes.slice(attribute.range), &selection, &added)
    }

    private func exclude(
        _ side: Side,
        _ address: Span<UInt8>,
        _ selection: inout [UInt64],
        _ added: inout [UInt64]
    ) -> Bool {
        let split = AddressSplit(address)
        let local = address.extracting(split.local ?? 0..<0)
        let domain = address.extracting(split.domain)
        guard let localHash = Self.hash(local), let domainHash = Self.hash(domain), Self.isPlain(domain) else {
            return false
        }
        if !byKey.isEmpty {
            for side in [side, .either] {
                if split.local != nil { byKey.add(Self.key(side, isLocal: true, localHash), to: &added) }
                byKey.add(Self.key(side, isLocal: false, domainHash), to: &added)
            }
        }
        for index in affixes.indices where affixes[index].affix.side == side {
            let start = affixes[index].start
            var asked: UInt64 = 0
            for word in affixes[index].rules.indices { asked |= selection[start + word] & affixes[index].rules[word] }
            let part = affixes[index].affix.isLocal ? local : domain
            guard asked != 0, !Self.has(part, affixes[index].affix) else { continue }
            for word in affixes[index].rules.indices { selection[start + word] &= ~affixes[index].rules[word] }
        }
        return true
    }

    // MARK: Requirements of rules

    private static func key(_ side: Side, _ pattern: AddressPattern) -> UInt64? {
        if case .exact(let bytes) = pattern.local {
            return hash(bytes.span).map { key(side, isLocal: true, $0) }
        }
        guard case .exact(let bytes) = pattern.domain else { return nil }
        return hash(bytes.span).map { key(side, isLocal: false, $0) }
    }

    private static func key(_ side: Side, isLocal: Bool, _ hash: UInt64) -> UInt64 {
        hash &+ (side.rawValue << 1 | (isLocal ? 1 : 0)) &* 0x9E37_79B9_7F4A_7C15
    }

    private static func affixes(_ pattern: AddressPattern, _ side: Side) -> [Affix] {
        var affixes: [Affix] = []
        for (part, isLocal) in [(pattern.local, true), (pattern.domain, false)] {
            guard case .pattern(let pattern) = part else { continue }
            for (bytes, isSuffix) in [(pattern.prefix, false), (pattern.suffix, true)]
            where !bytes.isEmpty && bytes.allSatisfy({ $0 < 0x80 }) {
                let bytes = bytes.map(Self.lowercased)
                affixes.append(Affix(side: side, isLocal: isLocal, isSuffix: isSuffix, bytes: bytes))
            }
        }
        return affixes
    }

    // MARK: Bytes

    private static func has(_ part: Span<UInt8>, _ affix: Affix) -> Bool {
        let offset = affix.isSuffix ? part.count - affix.bytes.count : 0
        guard offset >= 0, affix.bytes.count <= part.count else { return false }
        for index in affix.bytes.indices where lowercased(part[offset + index]) != affix.bytes[index] { return false }
        return true
    }

    /// Returns whether preparation changes only the case of the domain: it has no A-labels, trailing dot or IPv6
    /// literal.
    private static func isPlain(_ domain: Span<UInt8>) -> Bool {
        guard !domain.isEmpty, domain[0] != UInt8(ascii: "["), domain[domain.count - 1] != UInt8(ascii: ".") else {
            return false
        }
        // Excludes `xn--` and other domains with two consecutive hyphens.
        for index in domain.indices.dropFirst()
        where domain[index] == UInt8(ascii: "-") && domain[index - 1] == UInt8(ascii: "-") { return false }
        return true
    }

    /// Returns the hash of an ASCII text in lower case; nil for any other text.
    private static func hash(_ text: Span<UInt8>) -> UInt64? {
        var (hash, all) = (UInt64(0xCBF2_9CE4_8422_2325), UInt8(0))
        for index in text.indices {
            all |= text[index]
            hash = mixed(hash, UInt64(lowercased(text[index])))
        }
        return all < 0x80 ? hash : nil
    }

    @inline(__always)
    private static func lowercased(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }
}
