public import TapDiagnosis
public import TapRecord
public import XMPPCore

/// What can happen to a session, beside bytes (``Session/receive(_:_:at:)``).
public enum SessionInput: Sendable {
    /// A step on the way to the server was made.
    case attempted(DiscoveryStep)
    /// The client has asked for this domain, and its server is being looked for. From now on it may name no other, in a
    /// header or a ClientHello: it would reach a domain that nobody has let it choose.
    case chose(domain: String)
    /// The connection to the server, of this address, is up. `beginsWithTLS`: the server was found to begin with TLS, where
    /// it would have been asked for it. The attempt began at `since`; nil is where the step before it
    /// ended. Of one that was told by ``attempted(_:)`` nothing more is recorded.
    case connected(String, since: Run.Instant? = nil, beginsWithTLS: Bool = false)
    /// The connection to the server failed, for this reason; the client gets a stream error. Recorded as the failed step
    /// `connect`, unless a failed attempt was told before.
    case connectionFailed(String, ConnectionFault = .unreachable)
    /// A step of the login was made outside of the streams.
    case took(LoginStep.Name, LoginStep.Outcome)
    /// A step that takes long was performed: the answer to ``Command/compute(_:)``.
    case computed(SlowStep)
    /// No more bytes will come on a leg. Told a second time where a peer that had only ceased to send is gone.
    /// The failure is what that means where TLS is under way on the leg; nil where it is not.
    case ended(Leg, LegEnd, inHandshake: TLSFailure? = nil)
    /// Something has happened to TLS on a leg: of its own accord, or by ``Command/tls(_:)``.
    case tls(Leg, TLSEvent)
    /// There is a certificate for the client, the server's own or one made for it.
    case identityFound(isServersOwn: Bool)
    /// There is no certificate for the client.
    case identityNotFound(TLSFailure)
    /// A stanza is to be put into a stream behind the item that is passing: at once, or when that ends. What becomes of it
    /// comes as ``Command/injected(_:_:)``.
    case inject(Injection)
    /// Other rules are asked from the next item on; nil asks none. Marks stay, and so do items that wait.
    case rules(RuleSet?)
    /// What becomes of an item that a rule holds: see ``Session/heldItems``. Of a number that is not held a record says so.
    case release(UInt64, HeldRelease)
    /// The session with this number resumes this one on another connection (XEP-0198 §5): this one ends, without an end of
    /// its streams, and leaves its counts.
    case displaced(by: UInt64)
    /// The session of ``Command/displace(_:)`` has left its counts.
    case displaces
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
