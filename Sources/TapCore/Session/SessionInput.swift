package import TapDiagnosis
package import TapRecord
package import TapRules
package import XMPPCore

/// An input of a session other than bytes (``Session/receive(_:_:at:)``).
package enum SessionInput: Sendable {
    /// A step of connecting to the server has ended.
    case attempted(DiscoveryStep)
    /// The client has requested this domain, and its server is being looked up. After that, the client must not name
    /// another domain in a header or ClientHello, because it was not permitted to choose that domain.
    case chose(domain: String)
    /// The connection to the server at this address is established. `beginsWithTLS` is true if service discovery found
    /// that the server uses direct TLS instead of STARTTLS. The attempt began at `since`; nil means the end of the
    /// previous step. If ``attempted(_:)`` reported the attempt before, no further step is recorded.
    case connected(String, since: Run.Instant? = nil, beginsWithTLS: Bool = false)
    /// Both legs are WebSockets (``SessionOptions/framing``), and their handshakes have succeeded. Sent before the first
    /// frame.
    indirect case upgraded(WebSocketUpgrade)
    /// An event of a BOSH session (``SessionOptions/isBOSH``) that its elements do not show.
    indirect case bosh(BOSHEvent)
    /// The connection to the server failed for this reason; the client gets a stream error. The failure is recorded as
    /// the step `connect`, unless ``attempted(_:)`` reported a failed attempt before.
    case connectionFailed(String, ConnectionFault = .unreachable)
    /// The server was not reached, or the handshake of a WebSocket failed, so that the session ends. The client gets an
    /// answer of HTTP.
    indirect case upgradeFailed(UpgradeFailure)
    /// A step of the login that is not visible in the streams has ended.
    case finishedStep(LoginStep.Name, LoginStep.Outcome)
    /// The driver knows a cause of failure that the streams do not show, such as an untrusted certificate or a TLS
    /// alert. It is reported when the session ends, unless the session became open.
    case blamed(LoginDiagnosis)
    /// A slow step was computed, as ``Command/compute(_:)`` requested.
    case computed(SlowStep)
    /// The session had begun before it was first observed, so its login is unknown and not awaited. `inTLS` is true if
    /// the bytes are TLS that is not decrypted.
    case joined(inTLS: Bool = false)
    /// The bytes are the plaintext of TLS that was decrypted outside xmpptap; with details about TLS. `consentFollows`
    /// is true if the server's consent to STARTTLS precedes the plaintext.
    case decrypts(Attributes, consentFollows: Bool)
    /// A human-readable message about the observed bytes of a direction.
    case remark(Direction, code: String, Prose)
    /// In an observed session, this number of bytes in a direction were not captured. An incomplete item is lost, and
    /// the next bytes are a stream header. `isSkipped` is true if the bytes were captured, but their item boundaries
    /// are unknown.
    case missed(Direction, bytes: UInt64, isSkipped: Bool = false)
    /// Some items of the session are missing from the log, or cannot be read in it.
    case incomplete
    /// The input of a leg ended. Sent a second time if a half-closed peer then disconnects. The failure applies if a
    /// TLS handshake is in progress on the leg.
    case ended(Leg, LegEnd, inHandshake: TLSFailure? = nil)
    /// A TLS event of a leg, with or without a preceding ``Command/tls(_:)``.
    case tls(Leg, TLSEvent)
    /// A certificate for the client was found: the server's own, or one that xmpptap issued.
    case identityFound(isServersOwn: Bool)
    /// No certificate for the client was found.
    case identityNotFound(TLSFailure)
    /// Inject a stanza into a stream at the next item boundary. ``Command/injected(_:_:)`` returns the outcome.
    case inject(Injection)
    /// Use these rules from the next item on; nil for no rules. Marks and delayed items are kept.
    case rules(RuleSet?)
    /// Hold the next stanzas, as the rule action PAUSE does; nil ends the pause. Replaces an earlier pause.
    case pause(StanzaPause?)
    /// Release a held item: see ``Session/heldItems``. If no item with this number is held, a note is recorded.
    case release(UInt64, HeldRelease)
    /// The session with this number resumes this one on another connection (XEP-0198 §5). This session ends without
    /// closing its streams, and stores its counts for the other.
    case displaced(by: UInt64)
    /// The session that ``Command/displace(_:)`` named has stored its counts.
    case displaces
    /// The answer to ``Command/searchJournal(_:)`` for these marks: whether one of them is in the journal.
    case searchedJournal([[UInt8]], isFound: Bool)
    /// Check the time: close the session if a time limit is exceeded, and end expired waits. Required at
    /// ``Session/nextDeadline``, harmless at any other time.
    case tick
    /// Close the session with a stream error to both peers; `code` is the code of the record.
    case abort(StreamErrorCondition, String, code: String = "aborted")
    /// End the session because xmpptap stops. No peer gets the end of its stream, so that a session with stream
    /// management can be resumed (XEP-0198 §5).
    case stop
    /// The recording ends here: it is unknown whether the session continued.
    case unrecorded
    /// The legs are closed: create the final records. This is the last input.
    case closed
}
