internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// Collects the facts of a login that explain its failure. It receives events (``Event``) and changes only its own
/// state.
///
/// A class, so that an open session stores only a nil reference.
final class LoginObserver {
    /// The largest number of stored attempts; a further attempt replaces the oldest one.
    static let maximumAttempts = 8

    /// One SASL authentication.
    struct Attempt: Sendable {
        /// The mechanism, as the client named it.
        var mechanism: String
        /// The gs2 flag: `n`, `y` or `p`; nil if the mechanism has none.
        var bindingFlag: String?
        /// The channel binding type, if the flag is `p`.
        var binding: String?
        /// Whether the server has sent a challenge.
        var isChallenged = false
        /// The server's violation of SCRAM or of SASL, as a clause with the server as its subject.
        var breach: String?
        /// Whether the server has sent a signature, or a redacted message that may contain one.
        var hasSignature = false
        /// Whether the server signs the list of mechanisms (XEP-0474).
        var signsMechanisms = false
        /// Whether the server signs the TLS version (XEP-0515).
        var signsTLSVersion = false
        /// The error code in the server's SCRAM message (`e=`, RFC 5802 §7).
        var serverError: String?
        /// The SASL condition of the failure; nil if the attempt has not failed.
        var condition: String?
        /// The text of the server's failure, redacted.
        var text: Prose?
        /// The cause that the server's text names: unknown user, wrong password or channel binding.
        var namedCause: LoginCause?
        var hasSucceeded = false
        var isAborted = false
        /// Whether this is xmpptap's own login to the server.
        var isOwn = false
        /// Whether xmpptap, not the server, refused the attempt.
        var isRefusedHere = false
        /// Whether the attempt uses a channel binding type that the client's connection does not have.
        var isBindingUnavailable = false
        /// The user name of the client, if the redaction policy shows it.
        var user: String?
        /// Whether a message of the client contains a line break within its base64.
        var hasLineBreak = false

        var isSCRAM: Bool { mechanism.hasPrefix("SCRAM-") }

        /// Checks a message from the server (RFC 5802 §5, §5.1; RFC 6120 §6.4.3).
        mutating func judge(_ kind: AuthenticationStep.Kind, _ details: Attributes) {
            guard breach == nil else { return }
            guard isSCRAM else {
                // The texts of DIGEST-MD5 can be in ISO 8859-1, which is decoded as malformed.
                guard kind == .challenge, details["malformed"] != nil, mechanism != "DIGEST-MD5" else { return }
                breach =
                    mechanism == "PLAIN"
                    ? "sent a challenge with data, which PLAIN does not have" : "sent a challenge that is not base64"
                return
            }
            if details["server_signature"] != nil || details["redacted"] != nil { hasSignature = true }
            switch kind {
            case .challenge where details["malformed"] != nil: breach = "sent a malformed challenge"
            case .challenge where details["nonce_mismatch"] != nil:
                breach = "sent a nonce that does not begin with the client's nonce"
            case .challenge:
                guard case .integer(let count)? = details["iterations"], count < Self.leastIterations else { return }
                breach =
                    "asks for \(count) iteration\(count == 1 ? "" : "s") of the hash, fewer than the "
                    + "\(Self.leastIterations) of RFC 5802 §5.1"
            case .success where !isChallenged: breach = "sent success before the client authenticated"
            case .success where !hasSignature: breach = "reported success without its signature (v=)"
            default: break
            }
        }

        /// The smallest iteration count that a server should request (RFC 5802 §5.1).
        private static let leastIterations: Int64 = 4096
    }

    /// An event of a login that the diagnosis uses.
    enum Event {
        /// The server has opened a stream.
        case serverHeader(version: String?)
        /// The server has sent stream features; `isRepeated` if its answer to a request was expected instead.
        case features(StreamFeatures, isRepeated: Bool)
        /// A SASL step on the client leg; `text` is the failure's text without secrets.
        case step(AuthenticationStep, text: Prose?)
        /// A step of the login that xmpptap performs itself.
        case ownStep(AuthenticationStep, text: Prose?)
        /// xmpptap, not the server, refused the attempt that has just failed; `bindings` are the channel binding types
        /// of the client's connection.
        case refusedHere(bindings: [String])
        /// TLS is established: data received in clear could have been forged.
        case enteredTLS
        /// The client's handshake succeeded; with the remedy to show if the client rejects the certificate afterwards.
        case presented(Remedy)
        /// The certificate of a server that connects to another server.
        case peer(PeerCertificate)
        /// TLS is established on a leg.
        case agreed(Leg, TLSAgreement)
        /// The certificate that the server gets on behalf of another server.
        case identity(IdentityChoice)
        /// A direction cannot be parsed; only the first fault is stored.
        case fault(ScanFault, Direction, isForeign: Bool)
        /// Decoding stopped at these offsets in the legs. Later bytes count as an exchange that cannot be decoded.
        case unread(sent: UInt64, received: UInt64)
        /// Some bytes were not captured or not decrypted.
        case gap
        /// The server has sent an element; with its name, nil if the name must not be shown.
        case answer(String?)
        /// The server sent an item that only a bound session receives: the result of binding is missing from the
        /// recording.
        case established
        /// A rule or the user held, changed or stopped an item; `isCertain` if that changed the bytes that the other
        /// side received.
        case acted(Prose, Direction, isCertain: Bool)
        /// The first bytes of the server belong to another protocol.
        case serverSpeaks(String)
        /// This side sent a second XML declaration within its stream.
        case secondDeclaration(Direction)
        /// The server's first bytes are a TLS record.
        case serverBeganTLS
        /// xmpptap requires TLS of the client.
        case demandedTLS
        /// xmpptap closes the session, for this reason and cause.
        case refused(Prose?, LoginCause? = nil)
        case unreachable(ConnectionFault, Prose)
        /// The client requested this resource with `<bind/>` or legacy authentication, or this tag with Bind2.
        case requestedResource(String?)
        /// The client sent its user agent in SASL2 (XEP-0388 §2.2).
        case userAgent(Element)
        /// A dialback key was found valid (XEP-0220).
        case verifiedKey
        /// TLS is intercepted with these versions and this strategy.
        case secured(BindingForecast.Legs)
        /// The forecast of a login's channel binding; `seen` states whether this server accepted such a login before,
        /// nil if unknown.
        case forecast(BindingForecast, seen: Bool?)
        /// For each cause of a channel binding failure, whether servers of the domain have accepted logins that must
        /// fail for it.
        case history([LoginCause: Bool])
        /// The client's account is not among the accounts of `--accounts`, and its login cannot succeed.
        case missedAccount
        /// xmpptap gave up its own login; `isServerUnproven` if the server did not authenticate itself.
        case ownFailure(Prose, isServerUnproven: Bool)
        /// The driver or the recording reports the cause. The first diagnosis is kept, unless `isFinal`.
        case blamed(LoginDiagnosis, isFinal: Bool = false)
    }

    // State gathered from the events so far.

    private(set) var attempts: [Attempt] = []
    /// The server's latest features; nil before the first, and after TLS or SASL has made earlier ones invalid.
    private(set) var offer: Offer?
    private(set) var serverVersion: String?
    /// Whether the server sent features while its answer to a request was expected.
    private(set) var hasRepeatedFeatures = false
    private(set) var hasServerHeader = false
    private(set) var fault: (fault: ScanFault, direction: Direction, isForeign: Bool)?
    private var unreadFrom: (send: UInt64, recv: UInt64)?
    private(set) var refusal: Prose?
    private(set) var refusalCause: LoginCause?
    /// Whether a dialback key was verified on the stream (XEP-0220 §2.3). Such a stream need not carry stanzas.
    private(set) var hasVerified = false
    private(set) var hasServerTLS = false
    private(set) var hasGap = false
    private(set) var isEstablished = false
    /// The name of the server's last element.
    private(set) var lastAnswer: String?
    /// For each direction, the first change that a rule or the user made to the login; the first delay if there is no
    /// change.
    private(set) var acted: [Direction: Intervention] = [:]
    private(set) var serverProtocol: String?
    private(set) var secondDeclaration: Direction?
    private(set) var demandsTLS = false
    /// The remedy if the client rejects xmpptap's certificate after the handshake.
    private(set) var trust: Remedy?
    private(set) var peer: PeerCertificate?
    private(set) var identity: IdentityChoice?
    /// The result of TLS with the server.
    private(set) var serverTLS: TLSAgreement?
    /// Whether the client got an unverified certificate, because the server's could not be verified.
    private(set) var sawUnverified = false
    private(set) var connectionFault = ConnectionFault.unreachable
    private(set) var requestedResource: String?
    private(set) var agent: String?
    private(set) var blamed: LoginDiagnosis?
    private(set) var legs: BindingForecast.Legs?
    private(set) var bindingForecast: BindingForecast?
    private(set) var bindingHistory: [LoginCause: Bool] = [:]
    private(set) var bindingSeen: Bool?
    private(set) var ownFailure: Prose?
    private(set) var isServerUnproven = false
    private(set) var hasMissedAccount = false

    /// The action of a rule or the user on an item of the login.
    struct Intervention {
        /// The action, as a clause.
        let summary: Prose
        /// Whether the action changed the bytes that the other side received.
        let isCertain: Bool
    }

    /// The features that a login depends on.
    struct Offer {
        var requiresTLS = false
        var offersTLS = false
        var offersBinding = false
        var bindings: [String]?
    }

    /// The last SCRAM attempt that failed or was aborted.
    var failedSCRAM: Attempt? { attempts.last { $0.isSCRAM && ($0.condition != nil || $0.isAborted) } }

    func observe(_ event: Event) {
        switch event {
        case .serverHeader(let version):
            hasServerHeader = true
            serverVersion = version
        case .features(let features, let isRepeated):
            hasRepeatedFeatures = isRepeated
            offer = Offer(
                requiresTLS: features.startTLS == .required,
                offersTLS: features.startTLS != .absent,
                offersBinding: features.offersBinding,
                bindings: features.channelBindings
            )
        case .step(let step, let text):
            if step.kind == .begin { hasMissedAccount = false }
            record(step, text, isOwn: false)
        case .ownStep(let step, let text):
            if step.kind == .begin { (ownFailure, isServerUnproven) = (nil, false) }
            record(step, text, isOwn: true)
        case .refusedHere(let bindings):
            guard let last = attempts.indices.last, !attempts[last].isOwn else { break }
            attempts[last].isRefusedHere = true
            attempts[last].isBindingUnavailable = attempts[last].binding.map { !bindings.contains($0) } ?? false
        case .enteredTLS:
            offer = nil
            hasServerHeader = false
        case .fault(let fault, let direction, let isForeign): self.fault = self.fault ?? (fault, direction, isForeign)
        case .unread(let sent, let received): unreadFrom = unreadFrom ?? (sent, received)
        case .serverBeganTLS: hasServerTLS = true
        case .serverSpeaks(let name): serverProtocol = name
        case .gap: hasGap = true
        case .established: isEstablished = true
        case .answer(let name): lastAnswer = name
        case .acted(let summary, let direction, let isCertain):
            let earlier = acted[direction]
            if earlier == nil || isCertain && earlier?.isCertain == false {
                acted[direction] = Intervention(summary: summary, isCertain: isCertain)
            }
        case .secondDeclaration(let direction): secondDeclaration = secondDeclaration ?? direction
        case .demandedTLS: demandsTLS = true
        case .presented(let remedy): trust = remedy
        case .peer(let certificate): peer = certificate
        case .agreed(.server, let agreement): serverTLS = agreement
        case .agreed(.client, let agreement): sawUnverified = agreement.isUnverified
        case .identity(let choice): identity = choice
        case .refused(let reason, let cause):
            refusal = reason ?? refusal
            refusalCause = cause ?? refusalCause
        case .unreachable(let fault, let reason): (connectionFault, refusal) = (fault, reason)
        case .requestedResource(let resource): requestedResource = resource
        case .userAgent(let agent): self.agent = Self.key(of: agent)
        case .verifiedKey: hasVerified = true
        case .secured(let legs): self.legs = legs
        case .history(let accepted): bindingHistory = accepted
        case .forecast(let forecast, let seen): (bindingForecast, bindingSeen) = (forecast, seen)
        case .missedAccount: hasMissedAccount = true
        case .ownFailure(let explanation, let isUnproven): (ownFailure, isServerUnproven) = (explanation, isUnproven)
        case .blamed(let diagnosis, let isFinal): blamed = isFinal ? diagnosis : blamed ?? diagnosis
        }
    }

    /// Whether both sides have sent bytes since decoding stopped.
    func hasExchange(sent: UInt64, received: UInt64) -> Bool {
        unreadFrom.map { sent > $0.send && received > $0.recv } ?? false
    }

    /// Returns a key that distinguishes the clients that use one account.
    private static func key(of agent: Element) -> String {
        let parts = [agent.attribute("id")] + ["software", "device"].map { agent.childText($0, agent.namespace) }
        return parts.map { $0 ?? "" }.joined(separator: "\n")
    }

    private func record(_ step: AuthenticationStep, _ text: Prose?, isOwn: Bool) {
        if step.kind == .begin {
            if attempts.count == Self.maximumAttempts { attempts.removeFirst() }
            attempts.append(Attempt(mechanism: step.details["mechanism"]?.text ?? "no mechanism", isOwn: isOwn))
        }
        // In some logs, the client's message is missing because it contains the password.
        if step.kind == .failure, attempts.isEmpty { attempts.append(Attempt(mechanism: "SASL", isOwn: isOwn)) }
        guard let last = attempts.indices.last else { return }
        record(step.details, in: &attempts[last])
        attempts[last].judge(step.kind, step.details)
        switch step.kind {
        case .challenge, .proceed: attempts[last].isChallenged = true
        case .success:
            attempts[last].hasSucceeded = true
            // Features from before the success no longer apply.
            offer = nil
        case .abort: attempts[last].isAborted = true
        case .failure:
            attempts[last].condition = step.condition ?? "undefined-condition"
            attempts[last].text = text
            attempts[last].namedCause = step.text.flatMap(Self.meaning)
        case .begin, .response, .task: break
        }
    }

    private func record(_ details: Attributes, in attempt: inout Attempt) {
        if let flag = details["channel_binding_flag"]?.text { attempt.bindingFlag = flag }
        if let user = details["user"]?.text { attempt.user = user }
        if details["line_break"] != nil { attempt.hasLineBreak = true }
        if let binding = details["channel_binding"]?.text { attempt.binding = binding }
        if let error = details["server_error"]?.text { attempt.serverError = error }
        if details["signs_mechanisms"] != nil { attempt.signsMechanisms = true }
        if details["signs_tls_version"] != nil { attempt.signsTLSVersion = true }
    }

    /// Returns the cause that a server's text names; nil if it names none. Most servers deliberately give the same text
    /// for an unknown user and a wrong password.
    private static func meaning(_ text: String) -> LoginCause? {
        let text = text.lowercased()
        let ofName = ["unknown user", "no such user", "user not found", "does not exist", "not registered"]
        if ofName.contains(where: { text.contains($0) }) { return .unknownUser }
        // The text of Prosody and ejabberd.
        if text.contains("invalid channel binding") { return .bindingMismatch }
        let ofPassword =
            ["wrong password", "invalid password", "incorrect password", "bad password"]
            // Prosody's text for a wrong proof.
            + ["doesn't match the one we calculated"]
        return ofPassword.contains { text.contains($0) } ? .wrongPassword : nil
    }
}
