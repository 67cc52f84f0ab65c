internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

/// A session's rules, their memory, and the items that they delay.
///
/// A class, so that a session without rules stores one empty reference.
final class SessionRules {
    /// The longest time that an item is held for the user, in nanoseconds.
    static let holdTime: Int64 = 60_000_000_000
    /// The most remarks about the rules of a session that are logged.
    static let mostRemarks = 1000

    private(set) var set: RuleSet
    /// The replaced rules, the oldest first.
    private(set) var earlier: [EarlierRules] = []
    var state: RuleState
    let clientAddress: String?
    private let localTime: ((Timestamp) -> RuleLocalTime)?
    /// The ruling on the current item, until it is recorded.
    var ruling: ItemRuling?
    /// Rules were evaluated for the current item.
    var isJudged = false
    /// The ruling on a request to resume that waits; nil if there is none.
    private var keptRuling: (ruling: ItemRuling?, isJudged: Bool)?
    /// The ruling on the current item was made before its wait.
    private(set) var isRestored = false
    /// Parses replacements of items.
    var checker = ItemChecker()
    /// The traffic shaping of each direction.
    var shapes: InlineArray<2, LinkShape?> = [nil, nil]
    /// A rule has answered a login; the server's own failure is not relayed to the client.
    var swallowsFailure = false

    /// Stanzas to hold without a rule.
    var pause: PendingPause? { didSet { updateNeeds() } }

    /// The facts that a rule, an earlier one or the pause asks for. Stored, since each item needs them.
    private(set) var needs = (roster: false, roundTrip: false)

    /// Directions, as bits, in which stanzas of rules wait to be sent.
    var injecting: UInt8 = 0 { didSet { if injecting != 0 { isBusy = true } } }
    /// There is work for ``Session/releaseDueItems(of:)``.
    private(set) var isBusy = false

    private var lines: InlineArray<2, WaitingLine> = [WaitingLine(), WaitingLine()]
    private var lastHeld: UInt64 = 0
    private var remarked: Set<Remarked> = []

    private struct Remarked: Hashable {
        var place: RulePlace
        var code: String
    }

    init(_ set: RuleSet, _ context: borrowing SessionContext, localTime: ((Timestamp) -> RuleLocalTime)? = nil) {
        self.set = set
        state = RuleState(seed: context.number)
        clientAddress = context.remote.map { RuleContext.host($0) }
        self.localTime = localTime
        updateNeeds()
    }

    // MARK: State

    private func updateNeeds() {
        needs.roster =
            self.set.asksRoster || pause?.pause.rules?.asksRoster == true || earlier.contains { $0.set.asksRoster }
        needs.roundTrip = self.set.asksRoundTrip || earlier.contains { $0.set.asksRoundTrip }
    }

    /// Whether rules, or the pause, can alter items of a direction.
    ///
    /// - Parameter isRepeating: The next stanza of the direction is a retransmission, for which earlier rules decide.
    func canAlter(_ direction: Direction, isRepeating: Bool) -> Bool {
        set.canAlter(direction) || pause?.covers(direction) == true
            || isRepeating && earlier.contains { $0.set.canAlter(direction) }
    }

    // MARK: Replacing rules

    /// Uses other rules from the next item on; the replaced ones still decide on retransmissions of their stanzas.
    ///
    /// - Parameter ledgers: The counts of a resumable session; nil for other sessions.
    func replace(by new: RuleSet, _ ledgers: StreamManagementLedgers?) {
        if let ledgers {
            let waiting = Direction.allCases.filter { self[$0].item?.isStanza == true }
            earlier.append(EarlierRules(set, state.counters, ledgers, waiting))
            forgetEarlier(ledgers)
        }
        for index in lines.indices { lines[index].item?.ruling?.shapes = false }
        keptRuling?.ruling?.shapes = false
        set = new
        state.counters = [:]
        updateNeeds()
    }

    /// Returns the state that a session leaves to the one that resumes it.
    func memory(_ ledgers: StreamManagementLedgers?) -> RuleMemory {
        let last = EarlierRules(set, state.counters, ledgers ?? StreamManagementLedgers())
        return RuleMemory(
            marks: state.marks,
            directedPresence: state.directedPresence,
            generator: state.generator,
            rules: earlier + [last]
        )
    }

    /// Continues from the state of an ended session.
    func resume(_ memory: RuleMemory) {
        state.resume(marks: memory.marks, directedPresence: memory.directedPresence)
        earlier = memory.rules
        defer { updateNeeds() }
        guard let last = earlier.last, last.set.sharesTables(with: set) else { return }
        state.counters = last.counters
        state.generator = memory.generator
        earlier.removeLast()
    }

    /// Removes replaced rules whose stanzas cannot be retransmitted any more.
    func forgetEarlier(_ ledgers: StreamManagementLedgers) {
        var ends = Direction.allCases.map { ledgers[$0].acknowledged }
        earlier = earlier.filter { rules in
            let old = ends
            ends = Direction.allCases.map { max(rules.end($0), old[Int($0.rawValue)]) }
            return ends != old
        }
        earlier.removeFirst(max(0, earlier.count - EarlierRules.most))
        updateNeeds()
    }

    /// Calls `body` with the rules that decided on the stanza with this number; nil for a new stanza.
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

    // MARK: The current item

    /// Keeps the ruling on a request to resume, which is decided on again after its wait.
    func keepRuling() {
        keptRuling = (ruling, isJudged)
        ruling = nil
        isJudged = false
    }

    /// Uses the ruling that was kept: rules are not evaluated twice.
    func restoreRuling() {
        guard let kept = keptRuling.take() else { return }
        (ruling, isJudged, isRestored) = (kept.ruling, kept.isJudged, kept.isJudged)
    }

    /// The current item is over.
    func endJudging() { (isJudged, isRestored) = (false, false) }

    /// The time of day, if a rule uses it.
    func localTime(at time: Timestamp) -> RuleLocalTime {
        set.asksTime ? localTime?(time) ?? RuleLocalTime() : RuleLocalTime()
    }

    /// Returns the number of the next held item.
    func nextHeld() -> UInt64 {
        lastHeld += 1
        return lastHeld
    }

    /// Whether a remark of this kind is the first about a rule.
    func isFirst(_ remark: Verdict.Remark, _ place: RulePlace) -> Bool {
        remarked.count < Self.mostRemarks && remarked.insert(Remarked(place: place, code: remark.code)).inserted
    }

    /// The waiting items of a direction.
    subscript(direction: Direction) -> WaitingLine {
        _read { yield lines[Int(direction.rawValue)] }
        _modify {
            yield &lines[Int(direction.rawValue)]
            isBusy = true
        }
    }

    /// Checks whether anything still waits.
    func updateIsBusy() { isBusy = injecting != 0 || self[.send].item != nil || self[.recv].item != nil }

    /// Whether the delay of an item is over.
    func isDue(_ direction: Direction, at now: Int64) -> Bool {
        lines[Int(direction.rawValue)].item?.deadline.map { $0 <= now } ?? false
    }

    /// Removes and returns the next stanza of a rule that can be sent in a direction. The others are sent like any
    /// injected stanza.
    func nextInjected(
        _ direction: Direction,
        _ injector: inout Injector,
        _ context: borrowing SessionContext
    ) -> InjectedItem? {
        guard injecting & 1 << direction.rawValue != 0 else { return nil }
        // In cut-through, all received input must have been decoded.
        if context.directions[direction].isStoring || !context.directions[direction].hasInput,
            let item = injector.takeFirst(direction, context)
        {
            return item
        }
        injecting &= ~(1 << direction.rawValue)
        return nil
    }

    /// When the first delayed item is released; nil if none has a time limit.
    var deadline: Int64? {
        guard isBusy else { return nil }
        let (send, recv) = (self[.send].item?.deadline, self[.recv].item?.deadline)
        return send.map { min($0, recv ?? .max) } ?? recv
    }
}

/// Replaced rules. They decide on retransmitted stanzas, so that these are treated the same each time.
struct EarlierRules: Sendable {
    /// The largest number of replaced rule sets that are kept: the oldest is removed, and the next one decides instead.
    static let most = 4

    fileprivate(set) var set: RuleSet
    fileprivate(set) var counters: [Int: Int]
    private let ends: [UInt64]

    /// - Parameter waiting: The directions with a delayed stanza that they have decided on, and that is not counted
    ///   yet.
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

/// The state that a session's rules leave to the session that resumes it.
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

/// The rules' decision on an item.
///
/// A class, so that an item without one costs one comparison.
final class ItemRuling {
    /// The origin of the item.
    var origin = Origin.peer
    let verdict: Verdict
    /// The rule that its record names.
    let rule: RulePlace?
    let repetition: Repetition
    /// The item is forwarded regardless: it was partly forwarded.
    var isWatched = false
    /// Its faults shape the link; false if the rules were replaced while the item was delayed.
    var shapes = true
    /// The records of its hits are made.
    var hasNotedHits = false
    /// See ``RuleState/answers``.
    let answers: UInt32
    /// Whether the item is recorded.
    private(set) var isRecorded = true
    /// The level of its record, if a rule has set one.
    private(set) var level: Level?
    /// The paths that the item's record redacts.
    private(set) var redacted: [StanzaPath] = []

    /// Whether a stanza was received before, on an earlier connection.
    enum Repetition {
        case none
        /// It may have been, or it is another one with the same number.
        case possible
        /// It was, and the decision is known.
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

    /// Whether the stanzas of its rules are sent. For a retransmission they were already sent; if the item had been
    /// dropped then, that would be known.
    var injects: Bool {
        switch repetition {
        case .none: true
        case .possible: verdict.fate != .pass
        case .known: false
        }
    }

    /// Whether it delays the item or later ones.
    var delays: Bool {
        verdict.actions.contains { entry in
            switch entry.1 {
            case .delay, .pause, .fault: true
            case .inject, .duplicate, .log, .record, .level, .redact: false
            }
        }
    }

    /// Whether the ruling depends on more than the item.
    var isStateful: Bool { answers > 1 }
}

/// An item that a rule delays or holds: the last one of its decoder, which has its bytes.
struct WaitingItem {
    let event: StreamEvent
    var decision: ItemDecision
    let reading: ItemReading
    /// Nil for an item that no rule matched.
    var ruling: ItemRuling?
    /// When it arrived, in nanoseconds of the run.
    let since: Int64
    /// When it is released, in nanoseconds of the run; nil for never.
    var deadline: Int64?
    /// Its direction is stalled.
    let isStalled: Bool
    /// The held item, if it is held for the user.
    var held: HeldItem?
    /// Later bytes are not decoded, for this reason.
    private(set) var opacity: DirectionRelay.Opacity?

    var isStanza: Bool { event.item == .element && event.head.kind != .nonza }

    /// Ends the wait, since the direction is no longer decoded.
    mutating func endWait(_ why: DirectionRelay.Opacity) {
        deadline = .min
        opacity = why
    }
}

/// A pause with stanzas left to hold.
final class PendingPause {
    let pause: StanzaPause
    /// The number of stanzas left to hold.
    var count: Int
    /// The memory of its conditions.
    var state: RuleState

    init(_ pause: StanzaPause, session: UInt64) {
        self.pause = pause
        count = pause.count
        state = RuleState(seed: session)
    }

    /// Whether it covers a direction.
    func covers(_ direction: Direction) -> Bool { pause.direction.map { $0 == direction } ?? true }
}

/// The waiting item of a direction, and the arrival times of later bytes.
struct WaitingLine {
    /// The largest number of stored arrival times.
    private static let mostArrivals = 4096

    var item: WaitingItem?
    /// Whether the direction is stalled.
    var isStalled: Bool { item?.isStalled == true }
    /// The item waits until the session ends.
    var isEndless: Bool { item.map { $0.deadline == nil } ?? false }
    /// The arrival times of undecoded bytes: up to these offsets in the leg, ascending.
    private var arrivals: [(end: UInt64, at: Int64)] = []

    /// Stores the arrival time of bytes up to this offset in the leg.
    mutating func storeArrivalTime(upTo end: UInt64, at now: Int64) {
        if arrivals.count >= Self.mostArrivals { arrivals.removeLast() }
        arrivals.append((end, now))
    }

    /// Removes and returns the waiting item.
    mutating func takeItem() -> WaitingItem? {
        defer { item = nil }
        return item
    }

    /// Returns the arrival time of the item that ends at this offset; `now` if it has not waited.
    mutating func arrival(of end: UInt64, now: Int64) -> Int64 {
        arrivals.removeFirst(arrivals.prefix { $0.end < end }.count)
        return arrivals.first?.at ?? now
    }
}
