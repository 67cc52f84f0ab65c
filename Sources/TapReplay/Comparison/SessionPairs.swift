package import TapRecord
internal import XMPPCore

/// Identifies a session of a recording. Session numbers are unique only within a run.
package struct SessionKey: Sendable, Hashable {
    /// The name of the run, as in the recording's header.
    package let run: String
    /// The session's number.
    package let number: UInt64

    package init(run: String, number: UInt64) {
        self.run = run
        self.number = number
    }
}

/// The sessions of a recording, without their items.
package struct SessionCatalogue: Sendable {
    /// An entry of the catalogue.
    package struct Entry: Sendable {
        /// The run and the number of the session.
        package let key: SessionKey
        /// The full JID that the session bound; nil if it bound none.
        package var jid: String?
        /// Whether stream data was recorded. A connection without stream data, such as a port scan, is not compared.
        package var hasStream = false

        var bare: String? { jid.map { String($0.prefix { $0 != "/" }) } }
    }

    /// The sessions in the order in which they began.
    package private(set) var entries: [Entry] = []
    private var places: [SessionKey: Int] = [:]
    private var run = ""

    package init() {}

    /// Handles the header of a part of the recording.
    package mutating func add(_ header: RecordHeader) { run = header.run }

    /// Adds the session of a record. The caller may leave out records of stanzas.
    package mutating func add(_ line: RecordLine) {
        let record = line.record
        guard record.session != 0 else { return }
        let key = SessionKey(run: run, number: record.session)
        let place = places[key] ?? entries.count
        if place == entries.count {
            places[key] = place
            entries.append(Entry(key: key))
        }
        if entries[place].jid == nil { entries[place].jid = record.jid }
        switch record.kind {
        case .streamOpen, .element, .stanza: entries[place].hasStream = true
        default: break
        }
    }
}

/// The pairs of sessions to compare.
package struct SessionPairs: Sendable {
    /// The pairs, in the order of the recorded sessions.
    package private(set) var pairs: [(recorded: SessionCatalogue.Entry, live: SessionCatalogue.Entry)] = []
    /// Recorded sessions without a counterpart.
    package private(set) var missing: [SessionCatalogue.Entry] = []
    /// Live sessions without a counterpart.
    package private(set) var unexpected: [SessionCatalogue.Entry] = []

    /// Pairs sessions by the given numbers; a pair is left out if a recording lacks one of them.
    package init(recorded: SessionCatalogue, live: SessionCatalogue, numbers: [(UInt64, UInt64)]) {
        for (one, other) in numbers {
            let first = recorded.entries.first { $0.key.number == one }
            let second = live.entries.first { $0.key.number == other }
            if let first, let second { pairs.append((first, second)) }
        }
    }

    /// Pairs all sessions: by full JID, then by bare JID, then in order, sessions with a login before those without.
    package init(recorded: SessionCatalogue, live: SessionCatalogue) {
        var ours = recorded.entries.filter(\.hasStream).map(Optional.some)
        var theirs = live.entries.filter(\.hasStream).map(Optional.some)
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

    /// The numbers of the clients of both sides; the clients of a pair have equal numbers.
    package var senders: (recorded: SenderNumbers, live: SenderNumbers) {
        var (one, other) = (SenderNumbers(), SenderNumbers())
        for (number, pair) in pairs.enumerated() {
            if let jid = pair.recorded.jid { one.add(jid, number: number) }
            if let jid = pair.live.jid { other.add(jid, number: number) }
        }
        return (one, other)
    }

    /// The accounts of paired sessions, bound to each other.
    package var bindings: ValueBindings {
        var bindings = ValueBindings()
        for (recorded, live) in pairs {
            guard let one = recorded.bare, let other = live.bare else { continue }
            try? bindings.bind(one, to: other, .account)
        }
        return bindings
    }
}
