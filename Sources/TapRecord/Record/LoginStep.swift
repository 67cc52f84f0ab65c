/// One step of a login, from the connection to the first stanza.
package struct LoginStep: Sendable {
    /// The kind of step. The raw value is stable: it is the detail `step` of the record of a step.
    package enum Name: String, Sendable, Hashable, CaseIterable {
        /// The lookup of the server's name (RFC 6120 §3.2).
        case nameLookup = "name-lookup"
        /// The connection to the server.
        case connect
        case tls
        /// From the initiator's stream header to the server's.
        case streamOpen = "stream-open"
        /// From the server's stream header to its features.
        case features
        /// From `<starttls/>` to the answer (RFC 6120 §5).
        case startTLS = "starttls"
        /// From the offer of mechanisms to the initiator's choice.
        case mechanism
        /// From one SASL message to the next (RFC 6120 §6).
        case sasl
        /// From one SASL2 message to the next (XEP-0388).
        case sasl2
        /// The handshake of a component (XEP-0114).
        case handshake
        /// From a dialback key to its verification (XEP-0220).
        case dialback
        case dialbackVerification = "dialback-verify"
        /// Authentication before SASL (XEP-0078): the request for its fields, or the login itself.
        case legacyAuthentication = "legacy-auth"
        /// Registration of an account (XEP-0077): the request for its fields, or the registration itself.
        case registration = "register"
        /// Compression (XEP-0138).
        case compression
        /// Resource binding (RFC 6120 §7).
        case bind
        /// Resource binding within SASL2 (XEP-0386).
        case bind2
        /// Session establishment (RFC 3921 §3).
        case session
        /// Resumption of an earlier session (XEP-0198 §5).
        case resume
        /// The session is ready for stanzas; the duration of this step is measured from the client's connection.
        case ready

        package var part: Part {
            switch self {
            case .nameLookup, .connect: .net
            case .tls, .startTLS: .tls
            case .mechanism, .sasl, .sasl2, .handshake, .dialback, .dialbackVerification, .legacyAuthentication: .sasl
            default: .session
            }
        }
    }

    /// The outcome of a step.
    package enum Outcome: Sendable {
        case ok
        /// The step failed: the error condition, if any, and a text of the peer or of xmpptap.
        case failed(condition: String? = nil, Prose? = nil)
        /// The step was possible but not taken, or cannot be observed; with the reason.
        case skipped(Prose)

        /// The outcome without its reasons.
        package var result: Result {
            switch self {
            case .ok: .ok
            case .failed: .failed
            case .skipped: .skipped
            }
        }
    }

    /// An ``Outcome`` without its reasons. The raw value is stable: it is the detail `outcome` of the record of a step.
    package enum Result: String, Sendable, Hashable {
        case ok, failed, skipped
    }

    /// The name of the record detail for the ``name``, and the `code` of a step's record.
    package static let code = "step"
    /// The name of the record detail for the ``Result``.
    package static let outcomeDetail = "outcome"
    /// The name of the record detail for the reason of a failed or skipped step, as text besides the condition.
    package static let reasonDetail = "reason"
    /// The name of the record detail for the alert with which the peer ended ``Name/tls``, such as `unknown_ca`.
    package static let alertDetail = "alert"
    /// The details that the record's message already contains.
    package static let messageDetails = [code, outcomeDetail, reasonDetail, alertDetail]

    /// The kind of step.
    package var name: Name
    /// The start of the step, in nanoseconds since the run began.
    package var began: Int64
    /// The duration of the step, in nanoseconds.
    package var duration: Int64
    /// The outcome of the step.
    package var outcome: Outcome
    /// The details that distinguish the step from other steps of the same kind: `epoch`, `address`, `mechanism` and
    /// others.
    package var details: Attributes
    /// The leg of the peer that had to act when the end of the session interrupted the step; nil if it was not
    /// interrupted.
    package var awaited: Leg?
    /// The number of items that each side sent after the step began: a side that continued had received its answer.
    package var later = (sent: 0, received: 0)

    package init(
        name: Name,
        began: Int64,
        duration: Int64,
        outcome: Outcome,
        details: Attributes,
        awaited: Leg? = nil
    ) {
        self.name = name
        self.began = began
        self.duration = duration
        self.outcome = outcome
        self.details = details
        self.awaited = awaited
    }
}

// Parsing of the details in a step's record.
extension LoginStep.Name {
    /// Creates the step from details; nil if it is missing or unknown.
    package init?(_ details: Attributes) {
        guard let name = details[LoginStep.code]?.text else { return nil }
        self.init(rawValue: name)
    }
}

extension LoginStep.Result {
    /// Creates the result from details; nil if it is missing or unknown.
    package init?(_ details: Attributes) {
        guard let name = details[LoginStep.outcomeDetail]?.text else { return nil }
        self.init(rawValue: name)
    }
}
