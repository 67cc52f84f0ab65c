public import TapRecord
internal import XMPPCore

/// A session of a recording: its number counts within a run.
public struct SessionKey: Sendable, Hashable {
    /// The run, as the header names it.
    public let run: String
    /// The session's number.
    public let number: UInt64

    /// Puts both together.
    public init(run: String, number: UInt64) {
        self.run = run
        self.number = number
    }
}

/// The sessions of a recording, without their items.
public struct SessionCatalogue: Sendable {
    /// A session.
    public struct Entry: Sendable {
        /// Which it is.
        public let key: SessionKey
        /// The full JID that it bound; nil of one that did not.
        public var jid: String?

        var bare: String? { jid.map { String($0.prefix { $0 != "/" }) } }
    }

    /// In the order of their beginnings.
    public private(set) var entries: [Entry] = []
    private var places: [SessionKey: Int] = [:]
    private var run = ""

    /// No sessions.
    public init() {}

    /// Takes the header of a part of the recording.
    public mutating func take(_ header: RecordHeader) { run = header.run }

    /// Takes a record; those of stanzas may be left out.
    public mutating func take(_ line: RecordLine) {
        let record = line.record
        guard record.session != 0 else { return }
        let key = SessionKey(run: run, number: record.session)
        let place = places[key] ?? entries.count
        if place == entries.count {
            places[key] = place
            entries.append(Entry(key: key))
        }
        if entries[place].jid == nil { entries[place].jid = record.jid }
    }
}

/// Which session of one recording is compared with which of another.
public struct SessionPairs: Sendable {
    /// The pairs, in the order of the recorded sessions.
    public private(set) var pairs: [(recorded: SessionCatalogue.Entry, live: SessionCatalogue.Entry)] = []
    /// Recorded sessions without a counterpart.
    public private(set) var missing: [SessionCatalogue.Entry] = []
    /// Live sessions without a counterpart.
    public private(set) var unexpected: [SessionCatalogue.Entry] = []

    /// Pairs those sessions of which both recordings have the numbers asked for.
    public init(recorded: SessionCatalogue, live: SessionCatalogue, numbers: [(UInt64, UInt64)]) {
        for (one, other) in numbers {
            let first = recorded.entries.first { $0.key.number == one }
            let second = live.entries.first { $0.key.number == other }
            if let first, let second { pairs.append((first, second)) }
        }
    }

    /// Pairs all sessions: by JID, then by bare JID, then in their order, those that logged in before those that did not.
    public init(recorded: SessionCatalogue, live: SessionCatalogue) {
        var ours = recorded.entries.map(Optional.some)
        var theirs = live.entries.map(Optional.some)
        var found: [(Int, SessionCatalogue.Entry, SessionCatalogue.Entry)] = []
        func pair(_ key: (SessionCatalogue.Entry) -> String?) {
            var waiting: [String: [Int]] = [:]
            for (index, entry) in theirs.enumerated().reversed() {
                if let entry, let key = key(entry) { waiting[key, default: []].append(index) }
            }
            for (index, entry) in ours.enumerated() {
                guard let entry, let key = key(entry), let other = waiting[key]?.popLast(), let match = theirs[other]
                else { continue }
                ours[index] = nil
                theirs[other] = nil
                found.append((index, entry, match))
            }
        }
        pair(\.jid)
        pair(\.bare)
        pair { $0.jid.map { _ in "" } }
        pair { _ in "" }
        pairs = found.sorted { $0.0 < $1.0 }.map { ($0.1, $0.2) }
        missing = ours.compactMap(\.self)
        unexpected = theirs.compactMap(\.self)
    }

    /// The accounts of the sessions, bound to each other.
    public var bindings: ValueBindings {
        var bindings = ValueBindings()
        for (recorded, live) in pairs {
            guard let one = recorded.bare, let other = live.bare else { continue }
            try? bindings.bind(one, to: other, .account)
        }
        return bindings
    }
}
