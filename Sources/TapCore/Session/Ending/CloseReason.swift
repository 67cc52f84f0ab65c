/// Why a session ended, as far as it can be told from what passed. The raw value is stable: it is the `diagnosis` of the
/// record `session-ended`.
public enum CloseReason: String, Sendable, Hashable, CaseIterable {
    /// Both streams were closed by their end tags.
    case closed
    /// Another login took the resource.
    case conflict
    /// A ping had no answer (XEP-0199).
    case pingTimeout = "ping-timeout"
    /// A request for an acknowledgement had no answer (XEP-0198).
    case acknowledgementTimeout = "ack-timeout"
    /// Nothing was said for long, and one side gave up.
    case idle
    /// The server shut down.
    case systemShutdown = "system-shutdown"
    /// A peer's rule was broken.
    case policyViolation = "policy-violation"
    /// The client was sent to another host.
    case seeOtherHost = "see-other-host"
    /// Another stream error.
    case streamError = "stream-error"
    /// A connection was reset.
    case reset
    /// A connection ended without the end of its stream.
    case unclean
    /// A connection whose bytes were not decoded, as those of TLS, ended: whether properly cannot be told.
    case undecoded
    /// This program ended it for a reason of its own.
    case tap
    /// TLS failed on one of the legs.
    case tls
    /// This program stopped.
    case stopped
    /// What was read of it ends before it does.
    case unrecorded
}
