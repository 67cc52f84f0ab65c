public import TapDiagnosis
public import TapRecord
public import TapSecurity
public import XMPPCore

/// What a probe has found.
public struct ProbeReport: Sendable {
    /// One step on the way, for people and programs.
    public struct Step: Sendable, Hashable {
        /// Which step. The raw value is stable.
        public enum Name: String, Sendable, Hashable, CaseIterable {
            /// The domain's records and the server's addresses (RFC 6120 §3.2).
            case names
            /// TCP.
            case connection
            /// The server's stream, until its features.
            case stream
            /// STARTTLS (RFC 6120 §5).
            case startTLS = "starttls"
            /// The handshake.
            case tls
            /// The server's certificate.
            case certificate
            /// What the login may be done by.
            case offer
            /// Authentication.
            case login
            /// What the server signed of what was seen (XEP-0474, XEP-0515).
            case downgrade
            /// Resource binding.
            case bind
            /// Stream management (XEP-0198).
            case streamManagement = "stream-management"
            /// A ping of the server (XEP-0199).
            case ping
            /// What the server says of itself (XEP-0030, XEP-0092).
            case server
            /// The other of the two services that the domain's records name.
            case alternative
        }

        /// How it went.
        public enum Outcome: String, Sendable, Hashable {
            case ok
            /// It went, and something about it is not as it should be.
            case note
            case failed
            /// It was not taken; why.
            case skipped
        }

        /// Which step.
        public let name: Name
        /// How it went.
        public let outcome: Outcome
        /// What was found, a line each, without a secret.
        public let lines: [String]
        /// Nanoseconds it took; nil if that is meaningless.
        public let duration: Int64?
        /// The same for programs.
        public let details: Attributes
    }

    /// What the records of a domain say of one of its services.
    public enum Service: Sendable, Hashable {
        /// Nobody was asked.
        case unasked
        /// Nothing.
        case none
        /// There is decidedly none (RFC 2782: `.`).
        case refused
        /// These servers, as `HOST:PORT (PRIORITY WEIGHT)`.
        case announced(String)
        /// The name servers do not answer.
        case unknown
    }

    /// How far it came.
    public enum Outcome: Sendable, Hashable {
        /// Logged in, bound, and ready for stanzas.
        case ready
        /// All that was to be looked at without a password was there.
        case offered
        /// Not so far.
        case failed
    }

    /// Whose server it is.
    public let account: JID
    /// The steps in their order.
    public internal(set) var steps: [Step] = []
    /// How far it came.
    public internal(set) var outcome = Outcome.failed
    /// Why it failed; nil if it did not.
    public internal(set) var diagnosis: LoginDiagnosis?
    /// The records for a stream that can turn to TLS.
    public internal(set) var clearService = Service.unasked
    /// The records for TLS from the first byte on.
    public internal(set) var directService = Service.unasked
    /// Whether TLS began with the first byte.
    public internal(set) var isDirect = false
    /// What the handshake agreed on; nil without TLS.
    public internal(set) var tls: TLSParameters?
    /// The features before TLS; nil with direct TLS.
    public internal(set) var clearFeatures: StreamFeatures?
    /// The features for the login: inside TLS, if there is TLS.
    public internal(set) var features: StreamFeatures?
    /// Types of channel binding that this connection has.
    public internal(set) var bindings: [String] = []
    /// Whether the server signed what it offers; nil before its challenge.
    public internal(set) var mechanismSignature: SCRAMClient.Signature?
    /// Whether the server signed the version of TLS; nil before its challenge.
    public internal(set) var versionSignature: SCRAMClient.Signature?
    /// Stream management as it was enabled; nil before a session is ready.
    public internal(set) var streamManagement: StreamManagement?
    /// The bound address.
    public internal(set) var jid: String?
    /// Nanoseconds from the first question to a session that is ready.
    public internal(set) var timeToReady: Int64?
    /// When it was made.
    public internal(set) var began = Timestamp(nanoseconds: 0)
    /// What the login may be done by has been seen.
    var isOfferSeen = false
    /// Whether the other service works, if there is one; nil if it was not checked.
    public internal(set) var isAlternativeSound: Bool?
    /// The timeline of the probe's session, as its records tell it.
    public internal(set) var timeline: [Record] = []

    /// What came of asking for stream management.
    public enum StreamManagement: Sendable, Hashable {
        case notOffered
        case refused(String)
        /// Enabled; whether the session can be resumed, and within how many seconds if the server says so.
        case enabled(isResumable: Bool, seconds: Int?)
    }

    private static let mostLines = 20
    private static let longestLine = 600

    init(account: JID) { self.account = account }

    mutating func add(
        _ name: Step.Name,
        _ outcome: Step.Outcome,
        _ lines: [String],
        took duration: Int64? = nil,
        _ details: Attributes = [:]
    ) {
        // Limit the server's text.
        let shown = lines.prefix(Self.mostLines).map { line in
            line.count > Self.longestLine ? "\(line.prefix(Self.longestLine))…" : line
        }
        steps.append(Step(name: name, outcome: outcome, lines: shown, duration: duration, details: details))
    }
}
