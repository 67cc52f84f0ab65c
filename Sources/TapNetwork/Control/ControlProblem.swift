/// Why a request to a running proxy was not served: the `code` of its answer (`application/problem+json`).
package enum ControlProblem: String, Sendable, Hashable, CaseIterable {
    /// The request is malformed.
    case malformedRequest = "malformed-request"
    case noSuchResource = "no-such-resource"
    case methodNotAllowed = "method-not-allowed"
    /// The request is for a host that the port does not serve.
    case wrongHost = "wrong-host"
    /// The page's port does not answer this request, or not without the token.
    case forbidden
    case bodyTooLarge = "body-too-large"
    case bodyTimeout = "body-timeout"
    /// A filter has an error; `column` says where.
    case invalidFilter = "invalid-filter"
    /// A field or parameter has an invalid value.
    case invalidValue = "invalid-value"
    case tooManyConnections = "too-many-connections"
    /// The proxy is stopping.
    case stopping
    case internalError = "internal-error"
    /// No open session has this number.
    case noSuchSession = "no-such-session"
    /// The session ended before the request was completed.
    case sessionEnded = "session-ended"
    /// The session does not hold a stanza with this number.
    case notHeld = "not-held"
    /// The edit of a held stanza was refused; the stanza is still held.
    case editRefused = "edit-refused"
    /// Stanzas cannot be injected before the session is ready.
    case notReady = "not-ready"
    /// The session's stream is not decoded.
    case notDecoded = "not-decoded"
    /// The bytes are not one stanza of the stream.
    case invalidStanza = "invalid-stanza"
    /// The stanza is not an iq request with an id, so that it cannot have an answer.
    case notRequest = "not-a-request"
    case tooManyWaiting = "too-many-waiting"
    /// The item being forwarded did not end in time, so that no stanza could be inserted.
    case noBoundary = "no-boundary"
    /// The answer to the injected request did not arrive in time.
    case noAnswer = "no-answer"
    /// The proxy writes no log.
    case noLog = "no-log"
    /// The proxy has no rule files.
    case noRules = "no-rules"
    /// The rule files have errors; `faults` lists them.
    case invalidRules = "invalid-rules"
}
