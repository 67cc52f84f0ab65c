/// Which recorded value is which live value: a bijection, by class.
///
/// A value that differs from session to session is bound the first time that it is seen on both sides, and has to agree from
/// then on. Accounts and domains are bound by whoever knows them, before anything is compared.
public struct ValueBindings: Sendable {
    /// One recorded value stands for two live ones, or the other way round.
    public struct Collision: Error, Sendable, Hashable {
        /// The class of the value.
        public let valueClass: ValueClass
        /// The recorded value.
        public let recorded: String
        /// The live value.
        public let live: String
        /// What the recorded value was bound to before; nil where it was to nothing.
        public let boundLive: String?
        /// What the live value was bound to before; nil where it was to nothing.
        public let boundRecorded: String?
    }

    /// Which way values are translated.
    public enum Way: Sendable {
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
    /// Which of them are of accounts, domains and full JIDs.
    private var addressPlaces: [Int] = []
    /// Changes whenever the set of them does.
    private(set) var addressVersion = 0
    private(set) var recordedNames = AddressNames()
    private(set) var liveNames = AddressNames()

    /// Recorded ids for which live ones are made by adding ``suffix``, with their numbers: they take no room in the tables.
    private let ids: [String: Int]
    let suffix: String
    /// Of each of them what it is bound to.
    private var stands: [Stand]
    /// The classes that have had a binding in the tables, as bits.
    private var classes: UInt16 = 0

    private enum Stand: UInt8 {
        /// To nothing.
        case none
        /// To the one that is made.
        case made
        /// To another, which is in the tables.
        case other
    }

    /// No bindings.
    public init() { self.init(ids: [:], suffix: "") }

    /// No bindings yet; of `ids` live ones can be made with ``standIn(for:)``.
    init(ids: [String: Int], suffix: String) {
        self.ids = ids
        self.suffix = suffix
        stands = [Stand](repeating: .none, count: ids.count)
    }

    /// Binds an id to the one that is made of it, unless it is bound.
    mutating func standIn(for id: Int) { if stands[id] == .none { stands[id] = .made } }

    /// Whether an id is bound to the one that is made of it.
    func isStoodInFor(_ id: Int) -> Bool { stands[id] == .made }

    /// Whether values of a class can be in the tables.
    func mayHold(_ valueClass: ValueClass) -> Bool { classes & valueClass.bit != 0 }

    /// Number of bindings in the tables.
    public var count: Int { journal.count }

    /// Binds a recorded value to a live one. Binding the same two again changes nothing. An account binds its domain with
    /// it, unless that is bound.
    public mutating func bind(_ recorded: String, to live: String, _ valueClass: ValueClass) throws(Collision) {
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
        if valueClass == .stanzaID, let id = ids[recorded] { stands[id] = .other }
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

    /// Has an account or domain go under the recorded side's own text on both sides.
    private mutating func share(_ recorded: String, _ live: String) {
        guard recorded != live else { return }
        let name = "\u{1}\(journal.count)\u{1}"
        recordedNames.add(recorded, as: name)
        liveNames.add(live, as: name)
    }

    private static func domain(of jid: String) -> String {
        jid.firstIndex(of: "@").map { String(jid[jid.index(after: $0)...]) } ?? jid
    }

    /// The live value of a recorded one; nil where it is not bound.
    public func live(for recorded: String, _ valueClass: ValueClass) -> String? {
        if valueClass == .stanzaID, let id = ids[recorded], stands[id] == .made { return recorded + suffix }
        return toLive[Key(valueClass: valueClass, value: recorded)]
    }

    /// The recorded value of a live one; nil where it is not bound.
    public func recorded(for live: String, _ valueClass: ValueClass) -> String? {
        if valueClass == .stanzaID, !suffix.isEmpty, live.utf8.reversed().starts(with: suffix.utf8.reversed()) {
            let recorded = String(live.utf8.dropLast(suffix.utf8.count)) ?? live
            if let id = ids[recorded], stands[id] == .made { return recorded }
        }
        return toRecorded[Key(valueClass: valueClass, value: live)]
    }

    /// The number of the recorded id that a live one stands for, of those that live ones can be made of; nil of others.
    func number(ofLive live: String) -> Int? { recorded(for: live, .stanzaID).flatMap { ids[$0] } }

    /// The value on the other side; nil where it is not bound.
    func value(for value: String, _ valueClass: ValueClass, _ way: Way) -> String? {
        way == .toLive ? live(for: value, valueClass) : recorded(for: value, valueClass)
    }

    /// Of each binding behind the first `count` whether both values are the same text.
    func made(since count: Int) -> [Bool] { journal[count...].map { $0.recorded.value == $0.live.value } }

    /// Takes back all bindings but the first `count`; accounts and domains stay.
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
            if last.recorded.valueClass == .stanzaID, let id = ids[last.recorded.value] { stands[id] = .none }
        }
        while let last = addressPlaces.last, last >= journal.count {
            addressPlaces.removeLast()
            addressVersion += 1
        }
        addressPlaces += journal.count..<(journal.count + kept.count)
        journal += kept.reversed()
    }

    /// The JID on the other side: its account or domain where that is bound, and its resource where the full JID is. The same
    /// text where nothing is bound.
    public func jid(_ jid: String, _ way: Way) -> String {
        if let full = value(for: jid, .resource, way) { return full }
        let slash = jid.firstIndex(of: "/") ?? jid.endIndex
        let bare = String(jid[..<slash])
        if let account = value(for: bare, .account, way) { return account + jid[slash...] }
        let at = bare.firstIndex(of: "@").map { bare.index(after: $0) } ?? bare.startIndex
        return bare[..<at] + domain(String(bare[at...]), way) + jid[slash...]
    }

    /// A domain or a service below it.
    private func domain(_ domain: String, _ way: Way) -> String {
        var rest = domain[...]
        while true {
            if let bound = value(for: String(rest), .domain, way) { return domain[..<rest.startIndex] + bound }
            guard let dot = rest.firstIndex(of: ".") else { return domain }
            rest = rest[rest.index(after: dot)...]
        }
    }

    /// Accounts, domains and full JIDs with what each is on the other side, the longest first.
    func addresses(_ way: Way) -> [(text: [UInt8], other: [UInt8])] {
        addressPlaces.map { journal[$0] }
            .map { way == .toLive ? ($0.recorded.value, $0.live.value) : ($0.live.value, $0.recorded.value) }
            .map { (Array($0.utf8), Array($1.utf8)) }
            .sorted { $0.0.count > $1.0.count }
    }
}

extension ValueClass {
    /// One for each.
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

    /// Whether values of it are accounts, domains or full JIDs.
    fileprivate var isOfAddress: Bool { self == .account || self == .domain || self == .resource }
}
