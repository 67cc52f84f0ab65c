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
    /// ended. After ``attempted(_:)`` for the same attempt nothing more is recorded.
    case connected(String, since: Run.Instant? = nil, beginsWithTLS: Bool = false)
    /// The connection to the server failed, for this reason; the client gets a stream error. Recorded as the failed step
    /// `connect`, unless ``attempted(_:)`` reported a failed attempt before.
    case connectionFailed(String, ConnectionFault = .unreachable)
    /// A step of the login was made outside of the streams.
    case took(LoginStep.Name, LoginStep.Outcome)
    /// A step that takes long was performed: the answer to ``Command/compute(_:)``.
    case computed(SlowStep)
    /// The session was under way before anything of it was seen: its login is not known and not waited for. `inTLS`: what
    /// comes is TLS, which is not decrypted.
    case joined(inTLS: Bool = false)
    /// What comes is what TLS carries, which was decrypted elsewhere: what was agreed on. `consentFollows`: the server's
    /// consent to STARTTLS comes before that.
    case decrypts(Attributes, consentFollows: Bool)
    /// Something that people should know of what was seen in a direction.
    case remark(Direction, code: String, Prose)
    /// So many bytes of a direction were not seen, of a session that is only observed: what had begun there is lost, and the
    /// next bytes are a stream header. `isSkipped`: they were seen, and nobody knows what they are the middle of.
    case missed(Direction, bytes: UInt64, isSkipped: Bool = false)
    /// Items of the session are missing from the log that it is read from, or cannot be read there.
    case incomplete
    /// No more bytes will come on a leg. Told a second time where a peer that had only ceased to send is gone.
    /// The failure is what that means where TLS is under way on the leg; nil where it is not.
    case ended(Leg, LegEnd, inHandshake: TLSFailure? = nil)
    /// A TLS event of a leg, with or without a ``Command/tls(_:)`` before it.
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
    /// The next stanzas are held as the rule action PAUSE holds them; nil holds no more. Replaces a pause before it.
    case pause(StanzaPause?)
    /// What becomes of an item that is held: see ``Session/heldItems``. Of a number that is not held a record says so.
    case release(UInt64, HeldRelease)
    /// The session with this number resumes this one on another connection (XEP-0198 §5): this one ends, without an end of
    /// its streams, and leaves its counts.
    case displaced(by: UInt64)
    /// The session of ``Command/displace(_:)`` has left its counts.
    case displaces
    /// The answer to ``Command/searchJournal(_:)`` for these marks: whether one of them is in the journal.
    case searchedJournal([[UInt8]], isFound: Bool)
    /// Time has passed: ends a session that takes too long, and gives up what is waited for in vain. Due at
    /// ``Session/nextDeadline``, harmless at any other time.
    case tick
    /// xmpptap ends the session with a stream error to both ends; `code` is the record's.
    case abort(StreamErrorCondition, String, code: String = "aborted")
    /// This program stops. Neither end gets the end of its stream, so that a session with stream management can be
    /// resumed (XEP-0198 §5).
    case stop
    /// What was read ends here: whether the session went on nobody knows.
    case unrecorded
    /// The legs are closed: the last input. Records what is to be said of the session as a whole.
    case closed
}
