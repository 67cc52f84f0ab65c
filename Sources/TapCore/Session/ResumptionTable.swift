internal import Synchronization
internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

/// The sessions of a run that can be resumed on a new connection (XEP-0198 §5). A resumed session gets the JID and the
/// state of the earlier one from this table.
///
/// A resumption id is a secret: anyone who knows it may try to resume the session. It is never stored; the key of an
/// entry is a hash of the id and of the bare JID of the account. A client that guesses the id of another account's
/// session therefore does not find that session.
///
/// Bounded: at most ``capacity`` entries, ``byteCapacity`` bytes of addresses, and ``ledgerByteCapacity`` bytes of
/// ledgers and further state. Beyond a bound, the session that was suspended first is removed; connected sessions are
/// kept.
/// Each call takes amortized constant time.
///
/// A connected session owns its ledgers, and stores them here when it ends. If another connection claims the ledgers of
/// a connected session whose counts have diverged, that session is ended first.
final class ResumptionTable: Sendable {
    /// The largest number of connected and suspended sessions together.
    static let capacity = 16_384
    /// The largest number of bytes of the sessions' addresses.
    static let byteCapacity = 4 << 20
    /// The largest number of bytes of the ledgers of suspended sessions, and of their state besides the ledgers.
    static let ledgerByteCapacity = 16 << 20
    /// The largest number of removed sessions that are remembered as not resumable.
    static let lostCapacity = 4096
    /// The longest JID in bytes (RFC 7622 §3.1: three parts of 1023 bytes, and two separators).
    static let maximumJIDLength = 3071
    /// The lifetime of a suspended session if the server gives no time (`max`), in nanoseconds: 10 minutes.
    static let defaultLifetime: Int64 = 600_000_000_000
    /// The longest lifetime that a server's `max` can set, in seconds: 7 days.
    static let maximumLifetime: Int64 = 7 * 86_400

    /// The identity of a resumable session: a resumption id of one account.
    struct Key: Hashable, Sendable {
        /// The mark of the session in the journal; empty without a journal.
        fileprivate let mark: [UInt8]
        /// A hash with a random seed of this process; 0 with a journal.
        fileprivate let hash: Int
    }

    /// The state that a session leaves to the session that resumes it.
    struct Suspended: Sendable {
        /// The bound full JID; of a session that began elsewhere, the address as far as it is known.
        var jid: String?
        var session: UInt64
        /// The key of the client, to count its reconnects.
        var client: ReconnectWatch.Key?
        /// The further state besides the ledgers; nil until the session is suspended.
        var legacy: TransferredState?
        /// The place in which the session stores ``legacy`` when it ends, if it was resumed while it was still
        /// connected.
        var transfer: StateTransfer?

        fileprivate var jidLength: Int { jid?.utf8.count ?? 0 }
    }

    /// The result of a request for the counts of the session to be resumed.
    enum Claim: Sendable {
        /// The session or its counts are unknown, so the counts of both ends are equal.
        case unknown
        /// The ledgers of the session. They stay in the table until the server has resumed the session.
        case ready(StreamManagementLedgers)
        /// The session is still connected, under this number, and its counts have diverged: it must end first.
        case connected(session: UInt64)
        /// This process does not know the session. The journal may contain it under one of these marks.
        case unlisted(marks: [[UInt8]])
        /// The counts of the session have diverged, and its ledgers were removed, or lost when xmpptap ended.
        case lost
    }

    fileprivate struct Entry {
        var content: Suspended
        /// The lifetime in nanoseconds after the end of the connection.
        var lifetime: Int64
        /// The time at which the entry expires, in nanoseconds of the run; nil while the session is connected.
        var end: Int64?
        /// The serial number of the suspension; 0 while the session is connected.
        var suspension: UInt64 = 0
        /// Whether the counts of the session's ends are known to differ.
        var hasDiverged = false
        /// The session to which the stored ledgers were given before its resumption; nil if there is none.
        var claimant: UInt64?
        /// The session that was still connected when it was resumed, and the place for its state.
        var earlier: (session: UInt64, transfer: StateTransfer)?
    }

    fileprivate struct Table {
        var entries: [Key: Entry] = [:]
        var byteCount = 0
        /// The suspended sessions in chronological order, including some that have been resumed or have expired since.
        var suspended: [(key: Key, suspension: UInt64)] = []
        /// The number of suspensions so far. It distinguishes an outdated entry of `suspended` from the current one.
        var suspensions: UInt64 = 0
        /// The number of entries removed from the front of `suspended`.
        var first = 0
        /// The ledgers of suspended and surrendered sessions.
        var ledgers: [Key: StreamManagementLedgers] = [:]
        var ledgerByteCount = 0
        /// The removed sessions whose counts had diverged, in a ring buffer with the oldest at `nextLost`.
        var lost: [Key] = []
        var isLost: Set<Key> = []
        var nextLost = 0
    }

    private let journal: (any ResumptionJournal)?
    private let table = Mutex(Table())

    init(journal: (any ResumptionJournal)? = nil) { self.journal = journal }

    /// Returns the key of a resumption id; `account` is the bare JID that has logged in, normalized for comparison.
    func key(id: String, account: String) -> Key {
        let text = Array("\(id)\0\(account)".utf8)
        if let mark = journal?.mark(of: text) { return Key(mark: mark, hash: 0) }
        return Key(mark: [], hash: text.hashValue)
    }

    /// The number of stored sessions.
    var count: Int { table.withLock { $0.entries.count } }

    /// The number of entries in `suspended`, for tests.
    var traceCount: Int { table.withLock { $0.suspended.count } }

    /// The number of bytes of the stored addresses.
    var byteCount: Int { table.withLock { $0.byteCount } }

    /// Marks a connected session as resumable.
    ///
    /// - Parameter seconds: The server's `max`; nil if it sent none.
    func enable(_ key: Key, _ content: Suspended, seconds: Int64?) {
        guard content.jidLength <= Self.maximumJIDLength else { return }
        let lifetime =
            seconds.map { min(max(0, $0), Self.maximumLifetime) * 1_000_000_000 } ?? Self.defaultLifetime
        table.withLock { table in
            table.remove(key)
            while table.entries.count >= Self.capacity || table.byteCount + content.jidLength > Self.byteCapacity {
                guard table.forgetOldest() else { return }
            }
            table.entries[key] = Entry(content: content, lifetime: lifetime, end: nil)
            table.byteCount += content.jidLength
        }
    }

    var ledgerByteCount: Int { table.withLock { $0.ledgerByteCount } }

    /// Suspends a session after its connection has ended. Does nothing if another connection has resumed the session.
    ///
    /// - Parameters:
    ///   - ledgers: The counts of the session, if they are needed; nil also if the session has surrendered them.
    ///   - legacy: The further state of the session.
    func suspend(
        _ key: Key,
        of session: UInt64,
        at monotonic: Int64,
        leaving ledgers: StreamManagementLedgers? = nil,
        legacy: TransferredState? = nil
    ) {
        table.withLock { table in
            guard let entry = table.entries[key] else {
                // The table had no space for the session.
                if ledgers?.hasDiverged == true { table.lose(key) }
                return
            }
            guard entry.content.session == session, entry.end == nil else { return }
            let (end, isTooMuch) = monotonic.addingReportingOverflow(entry.lifetime)
            let last = isTooMuch ? Int64.max : end
            table.entries[key]?.end = last
            table.entries[key]?.claimant = nil
            if let jid = legacy?.jid, jid.utf8.count <= Self.maximumJIDLength {
                table.entries[key]?.content.jid = jid
                table.byteCount += jid.utf8.count - entry.content.jidLength
            }
            table.suspensions += 1
            table.entries[key]?.suspension = table.suspensions
            table.append((key, table.suspensions))
            table.keep(ledgers, legacy, key)
            while table.byteCount > Self.byteCapacity, table.forgetOldest() {}
        }
    }

    /// Marks a connected session as diverged: the counts of its two ends differ.
    ///
    /// - Returns: The mark to add to the journal; nil without a journal, or if the session was marked already.
    func diverge(_ key: Key, of session: UInt64) -> [UInt8]? {
        let isNew = table.withLock { table in
            guard let entry = table.entries[key] else { return true }
            guard entry.content.session == session, !entry.hasDiverged else { return false }
            table.entries[key]?.hasDiverged = true
            return true
        }
        return isNew && !key.mark.isEmpty ? key.mark : nil
    }

    /// Returns the counts of the session that session `number` requests to resume, before the server has answered.
    func claim(_ key: Key, by number: UInt64, at monotonic: Int64) -> Claim {
        table.withLock { table in
            if let end = table.entries[key]?.end, end < monotonic { table.forget(key) }
            guard let entry = table.entries[key] else {
                if table.isLost.contains(key) { return .lost }
                return key.mark.isEmpty ? .unknown : .unlisted(marks: [key.mark])
            }
            if let ledgers = table.ledgers[key] {
                table.entries[key]?.claimant = number
                return .ready(ledgers)
            }
            // The session stopped counting before its counts diverged.
            if entry.hasDiverged, entry.end != nil { return .lost }
            let isElsewhere = entry.end == nil && entry.content.session != number
            return isElsewhere && entry.hasDiverged ? .connected(session: entry.content.session) : .unknown
        }
    }

    /// Returns the counts of the session that has one of these keys.
    func claim(_ keys: [Key], by number: UInt64, at monotonic: Int64) -> Claim {
        var unlisted: [[UInt8]] = []
        for key in keys {
            switch claim(key, by: number, at: monotonic) {
            case .unknown: continue
            case .unlisted(let marks): unlisted += marks
            case .ready(let ledgers): return .ready(ledgers)
            case .connected(let session): return .connected(session: session)
            case .lost: return .lost
            }
        }
        return unlisted.isEmpty ? .unknown : .unlisted(marks: unlisted)
    }

    /// Removes a session that can no longer be resumed. Does nothing if another connection has resumed it.
    func end(_ key: Key, of session: UInt64) {
        table.withLock { table in
            if table.entries[key]?.content.session == session { table.remove(key) }
        }
    }

    /// Transfers a session to the session `number`, and returns its state; nil if the session is unknown or has
    /// expired.
    func resume(_ key: Key, by number: UInt64, at monotonic: Int64) -> Suspended? {
        table.withLock { table in
            guard let entry = table.entries[key] else { return nil }
            guard entry.end.map({ monotonic <= $0 }) ?? true else {
                table.forget(key)
                return nil
            }
            var content = entry.content
            // The session has these stanzas from the ledgers, if it claimed them.
            if entry.claimant != number, var ledgers = table.ledgers[key] {
                content.legacy?.unsent = ledgers.takeLostInjections()
            }
            table.removeStoredState(key)
            if entry.end == nil, content.session != number {
                let transfer = StateTransfer()
                content.transfer = transfer
                table.entries[key]?.earlier = (content.session, transfer)
            }
            table.entries[key]?.content.session = number
            table.entries[key]?.end = nil
            table.entries[key]?.suspension = 0
            return content
        }
    }

    /// Returns the place in which an ended session must store its state, if it was resumed while it was connected; nil
    /// otherwise.
    func transfer(_ key: Key, of session: UInt64) -> StateTransfer? {
        table.withLock { table in
            guard let earlier = table.entries[key]?.earlier, earlier.session == session else { return nil }
            table.entries[key]?.earlier = nil
            return earlier.transfer
        }
    }
}

extension ResumptionTable.Table {
    fileprivate mutating func remove(_ key: ResumptionTable.Key) {
        removeStoredState(key)
        if let entry = entries.removeValue(forKey: key) { byteCount -= entry.content.jidLength }
    }

    /// Removes a resumable session. If its counts have diverged, the table remembers it as lost.
    fileprivate mutating func forget(_ key: ResumptionTable.Key) {
        if ledgers[key]?.hasDiverged == true || entries[key]?.hasDiverged == true { lose(key) }
        remove(key)
    }

    /// Removes the state of a suspended session, except its address.
    fileprivate mutating func removeStoredState(_ key: ResumptionTable.Key) {
        if let gone = ledgers.removeValue(forKey: key) { ledgerByteCount -= gone.byteCount }
        if let gone = entries[key]?.content.legacy.take() { ledgerByteCount -= gone.byteCount }
    }

    fileprivate mutating func keep(
        _ kept: StreamManagementLedgers?,
        _ legacy: TransferredState?,
        _ key: ResumptionTable.Key
    ) {
        removeStoredState(key)
        ledgers[key] = kept
        entries[key]?.content.legacy = legacy
        ledgerByteCount += (kept?.byteCount ?? 0) + (legacy?.byteCount ?? 0)
        while ledgerByteCount > ResumptionTable.ledgerByteCapacity, forgetOldest() {}
    }

    fileprivate mutating func lose(_ key: ResumptionTable.Key) {
        guard isLost.insert(key).inserted else { return }
        guard lost.count >= ResumptionTable.lostCapacity else { return lost.append(key) }
        isLost.remove(lost[nextLost])
        lost[nextLost] = key
        nextLost = (nextLost + 1) % lost.count
    }

    /// Removes the session that was suspended first; returns false if there is none.
    fileprivate mutating func forgetOldest() -> Bool {
        while first < suspended.count {
            let (key, suspension) = suspended[first]
            first += 1
            // Skip sessions that were resumed since their suspension.
            guard entries[key]?.suspension == suspension else { continue }
            forget(key)
            return true
        }
        return false
    }

    fileprivate mutating func append(_ item: (key: ResumptionTable.Key, suspension: UInt64)) {
        // Remove outdated entries when there are more of these than current ones.
        if suspended.count > 2 * entries.count + 64 {
            suspended = suspended[first...].filter { entries[$0.key]?.suspension == $0.suspension }
            first = 0
        }
        suspended.append(item)
    }
}

/// The state, besides the ledgers, that a session leaves to the session that resumes it.
struct TransferredState: Sendable {
    /// The address, which may have become known later than the session was added to the table.
    let jid: String?
    /// The known contacts.
    let roster: Roster
    /// The counts of stanzas and bytes, including those of earlier sessions.
    let counts: EarlierCounts
    /// The memory of the session's rules; nil if there are none.
    let rules: RuleMemory?
    /// The injected requests whose late answers must not be forwarded either; nil if there are none.
    var requests: IQTracker?
    /// Stanzas of rules that it has not sent, if the session that resumes it did not get its ledgers, which have them
    /// otherwise. If it is resumed before it ends, they are sent with the next input of the other session.
    var unsent: [Injection] = []

    /// Approximate memory in bytes.
    var byteCount: Int { roster.byteCount + (rules?.byteCount ?? 0) + (requests?.memory ?? 0) }
}

/// The place in which a session that was resumed while it was connected stores its state when it ends, for the session
/// that resumed it.
final class StateTransfer: Sendable {
    private let legacy = Mutex<TransferredState?>(nil)

    func store(_ left: TransferredState) { legacy.withLock { $0 = left } }

    /// Removes and returns the state; nil before it is stored.
    func take() -> TransferredState? { legacy.withLock { $0.take() } }
}

/// The counts of stanzas and bytes of the earlier sessions that a session resumes, by direction.
final class EarlierCounts: Sendable {
    let sent, received: SessionInfo.Counts

    init(_ sent: SessionInfo.Counts, _ received: SessionInfo.Counts) { (self.sent, self.received) = (sent, received) }
}
