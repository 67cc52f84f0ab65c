internal import TapRecord
import XMPPCore

/// What a session has of rules: those that are asked, what they remember, and the items that they let wait.
///
/// A class that a session has only where there are rules: of others it is one empty reference.
final class SessionRules {
    /// The longest that an item is held for a person, in nanoseconds.
    static let holdTime: Int64 = 60_000_000_000
    /// Remarks that are made of a session.
    static let mostRemarks = 1000

    var set: RuleSet
    var state: RuleState
    let clientAddress: String?
    private let localTime: ((Timestamp) -> RuleLocalTime)?
    /// What they have said of the item at hand, until it is recorded.
    var ruling: ItemRuling?
    /// They were asked about the item at hand.
    var isJudged = false
    /// What of the roster they have seen.
    var roster = SeenRoster()
    /// Reads what goes out in the place of an item.
    var checker = ItemChecker()
    /// The shape of the leg on which a direction leaves.
    var shapes: InlineArray<2, LinkShape?> = [nil, nil]
    /// A login was answered in the server's place in the middle of it, and its failure is not for the client.
    var swallowsFailure = false

    /// Stanzas of rules wait to go out in these directions, as bits.
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

    /// The time of day, where a rule asks for it.
    func localTime(at time: Timestamp) -> RuleLocalTime {
        set.asksTime ? localTime?(time) ?? RuleLocalTime() : RuleLocalTime()
    }

    /// The number of the next item that is held.
    func nextHeld() -> UInt64 {
        lastHeld += 1
        return lastHeld
    }

    /// Whether a remark is the first of its kind about a rule.
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

    /// Looks whether anything waits any more.
    func settle() { isBusy = injecting != 0 || self[.send].isOccupied || self[.recv].isOccupied }

    /// When the first item that waits goes on; nil where none does by itself.
    var deadline: Int64? {
        guard isBusy else { return nil }
        let (send, recv) = (self[.send].item?.deadline, self[.recv].item?.deadline)
        return send.map { min($0, recv ?? .max) } ?? recv
    }
}

/// What rules have said of an item.
struct ItemRuling {
    let verdict: Verdict
    /// The rule that its record names.
    let rule: RulePlace?
    let repetition: Repetition
    /// The item passes whatever they say of it: bytes of it have gone out.
    var isWatched = false
    /// The records of its hits are made.
    var hasTold = false
    /// See ``RuleState/answers``.
    let answers: UInt32
    /// Whether it has a record.
    private(set) var isRecorded = true
    /// The level of its record, where a rule has set one.
    private(set) var level: Level?
    /// What its record does not show.
    private(set) var redacted: [StanzaPath] = []

    /// Whether a stanza came before, on an earlier connection.
    enum Repetition {
        case none
        /// It may have, or is another one under the same number.
        case possible
        /// It has, and it is known what became of it.
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

    /// Whether stanzas go out for it: what an item brought about beside is not done again where it comes again. But what
    /// went no further before would be known: its sender has had no answer yet.
    var injects: Bool {
        switch repetition {
        case .none: true
        case .possible: verdict.fate != .pass
        case .known: false
        }
    }

    /// Whether it depends on more than the item.
    var isStateful: Bool { answers > 1 }
}

/// An item that waits as a rule has it: the last one of its decoder, which has its bytes.
struct WaitingItem {
    let event: StreamEvent
    var decision: ItemDecision
    let reading: ItemReading
    let ruling: ItemRuling
    /// When it came, in nanoseconds of the run.
    let since: Int64
    /// When it goes on, in nanoseconds of the run; nil is never.
    var deadline: Int64?
    /// Nothing goes out in its direction.
    let isStalled: Bool
    /// It is held for a person.
    var held: HeldItem?
}

/// What waits in a direction: an item, and what has come behind it.
struct WaitingLine {
    /// Reads whose times are kept.
    private static let mostArrivals = 4096

    var item: WaitingItem?
    /// What has come behind the item, and is not decoded yet.
    private(set) var behind: [UInt8] = []
    /// Something waits.
    var isOccupied: Bool { item != nil || !behind.isEmpty }
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

    /// Takes bytes of a read that are not to be decoded yet; `start` is where the bytes wait that are decoded.
    mutating func append(_ bytes: Span<UInt8>, from start: UInt64, at now: Int64) {
        behind.append(bytes)
        noteArrival(upTo: start + UInt64(behind.count), at: now)
    }

    /// Takes what has come behind an item that has gone on.
    mutating func takeBehind() -> [UInt8] {
        defer { behind = [] }
        return behind
    }

    /// When an item came that ends at this offset; `now` where it has not waited.
    mutating func arrival(of end: UInt64, now: Int64) -> Int64 {
        arrivals.removeFirst(arrivals.prefix { $0.end < end }.count)
        return arrivals.first?.at ?? now
    }
}
