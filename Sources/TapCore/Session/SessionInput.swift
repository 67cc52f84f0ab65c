public import TapDiagnosis
public import TapRecord
public import XMPPCore

/// What can happen to a session, beside bytes (``Session/receive(_:_:at:)``) and TLS.
public enum SessionInput: Sendable {
    /// A step on the way to the server was made.
    case attempted(DiscoveryStep)
    /// The connection to the server, of this address, is up. The attempt began at `since`; nil is where the step before it
    /// ended. Of one that was told by ``attempted(_:)`` nothing more is recorded.
    case connected(String, since: Run.Instant? = nil)
    /// The connection to the server failed, for this reason; the client gets a stream error. Recorded as the failed step
    /// `connect`, unless a failed attempt was told before.
    case connectionFailed(String, ConnectionFault = .unreachable)
    /// A step of the login was made outside of the streams.
    case took(LoginStep.Name, LoginStep.Outcome)
    /// A step that takes long was performed: the answer to ``Command/compute(_:)``.
    case computed(SlowStep)
    /// No more bytes will come on a leg. Told a second time where a peer that had only ceased to send is gone.
    case ended(Leg, LegEnd)
    /// A stanza is to be put into a stream behind the item that is passing: at once, or when that ends. What becomes of it
    /// comes as ``Command/injected(_:_:)``.
    case inject(Injection)
    /// Time has passed: ends a session that takes too long, and gives up what is waited for in vain. Due at
    /// ``Session/nextDeadline``, harmless at any other time.
    case tick
    /// The session is ended from this side, and both ends are told why; `code` is the record's.
    case abort(StreamErrorCondition, String, code: String = "aborted")
    /// This program stops. Neither end is told by an end of its stream, so that a session with stream management can be
    /// resumed (XEP-0198 §5).
    case stop
    /// What was read ends here: whether the session went on nobody knows.
    case unrecorded
    /// The legs are closed: the last input. Records what is to be said of the session as a whole.
    case closed
}
