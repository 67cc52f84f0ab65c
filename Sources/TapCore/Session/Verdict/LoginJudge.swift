import XMPPCore

/// Finds out why a login failed, from what passed: what was said for certain comes before what can be concluded from
/// silence.
struct LoginJudge {
    let facts: SessionFacts
    let rungs: [Rung]
    let notes: LoginNotes
    /// The domain the client asked for, as it may be told.
    let domain: String?

    /// The verdict; nil where there is nothing to judge: nobody tried to log in, or how it went could not be read.
    func verdict(isUnreadable: Bool) -> LoginVerdict? {
        if let verdict = ofTap() ?? ofFault() { return verdict }
        if case .error(let condition, let direction) = facts.ending { return of(streamError: condition, direction) }
        // What happened on a rung counts in the order of time: who is refused and tries another way fails by that.
        let failed = rungs.last { rung in
            guard case .failed = rung.outcome else { return false }
            return rung.name != .resume && rung.awaited == nil
        }
        if let failed, let verdict = of(failed) { return verdict }
        guard !isUnreadable else { return nil }
        // A connection without a word is none of a client: something looks whether the port is open.
        guard facts.sent.bytes > 0, !hasRegistered else { return nil }
        if let awaited = rungs.last(where: { $0.awaited != nil && $0.name != .resume }) { return ofSilence(awaited) }
        return ofNothing()
    }

    // MARK: What is known of the session

    var reached: Rung.Name { rungs.last?.name ?? .connect }
    var attempt: LoginNotes.Attempt? { notes.attempts.last }

    /// Who registers and leaves has got what it came for.
    private var hasRegistered: Bool {
        rungs.contains { $0.name == .registration && $0.outcome == .ok && $0.details["step"] == "submit" }
            && facts.authentication == .none
    }

    /// Whose connection ended first.
    var leaver: Leg? {
        switch facts.ending {
        case .clean(let direction): direction.source
        case .unclean(let leg, _), .undecoded(let leg, _): leg
        case .error, .tap, .stopped, .unrecorded, .tls, nil: nil
        }
    }

    var isTimedOut: Bool {
        switch facts.ending {
        case .tap(let condition), .error(let condition, _):
            condition == StreamErrorCondition.connectionTimeout.rawValue
        default: false
        }
    }

    // MARK: This program

    private func ofTap() -> LoginVerdict? {
        guard case .tap(let condition) = facts.ending, notes.fault == nil else { return nil }
        switch condition {
        case StreamErrorCondition.remoteConnectionFailed.rawValue: return ofConnection()
        case StreamErrorCondition.hostUnknown.rawValue:
            let words = notes.refusal ?? "the domain is not served here"
            return LoginVerdict(.domainNotServed, at: .streamOpen, Self.clause(words), condition: condition)
        // Someone was silent for too long: who, is told by the ladder.
        case StreamErrorCondition.connectionTimeout.rawValue where rungs.contains { $0.awaited != nil }: return nil
        default:
            if let verdict = ofOwnLogin() { return verdict }
            let words = notes.refusal ?? "xmpptap ended the session"
            if let cause = notes.refusalCause {
                return LoginVerdict(cause, at: .startTLS, Self.clause(words), condition: condition)
            }
            return LoginVerdict(.endedByTap, at: reached, Self.clause(words), condition: condition)
        }
    }

    private func ofConnection() -> LoginVerdict {
        let cause = notes.connectionFault.cause
        let rung: Rung.Name =
            switch cause {
            case .nameNotFound, .serviceNotOffered, .lookupFailed: .nameLookup
            default: .connect
            }
        return LoginVerdict(cause, at: rung, Self.clause(notes.refusal ?? "the server cannot be reached"))
    }

    /// A sentence as a clause.
    static func clause(_ sentence: String) -> String {
        sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
    }

    // MARK: Streams that cannot be parsed

    private func ofFault() -> LoginVerdict? {
        guard let (fault, direction, isForeign) = notes.fault else { return nil }
        // Who was refused, took leave and went on all the same (slixmpp with its next mechanism) failed by the refusal.
        if fault.code == .afterStreamEnd, notes.attempts.contains(where: { $0.condition != nil }) { return nil }
        let side: LoginCause.Side = direction == .send ? .client : .server
        if isForeign, direction == .send {
            return LoginVerdict(.notXMPP, at: .streamOpen, "what the client sends is no XMPP")
        }
        if isForeign, notes.hasServerTLS {
            return LoginVerdict(
                .tlsExpected,
                at: .streamOpen,
                "the server answered the clear-text stream with a TLS record: this port expects direct TLS"
            )
        }
        let words = "the \(side.rawValue)'s stream breaks off from XMPP: \(fault.explanation)"
        switch fault.code {
        case .notAStream:
            return LoginVerdict(
                .namespaceMismatch,
                at: .streamOpen,
                words,
                condition: fault.condition.rawValue,
                side: side
            )
        default: break
        }
        return LoginVerdict(.malformedStream, at: reached, words, condition: fault.condition.rawValue, side: side)
    }
}
