internal import TapDiagnosis
internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

// The shared facts by their short names.
extension Session {
    /// Number within the run.
    package var number: UInt64 { context.number }

    /// The facts known so far.
    package internal(set) var info: SessionInfo {
        @inline(__always) _read { yield context.info }
        @inline(__always) _modify { yield &context.info }
    }

    /// Other counters.
    package internal(set) var counters: SessionCounters {
        @inline(__always) _read { yield context.counters }
        @inline(__always) _modify { yield &context.counters }
    }

    /// Whether a direction forwards bytes on arrival.
    func isCutThrough(_ direction: Direction) -> Bool { context.directions[direction].isCutThrough }

    /// Whether a direction forwards items when they are complete.
    func isStoring(_ direction: Direction) -> Bool { context.directions[direction].isStoring }

    /// Bytes of a direction that belong to no item yet.
    func undecodedBytes(_ direction: Direction) -> Int { context.directions[direction].waiting }

    /// The counts of stream management; nil without it.
    var ledgers: StreamManagementLedgers? { streamManagement?.ledgers }

    /// Whether injected stanzas wait, or answers to them are expected.
    var isInjecting: Bool { injections != nil }

    /// Whether the last whole roster was not read so far.
    var hasUnreadRoster: Bool { roster.hasUnread }

    /// The rules that have matched an item of any session.
    var ruleHits: [(place: RulePlace, hits: UInt64)] { rules?.set.rulesWithHits ?? [] }

    var run: Run { context.run }
    var tools: SessionTools { context.tools }
    var remote: String? { context.remote }

    var options: SessionOptions {
        @inline(__always) _read { yield context.options }
        @inline(__always) _modify { yield &context.options }
    }

    var now: Run.Instant {
        @inline(__always) get { context.now }
        @inline(__always) set { context.now = newValue }
    }

    var rules: SessionRules? {
        @inline(__always) _read { yield context.rules }
        @inline(__always) _modify { yield &context.rules }
    }

    var action: String? {
        @inline(__always) _read { yield context.action }
        @inline(__always) _modify { yield &context.action }
    }

    var edited: EditedItem? {
        @inline(__always) _read { yield context.edited }
        @inline(__always) _modify { yield &context.edited }
    }

    var hasDiverged: Bool { context.outlet.hasDiverged }

    mutating func say(_ items: [Said], _ condition: StreamErrorCondition? = nil, to leg: Leg, part: Part = .session) {
        context.answer(items, condition, to: leg, part: part)
    }

    var streamManagement: StreamManagement? { context.outlet.streamManagement }

    mutating func note(
        _ kind: Record.Kind = .note,
        _ level: Level = .warn,
        code: String,
        _ message: Prose,
        condition: StreamErrorCondition? = nil,
        direction: Direction? = nil,
        part: Part = .session,
        details: Attributes? = nil,
        remedy: Remedy? = nil
    ) {
        context.note(
            kind,
            level,
            code: code,
            message,
            condition: condition,
            direction: direction,
            part: part,
            details: details,
            remedy: remedy
        )
    }
}
