internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// State of a login until the session is ready, for its diagnosis.
///
/// A class, so that a session which is ready keeps one empty reference and no more.
final class LoginNotes {
    /// The largest number of stored attempts; further ones replace the last.
    static let mostAttempts = 8

    /// One authentication by SASL.
    struct Attempt: Sendable, Hashable {
        /// As the client named it.
        var mechanism: String
        /// The gs2 flag: `n`, `y` or `p`; nil if the mechanism has none.
        var bindingFlag: String?
        /// The channel-binding type, with the flag `p`.
        var binding: String?
        /// The server has sent a challenge.
        var isChallenged = false
        /// The client has answered the last challenge.
        var hasAnswered = false
        /// The server's violation of SCRAM, as a clause with the server as its subject.
        var breach: String?
        /// The server has sent a signature, or an unreadable one.
        var hasSignature = false
        /// The server signs the list of mechanisms (XEP-0474).
        var signsMechanisms = false
        /// The server signs the version of TLS (XEP-0515).
        var signsTLSVersion = false
        /// The error of RFC 5802 §7.
        var serverError: String?
        /// The condition with which it failed.
        var condition: String?
        /// The server's text, redacted.
        var words: String?
        /// The text says that the user is unknown, the password wrong, or the channel binding.
        var tells: LoginCause?
        var hasSucceeded = false
        var isAborted = false
        /// It is xmpptap's own login to the server.
        var isOwn = false
        /// xmpptap refused it, not the server.
        var isRefusedHere = false

        var isSCRAM: Bool { mechanism.hasPrefix("SCRAM-") }

        /// Looks at a message of the server's (RFC 5802 §5, §5.1).
        mutating func judge(_ kind: AuthenticationStep.Kind, _ details: Attributes) {
            guard isSCRAM, breach == nil else { return }
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

        /// RFC 5802 §5.1: a server should ask for no fewer.
        private static let leastIterations: Int64 = 4096
    }

    var attempts: [Attempt] = []
    /// Features have come, and what the last of them said.
    var offer: Offer?
    /// The server has opened a stream; its version.
    var serverVersion: String?
    var hasServerHeader = false
    /// Which direction could not be parsed first, and why.
    var fault: (fault: ScanFault, direction: Direction, isForeign: Bool)?
    /// Offsets in the legs from which on bytes count as an exchange that cannot be followed; nil while all is decoded.
    var unreadFrom: (send: UInt64, recv: UInt64)?
    /// The text with which xmpptap closed the session, and the cause, if known.
    var refusal: String?
    var refusalCause: LoginCause?
    /// Keys of dialback are checked by this stream (XEP-0220 §2.3): it need not carry anything else.
    var hasVerified = false
    /// What the server said first is a record of TLS.
    var hasServerTLS = false
    /// xmpptap, not the server, requires TLS of the client.
    var demandsTLS = false
    var connectionFault = ConnectionFault.unreachable
    /// The resource, or the tag of Bind2, that the client requests.
    var requestedResource: String?
    /// The client's SASL2 user agent (XEP-0388 §2.2).
    var agent: String?
    /// What the driver knows, and the streams do not show.
    var blamed: LoginDiagnosis?
    /// The channel-binding forecast, if both legs are known.
    var bindingForecast: BindingForecast?
    /// How TLS is intercepted, if it is.
    var legs: BindingForecast.Legs?
    /// Why xmpptap gave up its own login.
    var ownFailure: String?
    /// It did so because the server did not authenticate itself.
    var isServerUnproven = false
    /// How this server treated logins like the one in ``bindingForecast``; nil if unknown.
    var bindingSeen: Bool?
    /// The client's account is not among those whose logins are ended here, and its login cannot pass.
    var hasMissedAccount = false

    /// Features as far as a login depends on them.
    struct Offer {
        var requiresTLS = false
        var offersTLS = false
        var offersBinding = false
        var bindings: [String]?
    }

    /// The last attempt by a mechanism that does not reveal the password, if it failed.
    var failedSCRAM: Attempt? { attempts.last { $0.isSCRAM && ($0.condition != nil || $0.isAborted) } }

    /// The attempt that has just begun is xmpptap's own.
    func markOwn() {
        if let last = attempts.indices.last { attempts[last].isOwn = true }
    }

    /// xmpptap refused the attempt that has just failed.
    func markRefusal() {
        if let last = attempts.indices.last, !attempts[last].isOwn { attempts[last].isRefusedHere = true }
    }

    /// What tells one client of an account from another.
    func note(agent: Element?) {
        guard let agent else { return }
        let parts = [agent.attribute("id")] + ["software", "device"].map { agent.childText($0, agent.namespace) }
        self.agent = parts.map { $0 ?? "" }.joined(separator: "\n")
    }

    func note(_ features: StreamFeatures) {
        offer = Offer(
            requiresTLS: features.startTLS == .required,
            offersTLS: features.startTLS != .absent,
            offersBinding: features.offersBinding,
            bindings: features.channelBindings
        )
    }

    /// Notes a step of SASL; `words` are those of a failure, as they may be told.
    func note(_ step: AuthenticationStep, words: String?) {
        if step.kind == .begin {
            if attempts.count == Self.mostAttempts { attempts.removeFirst() }
            attempts.append(Attempt(mechanism: step.details["mechanism"]?.text ?? "no mechanism"))
        }
        guard let last = attempts.indices.last else { return }
        note(step.details, in: &attempts[last])
        attempts[last].judge(step.kind, step.details)
        switch step.kind {
        case .challenge, .proceed:
            attempts[last].isChallenged = true
            attempts[last].hasAnswered = false
        case .response, .task: attempts[last].hasAnswered = true
        case .success:
            attempts[last].hasSucceeded = true
            // What was offered before does not count any more.
            offer = nil
        case .abort: attempts[last].isAborted = true
        case .failure:
            attempts[last].condition = step.condition ?? "undefined-condition"
            attempts[last].words = words
            attempts[last].tells = step.text.flatMap(Self.meaning)
        case .begin: break
        }
    }

    private func note(_ details: Attributes, in attempt: inout Attempt) {
        if let flag = details["channel_binding_flag"]?.text { attempt.bindingFlag = flag }
        if let binding = details["channel_binding"]?.text { attempt.binding = binding }
        if let error = details["server_error"]?.text { attempt.serverError = error }
        if details["signs_mechanisms"] != nil { attempt.signsMechanisms = true }
        if details["signs_tls_version"] != nil { attempt.signsTLSVersion = true }
    }

    /// What a server's words give away. Most say the same of an unknown name and a wrong password, on purpose.
    private static func meaning(_ words: String) -> LoginCause? {
        let words = words.lowercased()
        let ofName = ["unknown user", "no such user", "user not found", "does not exist", "not registered"]
        if ofName.contains(where: { words.contains($0) }) { return .unknownUser }
        // Prosody and ejabberd.
        if words.contains("invalid channel binding") { return .bindingMismatch }
        let ofPassword =
            ["wrong password", "invalid password", "incorrect password", "bad password"]
            // Prosody, of a proof.
            + ["doesn't match the one we calculated"]
        return ofPassword.contains { words.contains($0) } ? .wrongPassword : nil
    }
}
