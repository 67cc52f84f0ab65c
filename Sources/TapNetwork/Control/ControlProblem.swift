/// Why a request to a running proxy was not served: the `code` of its answer (`application/problem+json`).
package enum ControlProblem: String, Sendable, Hashable, CaseIterable {
    /// The request is not well formed.
    case malformedRequest = "malformed-request"
    case noSuchResource = "no-such-resource"
    case methodNotAllowed = "method-not-allowed"
    /// The request is for a host that the port does not serve.
    case wrongHost = "wrong-host"
    case bodyTooLarge = "body-too-large"
    case bodyTimeout = "body-timeout"
    /// A field or parameter has a value that it cannot have.
    case invalidValue = "invalid-value"
    case tooManyConnections = "too-many-connections"
    /// The proxy stops.
    case stopping
    case internalError = "internal-error"
    /// No session has this number, or none any more.
    case noSuchSession = "no-such-session"
    /// The session ended before the answer came.
    case sessionEnded = "session-ended"
    /// The session holds no stanza of this number.
    case notHeld = "not-held"
    /// The stanza cannot replace the held one, which stays held.
    case editRefused = "edit-refused"
    /// Stanzas cannot be injected before the session is ready.
    case notReady = "not-ready"
    /// The session's stream is not decoded.
    case notDecoded = "not-decoded"
    /// The bytes are not one stanza of the stream.
    case invalidStanza = "invalid-stanza"
    /// Only an iq request with an id has an answer.
    case notRequest = "not-a-request"
    case tooManyWaiting = "too-many-waiting"
    /// The stanza that was passing did not end in time.
    case noBoundary = "no-boundary"
    /// The answer did not come in time.
    case noAnswer = "no-answer"
    /// The proxy writes no log.
    case noLog = "no-log"
    /// The proxy has no rule files.
    case noRules = "no-rules"
    /// The rule files have mistakes: `faults` lists them.
    case invalidRules = "invalid-rules"
}
