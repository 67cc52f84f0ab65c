internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// Finds out why a login failed, from what passed: what was said for certain comes before what can be concluded from
/// silence.
struct LoginDiagnoser {
    let info: SessionInfo
    let steps: [LoginStep]
    let notes: LoginNotes
    /// The domain the client asked for, as it may be told.
    let domain: String?

    /// The diagnosis; nil where there is nothing to judge: nobody tried to log in, or how it went could not be read.
    func diagnosis(isUnreadable: Bool) -> LoginDiagnosis? {
        if let diagnosis = ofTap() ?? ofFault() { return diagnosis }
        if case .error(let condition, let direction) = info.ending { return of(streamError: condition, direction) }
        // What happened on a step counts in the order of time: who is refused and tries another way fails by that.
        let failed = steps.last { loginStep in
            guard case .failed = loginStep.outcome else { return false }
            return loginStep.name != .resume && loginStep.awaited == nil
        }
        if let failed, let diagnosis = of(failed) { return diagnosis }
        guard !isUnreadable else { return nil }
        // A connection without a word is none of a client: something looks whether the port is open.
        guard info.sent.bytes > 0, !hasRegistered else { return nil }
        if let awaited = steps.last(where: { $0.awaited != nil && $0.name != .resume }) { return ofSilence(awaited) }
        return ofNothing()
    }

    // MARK: What is known of the session

    var reached: LoginStep.Name { steps.last?.name ?? .connect }
    var attempt: LoginNotes.Attempt? { notes.attempts.last }

    /// Who registers and leaves has got what it came for.
    private var hasRegistered: Bool {
        steps.contains { $0.name == .registration && $0.outcome == .ok && $0.details["phase"] == "submit" }
            && info.authentication == .none
    }

    /// Whose connection ended first.
    var leaver: Leg? {
        switch info.ending {
        case .clean(let direction): direction.source
        case .unclean(let leg, _), .undecoded(let leg, _): leg
        case .error, .tap, .stopped, .unrecorded, .tls, nil: nil
        }
    }

    var isTimedOut: Bool {
        switch info.ending {
        case .tap(let condition), .error(let condition, _):
            condition == StreamErrorCondition.connectionTimeout.rawValue
        default: false
        }
    }

    // MARK: This program

    private func ofTap() -> LoginDiagnosis? {
        guard case .tap(let condition) = info.ending, notes.fault == nil else { return nil }
        switch condition {
        case StreamErrorCondition.remoteConnectionFailed.rawValue: return ofConnection()
        case StreamErrorCondition.hostUnknown.rawValue:
            let words = notes.refusal ?? "the domain is not served here"
            return LoginDiagnosis(.domainNotServed, at: .streamOpen, Self.clause(words), condition: condition)
        // Someone was silent for too long: who, is told by the timeline.
        case StreamErrorCondition.connectionTimeout.rawValue where steps.contains { $0.awaited != nil }: return nil
        default:
            if let diagnosis = ofOwnLogin() { return diagnosis }
            let words = notes.refusal ?? "xmpptap ended the session"
            if let cause = notes.refusalCause {
                return LoginDiagnosis(cause, at: .startTLS, Self.clause(words), condition: condition)
            }
            return LoginDiagnosis(.endedByTap, at: reached, Self.clause(words), condition: condition)
        }
    }

    private func ofConnection() -> LoginDiagnosis {
        let cause = notes.connectionFault.cause
        let loginStep: LoginStep.Name =
            switch cause {
            case .nameNotFound, .serviceNotOffered, .lookupFailed: .nameLookup
            default: .connect
            }
        return LoginDiagnosis(cause, at: loginStep, Self.clause(notes.refusal ?? "the server cannot be reached"))
    }

    /// A sentence as a clause.
    static func clause(_ sentence: String) -> String {
        sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
    }

    // MARK: Streams that cannot be parsed

    private func ofFault() -> LoginDiagnosis? {
        guard let (fault, direction, isForeign) = notes.fault else { return nil }
        // Who was refused, took leave and went on all the same (slixmpp with its next mechanism) failed by the refusal.
        if fault.code == .afterStreamEnd, notes.attempts.contains(where: { $0.condition != nil }) { return nil }
        let side: LoginCause.Side = direction == .send ? .client : .server
        if isForeign, direction == .send {
            return LoginDiagnosis(.notXMPP, at: .streamOpen, "what the client sends is no XMPP")
        }
        if isForeign, notes.hasServerTLS {
            return LoginDiagnosis(
                .tlsExpected,
                at: .streamOpen,
                "the server answered the clear-text stream with a TLS record: this port expects direct TLS"
            )
        }
        let words = "the \(side.rawValue)'s stream breaks off from XMPP: \(fault.explanation)"
        switch fault.code {
        case .notAStream:
            return LoginDiagnosis(
                .namespaceMismatch,
                at: .streamOpen,
                words,
                condition: fault.condition.rawValue,
                side: side
            )
        default: break
        }
        return LoginDiagnosis(.malformedStream, at: reached, words, condition: fault.condition.rawValue, side: side)
    }
}
