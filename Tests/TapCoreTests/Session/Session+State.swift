import TapDiagnosis
import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

@testable import TapCore

// The state of a session that tests read.
extension Session {
    /// Whether a direction forwards bytes on arrival.
    func isCutThrough(_ direction: Direction) -> Bool { sharedState.directions[direction].isCutThrough }

    /// Whether a direction forwards items when they are complete.
    func isStoring(_ direction: Direction) -> Bool { sharedState.directions[direction].isStoring }

    /// Returns the number of received bytes of a direction that belong to no item yet.
    func undecodedBytes(_ direction: Direction) -> Int { sharedState.directions[direction].waiting }

    /// The stanza counts of stream management; nil without stream management.
    var ledgers: StreamManagementLedgers? { sharedState.streamManagement?.ledgers }

    /// Reports a login step of the driver, with details.
    mutating func took(
        _ name: LoginStep.Name,
        _ outcome: LoginStep.Outcome,
        since: Run.Instant? = nil,
        details: Attributes = [:],
        at now: Run.Instant
    ) {
        sharedState.now = now
        sharedState.finishStep(name, outcome, since: since?.monotonic, details: details)
    }

    /// The rules that have matched an item in any session, with their numbers of hits.
    var ruleHits: [RuleStatus] { sharedState.rules?.set.statuses ?? [] }
}
