internal import Synchronization
internal import TapRecord
import XMPPCore

/// The sessions of a run that can be resumed on a new connection (XEP-0198 §5), so that one that is has the address of the
/// session that it continues.
///
/// A resumption id is a secret: whoever has it may try to take the session. It is never kept; an entry is found by a hash of
/// the id together with the bare account that has logged in. So a client that guesses an id does not appear as another
/// account.
///
/// Bounded: at most ``capacity`` entries whose addresses have ``byteCapacity`` bytes together, and their ledgers and rosters
/// ``ledgerByteCapacity``. Where there is no room, the session that was suspended first is forgotten; sessions that are
/// connected are kept. Each call takes constant time, on the average of many.
///
/// A session's ledgers are its own while it is connected, and are handed over by value: left here when it ends. One that is
/// still connected when another claims its ledgers is ended for that where its ends count differently.
final class ResumptionTable: Sendable {
    /// Entries at most, of connected and suspended sessions together.
    static let capacity = 16_384
    /// Bytes of their addresses at most.
    static let byteCapacity = 4 << 20
    /// Bytes of the ledgers and rosters of suspended sessions at most.
    static let ledgerByteCapacity = 16 << 20
    /// Forgotten sessions at most of which it is known that they cannot be resumed.
    static let lostCapacity = 4096
    /// No JID is longer (RFC 7622 §3.1: three parts of 1023 bytes, and two separators).
    static let longestJID = 3071
    /// How long a suspended session is remembered where the server names no time (`max`), in nanoseconds: 10 minutes.
    static let defaultLifetime: Int64 = 600_000_000_000
    /// The longest time (`max`) of a server's that counts, in seconds: 7 days.
    static let longestLifetime: Int64 = 7 * 86_400

    /// Stands for a resumption id of one account.
    struct Key: Hashable, Sendable {
        /// Its mark in the journal; empty without a journal.
        fileprivate let mark: [UInt8]
        /// A hash under a key of this process; 0 with a journal.
        fileprivate let hash: Int
    }

    /// What is carried over from one session to the next.
    struct Suspended: Sendable {
        /// The bound full JID.
        var jid: String
        var session: UInt64
        /// Whose reconnects are counted.
        var client: ReconnectWatch.Key?
        /// What it leaves beside its ledgers, once it is suspended.
        var legacy: SessionLegacy?
        /// Where a session that is still connected leaves that when it ends.
        var inheritance: Inheritance?
    }

    /// What a session that is to resume another finds out about its counts.
    enum Claim: Sendable {
        /// No such session is known, or no counts of it: both ends count the same.
        case unknown
        /// Its ledgers. They stay here until the server has resumed it.
        case ready(StreamManagementLedgers)
        /// It is still connected, as the session with this number, and its ends count differently: it has to end first.
        case connected(session: UInt64)
        /// No such session is known to this process. The journal may have it by one of these marks.
        case unlisted(marks: [[UInt8]])
        /// Its ends count differently, and its ledgers are forgotten, or were lost when xmpptap ended.
        case lost
    }

    fileprivate struct Entry {
        var content: Suspended
        /// Nanoseconds from the end of the connection.
        var lifetime: Int64
        /// When it is over; nil while the session is connected.
        var end: Int64?
        /// The number of its suspension; 0 while the session is connected.
        var suspension: UInt64 = 0
        /// Its ends are known to count differently.
        var hasDiverged = false
        /// The session that was connected when it was resumed last, and where it leaves what it knows.
        var earlier: (session: UInt64, inheritance: Inheritance)?
    }

    fileprivate struct Table {
        var entries: [Key: Entry] = [:]
        var byteCount = 0
        /// Those that were suspended, in the order of time; some have been resumed since, or are over.
        var suspended: [(key: Key, suspension: UInt64)] = []
        /// How often any session was suspended; tells an old trace of one from its current one.
        var suspensions: UInt64 = 0
        /// How many of them are gone from the front.
        var first = 0
        /// What sessions have left or surrendered.
        var ledgers: [Key: StreamManagementLedgers] = [:]
        var ledgerByteCount = 0
        /// Sessions that are forgotten and whose ends count differently, the oldest at `nextLost`.
        var lost: [Key] = []
        var isLost: Set<Key> = []
        var nextLost = 0
    }

    private let journal: (any ResumptionJournal)?
    private let table = Mutex(Table())

    /// A table of no sessions.
    init(journal: (any ResumptionJournal)? = nil) { self.journal = journal }

    /// The key of a resumption id; `account` is the bare address that has logged in, in the form in which it is compared.
    func key(id: String, account: String) -> Key {
        let text = Array("\(id)\0\(account)".utf8)
        if let mark = journal?.mark(of: text) { return Key(mark: mark, hash: 0) }
        // Under a key of this process.
        return Key(mark: [], hash: text.hashValue)
    }

    /// How many sessions are known.
    var count: Int { table.withLock { $0.entries.count } }

    /// How many traces of suspensions are kept, for tests.
    var traceCount: Int { table.withLock { $0.suspended.count } }

    /// Bytes of the addresses that are kept.
    var byteCount: Int { table.withLock { $0.byteCount } }

    /// A session that is connected can be resumed from now on.
    ///
    /// - Parameter seconds: The server's `max`; nil where it has named none.
    func enable(_ key: Key, _ content: Suspended, seconds: Int64?) {
        guard content.jid.utf8.count <= Self.longestJID else { return }
        let lifetime =
            seconds.map { min(max(0, $0), Self.longestLifetime) * 1_000_000_000 } ?? Self.defaultLifetime
        table.withLock { table in
            table.remove(key)
            while table.entries.count >= Self.capacity || table.byteCount + content.jid.utf8.count > Self.byteCapacity {
                guard table.forgetOldest() else { return }
            }
            table.entries[key] = Entry(content: content, lifetime: lifetime, end: nil)
            table.byteCount += content.jid.utf8.count
        }
    }

    var ledgerByteCount: Int { table.withLock { $0.ledgerByteCount } }

    /// The connection of a session is gone. Nothing happens where another session has resumed it.
    ///
    /// - Parameter ledgers: Its counts, where they matter; nil also where it has surrendered them.
    /// - Parameter legacy: What else it leaves.
    func suspend(
        _ key: Key,
        of session: UInt64,
        at monotonic: Int64,
        leaving ledgers: StreamManagementLedgers? = nil,
        legacy: SessionLegacy? = nil
    ) {
        table.withLock { table in
            guard let entry = table.entries[key] else {
                // There was no room for it.
                if ledgers?.hasDiverged == true { table.lose(key) }
                return
            }
            guard entry.content.session == session, entry.end == nil else { return }
            let (end, isTooMuch) = monotonic.addingReportingOverflow(entry.lifetime)
            let last = isTooMuch ? Int64.max : end
            table.entries[key]?.end = last
            table.suspensions += 1
            table.entries[key]?.suspension = table.suspensions
            table.append((key, table.suspensions))
            table.keep(ledgers, legacy, key)
        }
    }

    /// The ends of a session that is connected count differently from now on.
    ///
    /// - Returns: The mark to be added to the journal; nil without a journal, and for a session that is in it.
    func diverge(_ key: Key, of session: UInt64) -> [UInt8]? {
        let isNew = table.withLock { table in
            guard let entry = table.entries[key] else { return true }
            guard entry.content.session == session, !entry.hasDiverged else { return false }
            table.entries[key]?.hasDiverged = true
            return true
        }
        return isNew && !key.mark.isEmpty ? key.mark : nil
    }

    /// What is known of the counts of a session that `number` asks to resume, before the server has answered.
    func claim(_ key: Key, by number: UInt64, at monotonic: Int64) -> Claim {
        table.withLock { table in
            if let end = table.entries[key]?.end, end < monotonic { table.forget(key) }
            guard let entry = table.entries[key] else {
                if table.isLost.contains(key) { return .lost }
                return key.mark.isEmpty ? .unknown : .unlisted(marks: [key.mark])
            }
            if let ledgers = table.ledgers[key] { return .ready(ledgers) }
            let isElsewhere = entry.end == nil && entry.content.session != number
            return isElsewhere && entry.hasDiverged ? .connected(session: entry.content.session) : .unknown
        }
    }

    /// A session is over and cannot be resumed. Nothing happens where another session has resumed it.
    func end(_ key: Key, of session: UInt64) {
        table.withLock { table in
            if table.entries[key]?.content.session == session { table.remove(key) }
        }
    }

    /// The session `number` goes on with one: gives what that leaves to it, and has it from now on; nil where none is known,
    /// or its time is over.
    func resume(_ key: Key, by number: UInt64, at monotonic: Int64) -> Suspended? {
        table.withLock { table in
            guard let entry = table.entries[key] else { return nil }
            guard entry.end.map({ monotonic <= $0 }) ?? true else {
                table.forget(key)
                return nil
            }
            table.dropLeft(key)
            var content = entry.content
            if entry.end == nil, content.session != number {
                let inheritance = Inheritance()
                content.inheritance = inheritance
                table.entries[key]?.earlier = (content.session, inheritance)
            }
            table.entries[key]?.content.session = number
            table.entries[key]?.end = nil
            table.entries[key]?.suspension = 0
            return content
        }
    }

    /// Where a session leaves what it knows that was resumed while it was connected; nil of any other.
    func inheritance(_ key: Key, of session: UInt64) -> Inheritance? {
        table.withLock { table in
            guard let earlier = table.entries[key]?.earlier, earlier.session == session else { return nil }
            table.entries[key]?.earlier = nil
            return earlier.inheritance
        }
    }
}

extension ResumptionTable.Table {
    fileprivate mutating func remove(_ key: ResumptionTable.Key) {
        dropLeft(key)
        if let entry = entries.removeValue(forKey: key) { byteCount -= entry.content.jid.utf8.count }
    }

    /// Removes a session that might have been resumed: where its ends count differently that is remembered.
    fileprivate mutating func forget(_ key: ResumptionTable.Key) {
        if ledgers[key]?.hasDiverged == true { lose(key) }
        remove(key)
    }

    /// Forgets what a suspended session has left beside its address.
    fileprivate mutating func dropLeft(_ key: ResumptionTable.Key) {
        if let gone = ledgers.removeValue(forKey: key) { ledgerByteCount -= gone.byteCount }
        if let gone = entries[key]?.content.legacy.take() { ledgerByteCount -= gone.roster.byteCount }
    }

    fileprivate mutating func keep(
        _ kept: StreamManagementLedgers?,
        _ legacy: SessionLegacy?,
        _ key: ResumptionTable.Key
    ) {
        dropLeft(key)
        ledgers[key] = kept
        entries[key]?.content.legacy = legacy
        ledgerByteCount += (kept?.byteCount ?? 0) + (legacy?.roster.byteCount ?? 0)
        while ledgerByteCount > ResumptionTable.ledgerByteCapacity, forgetOldest() {}
    }

    fileprivate mutating func lose(_ key: ResumptionTable.Key) {
        guard isLost.insert(key).inserted else { return }
        guard lost.count >= ResumptionTable.lostCapacity else { return lost.append(key) }
        isLost.remove(lost[nextLost])
        lost[nextLost] = key
        nextLost = (nextLost + 1) % lost.count
    }

    /// Forgets the session that was suspended first; false where none is.
    fileprivate mutating func forgetOldest() -> Bool {
        while first < suspended.count {
            let (key, suspension) = suspended[first]
            first += 1
            // One that was resumed since is not meant.
            guard entries[key]?.suspension == suspension else { continue }
            forget(key)
            return true
        }
        return false
    }

    fileprivate mutating func append(_ item: (key: ResumptionTable.Key, suspension: UInt64)) {
        // Sessions that come and go leave traces: taken out when there are more of these than of others.
        if suspended.count > 2 * entries.count + 64 {
            suspended = suspended[first...].filter { entries[$0.key]?.suspension == $0.suspension }
            first = 0
        }
        suspended.append(item)
    }
}

/// What a session leaves to the one that resumes it, beside its ledgers.
struct SessionLegacy: Sendable {
    /// The contacts that were seen.
    let roster: Roster
    /// Stanzas and bytes, with those of the sessions before it.
    let counts: EarlierCounts
    /// What its rules remember; nil where it has none.
    let rules: RuleMemory?
}

/// What a session that is still connected leaves to the one that has resumed it, when it ends.
final class Inheritance: Sendable {
    private let legacy = Mutex<SessionLegacy?>(nil)

    func leave(_ left: SessionLegacy) { legacy.withLock { $0 = left } }

    /// Nil until it is left.
    func take() -> SessionLegacy? { legacy.withLock { $0.take() } }
}

/// Stanzas and bytes of the sessions that one continues, by direction.
final class EarlierCounts: Sendable {
    let sent, received: SessionInfo.Counts

    init(_ sent: SessionInfo.Counts, _ received: SessionInfo.Counts) { (self.sent, self.received) = (sent, received) }
}

// Sessions that can be resumed, and those that are (XEP-0198 §5).
extension Session {
    /// What passed in this session and in those that it continues.
    var allCounts: EarlierCounts {
        guard let earlierCounts else { return EarlierCounts(info.sent, info.received) }
        return EarlierCounts(info.sent + earlierCounts.sent, info.received + earlierCounts.received)
    }

    /// The server has enabled stream management: if the session can be resumed, the one that does is to be known.
    mutating func noteResumable(_ enabled: Element) {
        guard enabled.matches("enabled", .streamManagement) || enabled.matches("enabled", .streamManagement2),
            let id = enabled.attribute("id"), !id.isEmpty, let jid = info.jid
        else { return }
        if let resumption { run.resumptions.end(resumption, of: number) }
        let owner = loginAccount(info.user) ?? loginDomain ?? Address(jid).comparableBare
        let key = run.resumptions.key(id: id, account: owner)
        resumption = key
        run.resumptions.enable(
            key,
            ResumptionTable.Suspended(jid: jid, session: number, client: client),
            seconds: enabled.attribute("max").flatMap { Int64($0) }
        )
        if hasDiverged { noteDivergence(key) }
    }

    /// The ends count differently: after a restart of xmpptap the session cannot be resumed.
    mutating func noteDivergence(_ key: ResumptionTable.Key) {
        if let mark = run.resumptions.diverge(key, of: number) { enqueue(.addToJournal(mark)) }
    }

    /// A server that names a place where the session is to be resumed (XEP-0198 §3, XEP-0397 §5) leads the client away
    /// from the tap. The record omits the place, which can be a secret.
    mutating func noteOtherPlace(_ enabled: Element) {
        let isPlace = enabled.isNamed("enabled") && enabled.namespace == .streamManagement
        guard isPlace, edited == nil,
            ([enabled] + enabled.children).contains(where: { $0.attribute("location") != nil })
        else { return }
        streamManagement?.namesOtherPlace = true
        guard !options.isObserved else { return }
        note(
            code: "other-location",
            "the server names another host for resumption; a client that resumes there will bypass xmpptap",
            direction: .recv
        )
    }

    /// The server has resumed an earlier session: this one has its address.
    ///
    /// - Parameter identifier: The address that SASL2 has given, if any.
    mutating func resume(_ resumed: Element?, _ event: StreamEvent, identifier: String? = nil) {
        var earlier: ResumptionTable.Suspended?
        if let id = resumed?.attribute("previd") {
            let owners = [loginAccount(info.user) ?? identifier.map { Address($0).comparableBare }, loginDomain]
            for owner in owners where earlier == nil {
                guard let owner else { continue }
                let key = run.resumptions.key(id: id, account: owner)
                earlier = run.resumptions.resume(key, by: number, at: now.monotonic)
                if earlier != nil { resumption = key }
                if earlier != nil, hasDiverged { noteDivergence(key) }
            }
        }
        if let earlier {
            info.jid = earlier.jid
            client = earlier.client
            inheritance = earlier.inheritance
            if let legacy = earlier.legacy {
                roster = legacy.roster
                unreadRoster = nil
                earlierCounts = legacy.counts
                if let rules, let memory = legacy.rules { rules.resume(memory) }
            }
        }
        let words =
            earlier.map { "resumed session \($0.session)" }
            ?? "resumed a session that xmpptap has no record of"
        becomeOpen(event, words, resumes: earlier?.session)
    }

    /// Takes what the session that this one continues has left, once it has.
    mutating func take(_ inheritance: Inheritance) {
        run.awaitTurn()
        guard let legacy = inheritance.take() else { return }
        readRoster()
        roster.inherit(legacy.roster)
        earlierCounts = legacy.counts
        self.inheritance = nil
    }

    /// The session has ended. One whose stream was closed in order cannot be resumed.
    mutating func endResumption() {
        guard let key = resumption else { return }
        defer { resumption = nil }
        if let inheritance = run.resumptions.inheritance(key, of: number) {
            readRoster()
            return inheritance.leave(SessionLegacy(roster: roster, counts: allCounts, rules: nil))
        }
        if case .clean? = info.ending { return run.resumptions.end(key, of: number) }
        readRoster()
        for direction in Direction.allCases { keepUnsent(direction) }
        let ledgers = streamManagement?.translator.legacy
        let legacy = SessionLegacy(roster: roster, counts: allCounts, rules: rules?.memory(ledgers))
        run.resumptions.suspend(key, of: number, at: now.monotonic, leaving: ledgers, legacy: legacy)
    }

    /// The session with this number resumes this one, whose connections are still there.
    mutating func giveUp(to session: UInt64) {
        if info.ending == nil {
            info.ending = .unclean(leg: .client, .finished)
            info.reason = "resumed as session \(session)"
        }
        finish(reset: true)
    }

    /// What is known of the counts of the session that the last item asks to resume, `user` being who logs in.
    func claimResumption(_ direction: Direction, user: String?) -> ResumptionTable.Claim {
        guard direction == .send, let id = StreamManagementTranslator.resumedID(directions.send.decoder) else {
            return .unknown
        }
        var unlisted: [[UInt8]] = []
        for case let owner? in [loginAccount(user), loginDomain] {
            let claim = run.resumptions.claim(
                run.resumptions.key(id: id, account: owner),
                by: number,
                at: now.monotonic
            )
            switch claim {
            case .unknown: continue
            case .unlisted(let marks): unlisted += marks
            case .ready, .connected, .lost: return claim
            }
        }
        return unlisted.isEmpty ? .unknown : .unlisted(marks: unlisted)
    }

    /// The bare account that logs in as `user`, as it is compared; nil for a login without a name.
    private func loginAccount(_ user: String?) -> String? {
        guard let user, let domain = info.domain else { return nil }
        return Address(user.utf8.contains(0x40) ? user : "\(user)@\(domain)").comparableBare
    }

    /// The key of an account whose login has no name, as with EXTERNAL: its domain. The server has checked that the id
    /// belongs to the account.
    private var loginDomain: String? { info.domain.map { Address($0).comparableBare } }
}
