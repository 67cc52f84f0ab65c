/// A bijection between recorded and live values, by class.
///
/// A volatile value is bound when it is first seen on both sides, and must agree afterwards. Accounts and domains are
/// bound in advance.
package struct ValueBindings: Sendable {
    /// One value would correspond to two values of the other side.
    package struct Collision: Error, Sendable, Hashable {
        /// The class of the value.
        package let valueClass: ValueClass
        /// The recorded value.
        package let recorded: String
        /// The live value.
        package let live: String
        /// The live value to which the recorded one is bound; nil if unbound.
        package let boundLive: String?
        /// The recorded value to which the live one is bound; nil if unbound.
        package let boundRecorded: String?
    }

    /// The direction of translation.
    package enum Way: Sendable {
        case toLive, toRecorded
    }

    private struct Key: Hashable {
        let valueClass: ValueClass
        let value: String
    }

    private var toLive: [Key: String] = [:]
    private var toRecorded: [Key: String] = [:]
    /// The bindings in the order in which they were made.
    private var journal: [(recorded: Key, live: Key)] = []
    /// Journal indices of the bindings of accounts, domains and full JIDs.
    private var addressPlaces: [Int] = []
    /// Changes whenever an address is bound or unbound.
    private(set) var addressVersion = 0
    private(set) var recordedNames = AddressNames()
    private(set) var liveNames = AddressNames()

    /// Recorded ids whose live ids can be derived by appending ``suffix``, with their numbers; they need no table
    /// entries.
    private let ids: [String: Int]
    let suffix: String
    /// The state of each id in `ids`, by its number.
    private var idStates: [IDState]
    /// Whether a server-generated value is bound to a different value of the other side.
    private(set) var hasServerValues = false
    /// The classes with at least one binding in the tables, as bits.
    private var classes: UInt16 = 0

    private enum IDState: UInt8 {
        /// Unbound.
        case none
        /// Bound to the derived id.
        case made
        /// Bound to another id in the tables.
        case other
    }

    /// Creates empty bindings.
    package init() { self.init(ids: [:], suffix: "") }

    /// Creates empty bindings; live ids for `ids` can be derived with ``standIn(for:)``.
    init(ids: [String: Int], suffix: String) {
        self.ids = ids
        self.suffix = suffix
        idStates = [IDState](repeating: .none, count: ids.count)
    }

    /// Binds an id to its derived id, unless it is bound.
    mutating func standIn(for id: Int) { if idStates[id] == .none { idStates[id] = .made } }

    /// Returns whether an id is bound to its derived id.
    func isStoodInFor(_ id: Int) -> Bool { idStates[id] == .made }

    /// Returns whether the tables can contain values of a class.
    func mayHold(_ valueClass: ValueClass) -> Bool { classes & valueClass.bit != 0 }

    /// Number of bindings in the tables.
    package var count: Int { journal.count }

    /// Binds a recorded value to a live one; binding the same pair again has no effect. Binding an account also binds
    /// its domain, unless the domain is already bound.
    package mutating func bind(_ recorded: String, to live: String, _ valueClass: ValueClass) throws(Collision) {
        let (boundLive, boundRecorded) = (self.live(for: recorded, valueClass), self.recorded(for: live, valueClass))
        if boundLive == live { return }
        guard boundLive == nil, boundRecorded == nil else {
            throw Collision(
                valueClass: valueClass,
                recorded: recorded,
                live: live,
                boundLive: boundLive,
                boundRecorded: boundRecorded
            )
        }
        let recordedKey = Key(valueClass: valueClass, value: recorded)
        let liveKey = Key(valueClass: valueClass, value: live)
        toLive[recordedKey] = live
        toRecorded[liveKey] = recorded
        classes |= valueClass.bit
        if valueClass.isOfServer, recorded != live { hasServerValues = true }
        if valueClass == .stanzaID, let id = ids[recorded] { idStates[id] = .other }
        if valueClass.isOfAddress {
            addressPlaces.append(journal.count)
            addressVersion += 1
        }
        journal.append((recordedKey, liveKey))
        switch valueClass {
        case .account:
            share(recorded, live)
            let (recordedDomain, liveDomain) = (Self.domain(of: recorded), Self.domain(of: live))
            if self.live(for: recordedDomain, .domain) == nil, self.recorded(for: liveDomain, .domain) == nil {
                try? bind(recordedDomain, to: liveDomain, .domain)
            }
        case .domain: share(recorded, live)
        default: break
        }
    }

    /// Gives an account or domain a name that both sides share.
    private mutating func share(_ recorded: String, _ live: String) {
        guard recorded != live else { return }
        let name = "\u{1}\(journal.count)\u{1}"
        recordedNames.add(recorded, as: name)
        liveNames.add(live, as: name)
    }

    private static func domain(of jid: String) -> String {
        jid.firstIndex(of: "@").map { String(jid[jid.index(after: $0)...]) } ?? jid
    }

    /// Returns the live value of a recorded one; nil if unbound.
    package func live(for recorded: String, _ valueClass: ValueClass) -> String? {
        if valueClass == .stanzaID, let id = ids[recorded], idStates[id] == .made { return recorded + suffix }
        return toLive[Key(valueClass: valueClass, value: recorded)]
    }

    /// Returns the recorded value of a live one; nil if unbound.
    package func recorded(for live: String, _ valueClass: ValueClass) -> String? {
        if valueClass == .stanzaID, !suffix.isEmpty, live.utf8.reversed().starts(with: suffix.utf8.reversed()) {
            let recorded = String(live.utf8.dropLast(suffix.utf8.count)) ?? live
            if let id = ids[recorded], idStates[id] == .made { return recorded }
        }
        return toRecorded[Key(valueClass: valueClass, value: live)]
    }

    /// Returns the number of the recorded id to which a live one is bound; nil if the recorded id is not in `ids`.
    func number(ofLive live: String) -> Int? { recorded(for: live, .stanzaID).flatMap { ids[$0] } }

    /// Returns the value on the other side; nil if unbound.
    func value(for value: String, _ valueClass: ValueClass, _ way: Way) -> String? {
        way == .toLive ? live(for: value, valueClass) : recorded(for: value, valueClass)
    }

    /// Returns the other side's text for a text that is a server-generated value or contains a server-generated URL;
    /// nil for other texts.
    func text(_ text: String, _ way: Way) -> String? {
        guard hasServerValues, text.utf8.count >= ValueClass.serverValueSize else { return nil }
        if let other = serverValue(for: text, way) { return other }
        guard let url = text.utf8Span.span.urlRange else { return nil }
        let bytes = Array(text.utf8)
        guard let other = serverValue(for: String(decoding: bytes[url], as: UTF8.self), way) else { return nil }
        let (before, after) = (bytes[..<url.lowerBound], bytes[url.upperBound...])
        return String(decoding: before + Array(other.utf8) + after, as: UTF8.self)
    }

    private func serverValue(for value: String, _ way: Way) -> String? {
        ValueClass.allCases.lazy.filter(\.isOfServer).compactMap { self.value(for: value, $0, way) }.first
    }

    /// Returns for each binding after the first `count` whether both values are equal.
    func made(since count: Int) -> [Bool] { journal[count...].map { $0.recorded.value == $0.live.value } }

    /// Removes all bindings except the first `count`; accounts and domains remain.
    mutating func rollBack(to count: Int) {
        var kept: [(recorded: Key, live: Key)] = []
        while journal.count > count {
            let last = journal.removeLast()
            guard last.recorded.valueClass != .account, last.recorded.valueClass != .domain else {
                kept.append(last)
                continue
            }
            toLive[last.recorded] = nil
            toRecorded[last.live] = nil
            if last.recorded.valueClass == .stanzaID, let id = ids[last.recorded.value] { idStates[id] = .none }
        }
        while let last = addressPlaces.last, last >= journal.count {
            addressPlaces.removeLast()
            addressVersion += 1
        }
        addressPlaces += journal.count..<(journal.count + kept.count)
        journal += kept.reversed()
    }

    /// Returns the JID on the other side: its account, domain and resource are translated if they are bound.
    package func jid(_ jid: String, _ way: Way) -> String {
        if let full = value(for: jid, .resource, way) { return full }
        let slash = jid.firstIndex(of: "/") ?? jid.endIndex
        let bare = String(jid[..<slash])
        if let account = value(for: bare, .account, way) { return account + jid[slash...] }
        let at = bare.firstIndex(of: "@").map { bare.index(after: $0) } ?? bare.startIndex
        return bare[..<at] + domain(String(bare[at...]), way) + jid[slash...]
    }

    /// Maps a domain, or a subdomain of a bound domain.
    private func domain(_ domain: String, _ way: Way) -> String {
        var rest = domain[...]
        while true {
            if let bound = value(for: String(rest), .domain, way) { return domain[..<rest.startIndex] + bound }
            guard let dot = rest.firstIndex(of: ".") else { return domain }
            rest = rest[rest.index(after: dot)...]
        }
    }

    /// Returns the bound accounts, domains and full JIDs with their counterparts, longest first.
    func addresses(_ way: Way) -> [(text: [UInt8], other: [UInt8])] {
        addressPlaces.map { journal[$0] }
            .map { way == .toLive ? ($0.recorded.value, $0.live.value) : ($0.live.value, $0.recorded.value) }
            .map { (Array($0.utf8), Array($1.utf8)) }
            .sorted { $0.0.count > $1.0.count }
    }
}

extension ValueClass {
    /// A distinct bit for each class.
    fileprivate var bit: UInt16 {
        switch self {
        case .streamID: 1 << 0
        case .stanzaID: 1 << 1
        case .resource: 1 << 2
        case .account: 1 << 3
        case .domain: 1 << 4
        case .streamManagementID: 1 << 5
        case .archiveID: 1 << 6
        case .originID: 1 << 7
        case .itemID: 1 << 8
        case .rosterVersion: 1 << 9
        case .version: 1 << 10
        case .exchangeID: 1 << 11
        case .url: 1 << 12
        case .token: 1 << 13
        }
    }

    /// Whether the values are long and generated by a server, so that they have the same meaning in any place.
    var isOfServer: Bool { self == .url || self == .token || self == .version }

    /// Minimum length in bytes of server-generated values that are recognised in any place: shorter texts can be equal
    /// by chance.
    static let serverValueSize = 12

    /// Whether its values are accounts, domains or full JIDs.
    fileprivate var isOfAddress: Bool { self == .account || self == .domain || self == .resource }
}

extension Span<UInt8> {
    /// The range of the first URL in a text, delimited by white space; nil if the text contains none.
    var urlRange: Range<Int>? {
        var index = 0
        while index + 2 < count {
            guard self[index] == UInt8(ascii: ":"), self[index + 1] == UInt8(ascii: "/"),
                self[index + 2] == UInt8(ascii: "/")
            else {
                index += 1
                continue
            }
            var (start, end) = (index, index)
            while start > 0, self[start - 1] > 0x20 { start -= 1 }
            while end < count, self[end] > 0x20 { end += 1 }
            return start..<end
        }
        return nil
    }
}
