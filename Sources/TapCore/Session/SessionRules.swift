internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

/// A session's rules, their memory, and the items that they delay.
///
/// A class, so that a session without rules stores only a nil reference.
final class SessionRules {
    /// The longest time that an item is held for the user, in nanoseconds.
    static let holdTime: Int64 = 60_000_000_000
    /// The largest number of remarks about rules that are logged in a session.
    static let maximumRemarks = 1000

    private(set) var set: RuleSet
    /// The replaced rules, oldest first.
    private(set) var earlier: [EarlierRules] = []
    var state: RuleState
    let clientAddress: String?
    private let localTime: ((Timestamp) -> RuleLocalTime)?
    /// The ruling on the current item, until it is recorded.
    var ruling: ItemRuling?
    /// Whether rules were evaluated for the current item.
    var isJudged = false
    /// The ruling on a request to resume that waits; nil if none waits.
    private var keptRuling: (ruling: ItemRuling?, isJudged: Bool)?
    /// Whether the ruling on the current item was made before the item's wait.
    private(set) var isRestored = false
    /// Checks and parses the replacements of items.
    var checker = ItemChecker()
    /// The traffic shaping of each direction.
    var shapes: InlineArray<2, LinkShape?> = [nil, nil]
    /// Whether a rule has answered a login, so that the server's own failure must not be relayed to the client.
    var swallowsFailure = false

    /// Stanzas to hold without a rule.
    var pause: PendingPause? { didSet { updateNeeds() } }

    /// The facts that the current rules, the replaced rules or the pause need. Computed once, because each item reads
    /// them.
    private(set) var needs = (roster: false, roundTrip: false)

    /// The directions in which stanzas of rules wait to be sent, as bits.
    var injecting: UInt8 = 0 { didSet { if injecting != 0 { isBusy = true } } }
    /// Whether ``Session/releaseDueItems(of:)`` has work to do.
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
            self.set.needsRoster || pause?.pause.rules?.needsRoster == true || earlier.contains { $0.set.needsRoster }
        needs.roundTrip = self.set.needsRoundTrip || earlier.contains { $0.set.needsRoundTrip }
    }

    /// Whether rules, or the pause, can alter items of a direction.
    ///
    /// - Parameter isRepeating: Whether the next stanza of the direction is a retransmission, which replaced rules
    ///   decide on.
    func canAlter(_ direction: Direction, isRepeating: Bool) -> Bool {
        set.canAlter(direction) || pause?.covers(direction) == true
            || isRepeating && earlier.contains { $0.set.canAlter(direction) }
    }

    // MARK: Replacing rules

    /// Uses other rules from the next item on. The replaced rules still decide on retransmissions of the stanzas that
    /// they decided on.
    ///
    /// - Parameter ledgers: The stanza counts of a resumable session; nil for other sessions.
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

    /// Returns the state of the rules, for a session that resumes this one.
    func memory(_ ledgers: StreamManagementLedgers?) -> RuleMemory {
        let last = EarlierRules(set, state.counters, ledgers ?? StreamManagementLedgers())
        return RuleMemory(
            marks: state.marks,
            directedPresence: state.directedPresence,
            generator: state.generator,
            rules: earlier + [last]
        )
    }

    /// Takes over the state of the rules from the resumed session.
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

    /// Calls `body` while the rules that decided on the stanza with this number are in use. If `number` is nil, the
    /// stanza is new, and the current rules are in use.
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

    /// Keeps the ruling on a request to resume, which will be decided on again after its wait.
    func keepRuling() {
        keptRuling = (ruling, isJudged)
        ruling = nil
        isJudged = false
    }

    /// Uses the ruling that was kept, because rules must not be evaluated twice.
    func restoreRuling() {
        guard let kept = keptRuling.take() else { return }
        (ruling, isJudged, isRestored) = (kept.ruling, kept.isJudged, kept.isJudged)
    }

    /// Resets the state of the current item after it was handled.
    func endJudging() { (isJudged, isRestored) = (false, false) }

    /// Returns the time of day; the default value if no rule uses it.
    func localTime(at time: Timestamp) -> RuleLocalTime {
        set.needsTime ? localTime?(time) ?? RuleLocalTime() : RuleLocalTime()
    }

    /// Returns the number of the next held item.
    func nextHeld() -> UInt64 {
        lastHeld += 1
        return lastHeld
    }

    /// Returns whether a remark is the first of its kind about a rule, and is to be logged.
    func isFirst(_ remark: Verdict.Remark, _ place: RulePlace) -> Bool {
        remarked.count < Self.maximumRemarks && remarked.insert(Remarked(place: place, code: remark.code)).inserted
    }

    /// The waiting items of a direction.
    subscript(direction: Direction) -> WaitingLine {
        // From a coroutine, a debug build of Swift 6.3 reads the item after it was freed.
        get { lines[Int(direction.rawValue)] }
        _modify {
            yield &lines[Int(direction.rawValue)]
            isBusy = true
        }
    }

    /// Updates ``isBusy``.
    func updateIsBusy() { isBusy = injecting != 0 || self[.send].item != nil || self[.recv].item != nil }

    /// Returns whether the delay of the direction's waiting item has ended.
    func isDue(_ direction: Direction, at now: Int64) -> Bool {
        lines[Int(direction.rawValue)].item?.deadline.map { $0 <= now } ?? false
    }

    /// Removes and returns the next stanza of a rule that can be sent in a direction before the next item; nil if there
    /// is none. Stanzas that cannot be sent now are sent later, as other injected stanzas are.
    func nextInjected(
        _ direction: Direction,
        _ injector: inout Injector,
        _ context: borrowing SessionContext
    ) -> InjectedItem? {
        guard injecting & 1 << direction.rawValue != 0 else { return nil }
        // In cut-through mode, all received input must have been decoded.
        if context.directions[direction].isStoring || !context.directions[direction].hasInput,
            let item = injector.takeFirst(direction, context)
        {
            return item
        }
        injecting &= ~(1 << direction.rawValue)
        return nil
    }

    /// The time at which the first waiting item is released; nil if none has a time limit.
    var deadline: Int64? {
        guard isBusy else { return nil }
        let (send, recv) = (self[.send].item?.deadline, self[.recv].item?.deadline)
        return send.map { min($0, recv ?? .max) } ?? recv
    }
}

/// Replaced rules. They decide on retransmitted stanzas, so that each of these is treated the same way again.
struct EarlierRules: Sendable {
    /// The largest number of replaced rule sets that are kept. Beyond it, the oldest is removed, and the next one
    /// decides on its stanzas.
    static let most = 4

    fileprivate(set) var set: RuleSet
    fileprivate(set) var counters: [Int: Int]
    private let ends: [UInt64]

    /// Creates replaced rules.
    ///
    /// - Parameter waiting: The directions with a delayed stanza that these rules have decided on, and that is not
    ///   counted yet.
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

    /// Returns the number of the last stanza in a direction on which these rules, or earlier ones, have decided.
    func end(_ direction: Direction) -> UInt64 { ends[Int(direction.rawValue)] }
}

/// The state that a session's rules leave to the session that resumes it.
struct RuleMemory: Sendable {
    /// The marks of the session.
    let marks: [String: Int64]
    /// The addresses to which the client has sent directed presence.
    let directedPresence: DirectedPresence
    /// The state of the random number generator.
    let generator: UInt64
    /// The rules of the session, oldest first.
    let rules: [EarlierRules]

    /// Approximate memory in bytes, without the rules, which sessions share.
    var byteCount: Int {
        marks.keys.reduce(directedPresence.byteCount) { $0 + $1.utf8.count }
            + 48 * (marks.count + directedPresence.count)
    }
}

/// The rules' decision on an item.
///
/// A class, so that an item without a ruling costs only one comparison.
final class ItemRuling {
    /// The origin of the item.
    var origin = Origin.peer
    let verdict: Verdict
    /// The rule that the item's record names; nil if no rule affected the item.
    let rule: RulePlace?
    let repetition: Repetition
    /// Whether the ruling affects only the record, because the item can no longer be altered.
    var isWatched = false
    /// Whether the ruling's faults shape the traffic; false if the rules were replaced while the item was delayed.
    var shapes = true
    /// Whether the rule hits were recorded.
    var hasRecordedHits = false
    /// The results of stateful conditions: see ``RuleState/answers``.
    let answers: UInt32
    /// Whether the item is recorded.
    private(set) var isRecorded = true
    /// The level of the item's record, if a rule has set one.
    private(set) var level: Level?
    /// The paths that the item's record redacts.
    private(set) var redacted: [StanzaPath] = []

    /// Whether a stanza was received before, on an earlier connection.
    enum Repetition {
        case none
        /// The stanza may have been received before, or it is a different stanza with the same number.
        case possible
        /// The stanza was received before, and the earlier decision is known.
        case known
    }

    init(_ verdict: Verdict, _ repetition: Repetition, answers: UInt32) {
        self.verdict = verdict
        self.repetition = repetition
        self.answers = answers
        var rule = verdict.decision == .pass ? verdict.editedBy : verdict.decidedBy
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

    /// Whether the stanzas that the rules create are sent. They are not sent for a retransmission, because they were
    /// sent before. A stanza that may be a retransmission counts as new if the rules drop it: an earlier drop would be
    /// known.
    var injects: Bool {
        switch repetition {
        case .none: true
        case .possible: verdict.decision != .pass
        case .known: false
        }
    }

    /// Whether the ruling delays the item or later items.
    var delays: Bool {
        verdict.actions.contains { entry in
            switch entry.1 {
            case .delay, .pause, .fault: true
            case .inject, .duplicate, .log, .record, .level, .redact: false
            }
        }
    }

    /// The first rule that lets the item wait; nil if none does.
    var delayedBy: RulePlace? {
        let action = verdict.actions.first { entry in
            switch entry.action {
            case .delay, .pause, .fault(.stall): true
            case .fault, .inject, .duplicate, .log, .record, .level, .redact: false
            }
        }
        return action?.place
    }

    /// Whether the ruling depends on more than the item.
    var isStateful: Bool { answers > 1 }
}

/// An item that a rule delays or holds: the last item of its decoder, which stores its bytes.
struct WaitingItem {
    let event: StreamEvent
    var decision: ItemDecision
    let reading: ItemReading
    /// The ruling on the item; nil if no rule matched.
    var ruling: ItemRuling?
    /// The time at which the item arrived, in nanoseconds of the run.
    let since: Int64
    /// The time at which the item is released, in nanoseconds of the run; nil for never.
    var deadline: Int64?
    /// Whether the direction is stalled.
    let isStalled: Bool
    /// The description for the user; nil if the item is delayed, but not held for the user.
    var held: HeldItem?
    /// Why bytes after the item are not decoded; nil if they are.
    private(set) var reason: DirectionRelay.UndecodedReason?

    var isStanza: Bool { event.item == .element && event.head.kind != .nonza }

    /// Ends the wait, because the direction is not decoded after the item.
    mutating func endWait(_ why: DirectionRelay.UndecodedReason) {
        deadline = .min
        reason = why
    }
}

/// A pause with stanzas left to hold.
final class PendingPause {
    let pause: StanzaPause
    /// The number of stanzas that are still to be held.
    var count: Int
    /// The memory of the pause's conditions.
    var state: RuleState

    init(_ pause: StanzaPause, session: UInt64) {
        self.pause = pause
        count = pause.count
        state = RuleState(seed: session)
    }

    /// The pause as the user sees it.
    var shown: StanzaPause.Pending { StanzaPause.Pending(pause: pause.description, left: count) }

    /// Returns whether the pause applies to a direction.
    func covers(_ direction: Direction) -> Bool { pause.direction.map { $0 == direction } ?? true }
}

/// The waiting item of a direction, and the arrival times of later bytes.
struct WaitingLine {
    /// The largest number of stored arrival times.
    private static let maximumArrivals = 4096

    var item: WaitingItem?
    /// Whether the direction is stalled.
    var isStalled: Bool { item?.isStalled == true }
    /// Whether the item waits until the session ends.
    var isEndless: Bool { item.map { $0.deadline == nil } ?? false }
    /// The arrival times of bytes that are not decoded yet: the time for all bytes up to each offset in the leg, in
    /// ascending order.
    private var arrivals: [(end: UInt64, at: Int64)] = []

    /// Stores the arrival time of bytes up to this offset in the leg.
    mutating func storeArrivalTime(upTo end: UInt64, at now: Int64) {
        if arrivals.count >= Self.maximumArrivals { arrivals.removeLast() }
        arrivals.append((end, now))
    }

    /// Removes and returns the waiting item.
    mutating func takeItem() -> WaitingItem? {
        defer { item = nil }
        return item
    }

    /// Returns the arrival time of the item that ends at this offset; `now` if the item has not waited.
    mutating func arrival(of end: UInt64, now: Int64) -> Int64 {
        arrivals.removeFirst(arrivals.prefix { $0.end < end }.count)
        return arrivals.first?.at ?? now
    }
}
