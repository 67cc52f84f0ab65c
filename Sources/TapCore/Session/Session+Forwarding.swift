package import TapDiagnosis
package import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

// Facts of a session for its driver.
extension Session {
    /// Number within the run.
    package var number: UInt64 { context.number }

    /// The facts known so far.
    package var info: SessionInfo { context.info }

    /// Other counters.
    package var counters: SessionCounters { context.counters }

    /// Progress of the login.
    package var timeline: LoginTimeline { context.timeline }

    /// Number of injected stanzas that were sent.
    package var injected: UInt64 { injector.sent }

    /// Whether a direction forwards bytes on arrival.
    func isCutThrough(_ direction: Direction) -> Bool { context.directions[direction].isCutThrough }

    /// Whether a direction forwards items when they are complete.
    func isStoring(_ direction: Direction) -> Bool { context.directions[direction].isStoring }

    /// Bytes of a direction that belong to no item yet.
    func undecodedBytes(_ direction: Direction) -> Int { context.directions[direction].waiting }

    /// The counts of stream management; nil without it.
    var ledgers: StreamManagementLedgers? { context.outlet.streamManagement?.ledgers }

    /// Whether injected stanzas wait, or answers to them are expected.
    var isInjecting: Bool { injector.isActive }

    /// Whether the last whole roster was not read so far.
    var hasUnreadRoster: Bool { roster.hasUnread }

    /// The rules that have matched an item of any session.
    var ruleHits: [(place: RulePlace, hits: UInt64)] { context.rules?.set.rulesWithHits ?? [] }
}

// Findings of the driver.
extension Session {
    /// A step outside the streams, such as a DNS look-up or a connection attempt.
    ///
    /// - Parameters:
    ///   - since: When it began; nil for the end of the step before.
    ///   - details: The details that distinguish it from other steps with its name, such as `name` or `address`.
    mutating func took(
        _ name: LoginStep.Name,
        _ outcome: LoginStep.Outcome,
        since: Run.Instant? = nil,
        details: Attributes = [:],
        at now: Run.Instant
    ) {
        context.now = now
        context.finishStep(name, outcome, since: since?.monotonic, details: details)
    }

    /// A cause that the driver knows and the streams do not show: a certificate that was not trusted, an alert of TLS. It is
    /// reported when the session ends, unless it became ready.
    ///
    /// - Parameters:
    ///   - cause: The cause.
    ///   - step: The step that failed.
    ///   - finding: A description for people, as a clause without secrets.
    ///   - side: The side at fault; nil for the table's side.
    ///   - condition: The code of the failure, if any.
    ///   - remedy: The remedy; nil for the usual one of the cause.
    package mutating func blame(
        _ cause: LoginCause,
        at loginStep: LoginStep.Name,
        _ finding: String,
        side: LoginCause.Side? = nil,
        condition: String? = nil,
        remedy: Remedy? = nil
    ) {
        context.blame(cause, at: loginStep, finding, side: side, condition: condition, remedy: remedy)
    }
}
