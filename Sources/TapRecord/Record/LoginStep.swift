/// One step of a login, from the connection to the first stanza.
package struct LoginStep: Sendable {
    /// The kind of step. The raw value is stable: it is the detail `step` of the record of a step.
    package enum Name: String, Sendable, Hashable, CaseIterable {
        /// The server's name was looked up (RFC 6120 §3.2).
        case nameLookup = "name-lookup"
        /// A connection to the server was made.
        case connect
        case tls
        /// The initiator's stream header, until the server's.
        case streamOpen = "stream-open"
        /// The server's header, until its features.
        case features
        /// `<starttls/>` (RFC 6120 §5), until its answer.
        case startTLS = "starttls"
        /// The offer of mechanisms, until the initiator chose one.
        case mechanism
        /// One message of SASL (RFC 6120 §6), until the next one.
        case sasl
        /// One message of SASL2 (XEP-0388), until the next one.
        case sasl2
        /// The handshake of a component (XEP-0114).
        case handshake
        /// A dialback key (XEP-0220), until it is verified.
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
        /// The session of RFC 3921 §3.
        case session
        /// Resumption of an earlier session (XEP-0198 §5).
        case resume
        /// The session is ready for stanzas; its duration is measured from the client's connection.
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
        /// The error condition, if any, and a text: the peer's own, or xmpptap's.
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
    package static let toldDetails = [code, outcomeDetail, reasonDetail, alertDetail]

    /// The kind of step.
    package var name: Name
    /// When it began, in nanoseconds of the run.
    package var began: Int64
    /// How long it took, in nanoseconds.
    package var duration: Int64
    /// Its outcome.
    package var outcome: Outcome
    /// The details that distinguish it from other steps with its name: `epoch`, `address`, `mechanism` and others.
    package var details: Attributes
    /// The leg of the side that had to act, if the session's end cut the step off; nil otherwise.
    package var awaited: Leg?
    /// Items that each side sent after such a step had begun: a side that continued had received its answer.
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
