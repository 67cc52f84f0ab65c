internal import TapRecord
import XMPPCore

/// What a session has of rules: those that are asked, what they remember, and the items that they let wait.
///
/// A class, so that a session without rules has one empty reference.
final class SessionRules {
    /// The longest that an item is held for a person, in nanoseconds.
    static let holdTime: Int64 = 60_000_000_000
    /// The most remarks about the rules of a session that are logged.
    static let mostRemarks = 1000

    private(set) var set: RuleSet
    /// The rules of before, the oldest first.
    private(set) var earlier: [EarlierRules] = []
    var state: RuleState
    let clientAddress: String?
    private let localTime: ((Timestamp) -> RuleLocalTime)?
    /// The ruling on the item at hand, until it is recorded.
    var ruling: ItemRuling?
    /// Rules were asked about the item at hand.
    var isJudged = false
    /// Reads what goes out instead of an item.
    var checker = ItemChecker()
    /// The shape of the leg on which a direction leaves.
    var shapes: InlineArray<2, LinkShape?> = [nil, nil]
    /// A rule has answered a login; the server's own failure is not passed on to the client.
    var swallowsFailure = false

    /// Stanzas that are to be held without a rule.
    var pause: PendingPause?

    /// Directions, as bits, in which stanzas of rules wait to be sent.
    var injecting: UInt8 = 0 { didSet { if injecting != 0 { isBusy = true } } }
    /// Something waits that ``Session/attend(to:)`` has to look at.
    private(set) var isBusy = false

    private var lines: InlineArray<2, WaitingLine> = [WaitingLine(), WaitingLine()]
    private var lastHeld: UInt64 = 0
    private var remarked: Set<Remarked> = []

    private struct Remarked: Hashable {
        var place: RulePlace
        var code: String
    }

    /// - Parameter remote: The client's address, `HOST:PORT`.
    init(_ set: RuleSet, session: UInt64, remote: String?, localTime: ((Timestamp) -> RuleLocalTime)?) {
        self.set = set
        state = RuleState(seed: session)
        clientAddress = remote.map { RuleContext.host($0) }
        self.localTime = localTime
    }

    // MARK: Other rules

    /// Asks other rules from the next item on; those of before where a stanza comes again that they have decided on.
    ///
    /// - Parameter ledgers: The counts of a session that can be resumed; nil of any other.
    func replace(by new: RuleSet, _ ledgers: StreamManagementLedgers?) {
        if let ledgers {
            let waiting = Direction.allCases.filter { self[$0].item?.isStanza == true }
            earlier.append(EarlierRules(set, state.counters, ledgers, waiting))
            forgetEarlier(ledgers)
        }
        for index in lines.indices { lines[index].item?.ruling?.shapes = false }
        set = new
        state.counters = [:]
    }

    /// What a session leaves to the one that resumes it.
    func memory(_ ledgers: StreamManagementLedgers?) -> RuleMemory {
        let last = EarlierRules(set, state.counters, ledgers ?? StreamManagementLedgers())
        return RuleMemory(
            marks: state.marks,
            directedPresence: state.directedPresence,
            generator: state.generator,
            rules: earlier + [last]
        )
    }

    /// Goes on where another session has ended.
    func resume(_ memory: RuleMemory) {
        state.resume(marks: memory.marks, directedPresence: memory.directedPresence)
        earlier = memory.rules
        guard let last = earlier.last, last.set.tables === set.tables else { return }
        state.counters = last.counters
        state.generator = memory.generator
        earlier.removeLast()
    }

    /// Forgets the rules of which no stanza can come again.
    func forgetEarlier(_ ledgers: StreamManagementLedgers) {
        var ends = Direction.allCases.map { ledgers[$0].acknowledged }
        earlier = earlier.filter { rules in
            let old = ends
            ends = Direction.allCases.map { max(rules.end($0), old[Int($0.rawValue)]) }
            return ends != old
        }
        earlier.removeFirst(max(0, earlier.count - EarlierRules.most))
    }

    /// Calls `body` while the rules of before are asked that have decided on the stanza of this number; nil is a new one.
    func withRules(of number: UInt64?, _ direction: Direction, _ body: () -> Void) {
        let found = number.flatMap { number in earlier.firstIndex { $0.end(direction) >= number } }
        guard let found else { return body() }
        exchange(found)
        body()
        exchange(found)
    }

    private func exchange(_ index: Int) {
        swap(&set, &earlier[index].set)
        swap(&state.counters, &earlier[index].counters)
    }

    // MARK: The item at hand

    /// The time of day, where a rule asks for it.
    func localTime(at time: Timestamp) -> RuleLocalTime {
        set.asksTime ? localTime?(time) ?? RuleLocalTime() : RuleLocalTime()
    }

    /// The number of the next item that is held.
    func nextHeld() -> UInt64 {
        lastHeld += 1
        return lastHeld
    }

    /// Whether a remark of this kind is the first about a rule.
    func isFirst(_ remark: Verdict.Remark, _ place: RulePlace) -> Bool {
        remarked.count < Self.mostRemarks && remarked.insert(Remarked(place: place, code: remark.code)).inserted
    }

    /// What waits in a direction.
    subscript(direction: Direction) -> WaitingLine {
        _read { yield lines[Int(direction.rawValue)] }
        _modify {
            yield &lines[Int(direction.rawValue)]
            isBusy = true
        }
    }

    /// Checks whether anything still waits.
    func settle() { isBusy = injecting != 0 || self[.send].item != nil || self[.recv].item != nil }

    /// When the first item that waits goes on; nil where none does by itself.
    var deadline: Int64? {
        guard isBusy else { return nil }
        let (send, recv) = (self[.send].item?.deadline, self[.recv].item?.deadline)
        return send.map { min($0, recv ?? .max) } ?? recv
    }
}

/// Rules that others have replaced. They decide on stanzas that come again, so that these are treated alike each time.
struct EarlierRules: Sendable {
    /// Rule sets of before that are kept: of more the oldest is given up, and the next one decides.
    static let most = 4

    fileprivate(set) var set: RuleSet
    fileprivate(set) var counters: [Int: Int]
    private let ends: [UInt64]

    /// - Parameter waiting: Where a stanza waits that they have decided on, and that is not counted yet.
    init(
        _ set: RuleSet,
        _ counters: [Int: Int],
        _ ledgers: StreamManagementLedgers,
        _ waiting: [Direction] = []
    ) {
        self.set = set
        self.counters = counters
        ends = Direction.allCases.map { direction in
            let ledger = ledgers[direction]
            return max(ledger.lastNumber, ledger.sent + (waiting.contains(direction) ? 1 : 0))
        }
    }

    /// The number of the last stanza of a direction that they, or rules before them, have decided on.
    func end(_ direction: Direction) -> UInt64 { ends[Int(direction.rawValue)] }
}

/// What the rules of a session leave to the one that resumes it.
struct RuleMemory: Sendable {
    /// Marks of the session.
    let marks: [String: Int64]
    /// Addresses to which the client has sent directed presence.
    let directedPresence: Set<[UInt8]>
    /// State of the random number generator.
    let generator: UInt64
    /// The rules of the session, the last ones at the end.
    let rules: [EarlierRules]
}

/// What rules decided about an item.
struct ItemRuling {
    /// Who has sent the item.
    var origin = Origin.peer
    let verdict: Verdict
    /// The rule that its record names.
    let rule: RulePlace?
    let repetition: Repetition
    /// The item passes whatever they decide: bytes of it have gone out.
    var isWatched = false
    /// Its faults shape the link; not those of rules that others have replaced while the item waited.
    var shapes = true
    /// The records of its hits are made.
    var hasNotedHits = false
    /// See ``RuleState/answers``.
    let answers: UInt32
    /// Whether the item is recorded.
    private(set) var isRecorded = true
    /// The level of its record, where a rule has set one.
    private(set) var level: Level?
    /// What the item's record leaves out.
    private(set) var redacted: [StanzaPath] = []

    /// Whether a stanza came before, on an earlier connection.
    enum Repetition {
        case none
        /// It may have, or is another one under the same number.
        case possible
        /// It has, and the decision is known.
        case known
    }

    init(_ verdict: Verdict, _ repetition: Repetition, answers: UInt32) {
        self.verdict = verdict
        self.repetition = repetition
        self.answers = answers
        var rule = verdict.fate == .pass ? verdict.editedBy : verdict.decidedBy
        for (place, action) in verdict.actions {
            switch action {
            case .record(let isOn): isRecorded = isOn
            case .level(let level): self.level = level
            case .redact(let path): redacted.append(path)
            case .delay, .pause, .duplicate, .fault: rule = rule ?? place
            case .inject, .log: break
            }
        }
        self.rule = rule
    }

    /// Whether the stanzas of its rules are sent. They were sent already where the item comes again; if it was dropped
    /// then, that would be known.
    var injects: Bool {
        switch repetition {
        case .none: true
        case .possible: verdict.fate != .pass
        case .known: false
        }
    }

    /// Whether it delays the item or what follows.
    var delays: Bool {
        verdict.actions.contains { entry in
            switch entry.1 {
            case .delay, .pause, .fault: true
            case .inject, .duplicate, .log, .record, .level, .redact: false
            }
        }
    }

    /// Whether it depends on more than the item.
    var isStateful: Bool { answers > 1 }
}

/// An item that a rule delays or holds: the last one of its decoder, which has its bytes.
struct WaitingItem {
    let event: StreamEvent
    var decision: ItemDecision
    let reading: ItemReading
    /// Nil of an item that no rule has hit.
    var ruling: ItemRuling?
    /// When it came, in nanoseconds of the run.
    let since: Int64
    /// When it goes on, in nanoseconds of the run; nil is never.
    var deadline: Int64?
    /// Nothing goes out in its direction.
    let isStalled: Bool
    /// It is held for a person.
    var held: HeldItem?
    /// What follows it is not decoded, for this reason.
    private(set) var opacity: DirectionRelay.Opacity?

    var isStanza: Bool { event.item == .element && event.head.kind != .nonza }

    /// Ends the wait, since the direction is not decoded from here on.
    mutating func endWait(_ why: DirectionRelay.Opacity) {
        deadline = .min
        opacity = why
    }
}

/// A pause of which not all stanzas have come.
final class PendingPause {
    let pause: StanzaPause
    /// Stanzas that are still to be held.
    var count: Int
    /// What its conditions remember.
    var state: RuleState

    init(_ pause: StanzaPause, session: UInt64) {
        self.pause = pause
        count = pause.count
        state = RuleState(seed: session)
    }

    /// Whether stanzas of a direction may be held.
    func covers(_ direction: Direction) -> Bool { pause.direction.map { $0 == direction } ?? true }
}

/// What waits in a direction: an item, and when what follows it came.
struct WaitingLine {
    /// Reads whose times are kept.
    private static let mostArrivals = 4096

    var item: WaitingItem?
    /// Nothing goes out.
    var isStalled: Bool { item?.isStalled == true }
    /// The item waits as long as the session lasts.
    var isEndless: Bool { item.map { $0.deadline == nil } ?? false }
    /// When bytes came that were not looked at: offsets in the leg up to which, ascending.
    private var arrivals: [(end: UInt64, at: Int64)] = []

    /// Bytes up to this offset in the leg have come and wait.
    mutating func noteArrival(upTo end: UInt64, at now: Int64) {
        if arrivals.count >= Self.mostArrivals { arrivals.removeLast() }
        arrivals.append((end, now))
    }

    /// Takes out the item that waits.
    mutating func takeItem() -> WaitingItem? {
        defer { item = nil }
        return item
    }

    /// When an item came that ends at this offset; `now` where it has not waited.
    mutating func arrival(of end: UInt64, now: Int64) -> Int64 {
        arrivals.removeFirst(arrivals.prefix { $0.end < end }.count)
        return arrivals.first?.at ?? now
    }
}
