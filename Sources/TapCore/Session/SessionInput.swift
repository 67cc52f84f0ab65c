package import TapDiagnosis
package import TapRecord
package import TapRules
package import XMPPCore

/// The inputs of a session, besides bytes (``Session/receive(_:_:at:)``).
package enum SessionInput: Sendable {
    /// A step of connecting to the server was made.
    case attempted(DiscoveryStep)
    /// The client has requested this domain, and its server is being looked up. From now on the client must not name
    /// another, in a header or a ClientHello: it would reach a domain that it was not permitted to choose.
    case chose(domain: String)
    /// The connection to the server, with this address, is established. `beginsWithTLS`: service discovery found that
    /// the server begins with TLS, instead of STARTTLS. The attempt began at `since`; nil for the end of the previous
    /// step. After ``attempted(_:)`` for the same attempt, nothing more is recorded.
    case connected(String, since: Run.Instant? = nil, beginsWithTLS: Bool = false)
    /// The connection to the server failed, for this reason; the client gets a stream error. Recorded as the failed step
    /// `connect`, unless ``attempted(_:)`` reported a failed attempt before.
    case connectionFailed(String, ConnectionFault = .unreachable)
    /// A step of the login happened outside the streams.
    case took(LoginStep.Name, LoginStep.Outcome)
    /// A cause of failure that the driver knows and the streams do not show: a certificate that was not trusted, an alert
    /// of TLS. It is reported when the session ends, unless it became ready.
    case blamed(LoginDiagnosis)
    /// A slow step was performed: the answer to ``Command/compute(_:)``.
    case computed(SlowStep)
    /// The session had begun before it was first observed: its login is unknown and not awaited. `inTLS`: the bytes are
    /// TLS that is not decrypted.
    case joined(inTLS: Bool = false)
    /// The bytes are the plaintext of TLS that was decrypted outside xmpptap, with these parameters. `consentFollows`:
    /// the server's consent to STARTTLS precedes it.
    case decrypts(Attributes, consentFollows: Bool)
    /// A message about the observed bytes of a direction, for people.
    case remark(Direction, code: String, Prose)
    /// This number of bytes of a direction were not captured, in an observed session: an incomplete item is lost, and
    /// the next bytes are a stream header. `isSkipped`: they were captured, but their item boundaries are unknown.
    case missed(Direction, bytes: UInt64, isSkipped: Bool = false)
    /// Items of the session are missing from the log, or cannot be read there.
    case incomplete
    /// No more bytes will arrive on a leg. Sent again if a half-closed peer is gone. The failure applies if a TLS
    /// handshake is in progress on the leg; nil otherwise.
    case ended(Leg, LegEnd, inHandshake: TLSFailure? = nil)
    /// A TLS event of a leg, with or without a ``Command/tls(_:)`` before it.
    case tls(Leg, TLSEvent)
    /// There is a certificate for the client, the server's own or an issued one.
    case identityFound(isServersOwn: Bool)
    /// The client cannot be given a certificate.
    case identityNotFound(TLSFailure)
    /// Inject a stanza into a stream after the current item: at once, or when that ends. The outcome is returned by
    /// ``Command/injected(_:_:)``.
    case inject(Injection)
    /// Use other rules from the next item on; nil for none. Marks and delayed items are kept.
    case rules(RuleSet?)
    /// Hold the next stanzas like the rule action PAUSE; nil ends that. Replaces an earlier pause.
    case pause(StanzaPause?)
    /// Release a held item: see ``Session/heldItems``. If no item with this number is held, that is recorded.
    case release(UInt64, HeldRelease)
    /// The session with this number resumes this one on another connection (XEP-0198 §5): this one ends, without
    /// closing its streams, and leaves its counts.
    case displaced(by: UInt64)
    /// The session of ``Command/displace(_:)`` has left its counts.
    case displaces
    /// The answer to ``Command/searchJournal(_:)`` for these marks: whether one of them is in the journal.
    case searchedJournal([[UInt8]], isFound: Bool)
    /// The answer to ``Command/shared(_:)``, or the state of the session that this one continues.
    case shared(SharedAnswer)
    /// Time has passed: ends a session that exceeds a time limit, and gives up expired waits. Required at
    /// ``Session/nextDeadline``, harmless at any other time.
    case tick
    /// xmpptap ends the session with a stream error to both ends; `code` is the record's.
    case abort(StreamErrorCondition, String, code: String = "aborted")
    /// xmpptap stops. Neither end gets the end of its stream, so that a session with stream management can be resumed
    /// (XEP-0198 §5).
    case stop
    /// The recording ends here: it is unknown whether the session continued.
    case unrecorded
    /// The legs are closed: the last input. Makes the records about the session as a whole.
    case closed
}
