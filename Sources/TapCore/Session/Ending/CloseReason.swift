/// Why a session ended, as far as the relayed bytes show. The raw value is stable: it is the `close_reason` of the record
/// `session-ended`.
package enum CloseReason: String, Sendable, Hashable, CaseIterable {
    /// Both streams were closed by their end tags.
    case closed
    /// Another login took the resource.
    case conflict
    /// A ping was not answered (XEP-0199).
    case pingTimeout = "ping-timeout"
    /// A request for an acknowledgement was not answered (XEP-0198).
    case acknowledgementTimeout = "ack-timeout"
    /// Neither side sent anything for long, and one side closed.
    case idle
    /// The server shut down.
    case systemShutdown = "system-shutdown"
    /// A peer's policy was violated.
    case policyViolation = "policy-violation"
    /// The client was redirected to another host.
    case seeOtherHost = "see-other-host"
    case streamError = "stream-error"
    case reset
    /// A connection ended without `</stream:stream>`.
    case unclean
    /// A connection ended whose bytes were not decoded, such as TLS: it is unknown whether it ended cleanly.
    case undecoded
    case tap
    /// TLS failed on one of the legs.
    case tls
    case stopped
    /// The recording ends before the session.
    case unrecorded
}
