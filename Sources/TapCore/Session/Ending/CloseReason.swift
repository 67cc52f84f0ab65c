/// The reason why a session ended, as far as the relayed bytes show it. The raw value is stable: it is the
/// `close_reason` of the record `session-ended`.
package enum CloseReason: String, Sendable, Hashable, CaseIterable {
    /// Both streams were closed by their end tags.
    case closed
    /// Another login took the resource.
    case conflict
    /// A ping (XEP-0199) was not answered.
    case pingTimeout = "ping-timeout"
    /// A request for an acknowledgement (XEP-0198) was not answered.
    case acknowledgementTimeout = "ack-timeout"
    /// Neither side sent anything for a long time, and then one side closed the connection.
    case idle
    /// The server shut down.
    case systemShutdown = "system-shutdown"
    /// A peer closed the stream because its policy was violated.
    case policyViolation = "policy-violation"
    /// The client was redirected to another host.
    case seeOtherHost = "see-other-host"
    case streamError = "stream-error"
    case reset
    /// A connection ended without `</stream:stream>`.
    case unclean
    /// A connection whose bytes were not decoded, such as TLS, ended. Whether it ended cleanly is unknown.
    case undecoded
    case tap
    /// TLS failed on one of the legs.
    case tls
    case stopped
    /// The recording ends before the session does.
    case unrecorded
}
