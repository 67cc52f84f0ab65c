public import TapRecord
import XMPPCore

// TLS that is ended here: the server's leg first, then the client's, then both streams begin anew (RFC 6120 §5.4).
extension Session {
    /// Whether TLS may begin after the `<proceed/>` that is held: nobody has sent anything behind it, or behind the
    /// request, that would be taken for what TLS carries (CVE-2011-0411 and its kin). Where somebody has, the session
    /// ends.
    public mutating func mayBeginTLS(at now: Run.Instant) -> Bool {
        self.now = now
        guard !negotiation.isFinished, directions.recv.buffered != nil else { return false }
        // What a client has sent that asks for no TLS goes on inside the server's.
        let both = options.clientTLS != .off
        for direction in both ? [Direction.recv, .send] : [.recv] where hasText(direction) {
            refuseInjection(direction)
            return false
        }
        return true
    }

    /// The handshake on a leg begins; `directly` where the client has begun with TLS, rather than asked for it.
    public mutating func tlsBegins(_ leg: Leg, directly: Bool, at now: Run.Instant) {
        self.now = now
        guard !negotiation.isFinished else { return }
        negotiation.beginHandshake()
        begin(
            .tls,
            key: leg.name.description,
            awaits: leg,
            details: ["leg": .string(leg.name.description), "begins": directly ? "directly" : "starttls"]
        )
    }

    /// The handshake on a leg has ended well. After the client's, or where there is none to come (see
    /// ``SessionOptions/isOwnClient``), both streams begin anew.
    ///
    /// - Parameters:
    ///   - facts: What was agreed on, for the record.
    ///   - words: The same for people.
    ///   - overlooked: What is wrong with the server's certificate and was let pass; nil where nothing is.
    public mutating func tlsOpened(
        _ leg: Leg,
        _ info: Attributes,
        _ words: String,
        overlooked: String? = nil,
        at now: Run.Instant
    ) {
        self.now = now
        guard !negotiation.isFinished else { return }
        finish(.tls, key: leg.name.description, .ok)
        if overlooked != nil { self.info.isUnverified = true }
        var record = makeRecord(.tls, overlooked == nil ? .info : .warn, part: .tls)
        record.leg = leg
        record.code = Record.Code.tlsOpened
        record.message = Prose(overlooked.map { "\(words); NOT VERIFIED: \($0)" } ?? words)
        record.tls = info
        emit(consume record)
        if leg == .client || options.isOwnClient {
            beginInside()
        } else if options.clientTLS == .off {
            openInside()
        }
    }

    /// Gives the client the consent, the server's or this program's: its TLS is to begin.
    public mutating func proceed(at now: Run.Instant) {
        self.now = now
        guard !negotiation.isFinished, let consent = directions.recv.takeBuffered() else { return }
        if negotiation.asymmetric == nil {
            enqueue(.send(.client, consent))
        } else {
            say([(.element, consent)], to: .client)
        }
    }

    /// TLS has failed on a leg, and the session with it. The client is told in the terms that it expects just now: a
    /// `<failure/>` (RFC 6120 §5.4.2.2), or the failure's alert of TLS.
    public mutating func tlsFailed(_ leg: Leg, _ failure: TLSFailure, at now: Run.Instant) {
        self.now = now
        guard !negotiation.isFinished else { return }
        if let cause = failure.cause {
            blame(
                cause,
                at: .tls,
                failure.words,
                side: failure.side,
                condition: failure.code,
                remedy: failure.remedy
            )
        }
        var details: Attributes = ["leg": .string(leg.name.description)]
        details[LoginStep.alertDetail] = failure.peerAlert.map { .string($0) }
        // Of TLS that was not even begun the timeline does not know whose it is.
        finish(
            .tls,
            key: leg.name.description,
            .failed(condition: failure.code, failure.words),
            details: details
        )
        var record = makeRecord(.error, .error, part: .tls)
        record.leg = leg
        record.code = failure.code
        record.message = Prose(failure.words)
        if let remedy = failure.remedy, let advice = options.advice {
            record.message = "\(failure.words); \(advice(remedy))"
        }
        record.tls = failure.certificate
        emit(consume record)
        endWithoutTLS(leg, failure.words, failure.alert)
    }

    /// A remark about TLS on a leg.
    public mutating func remarkTLS(_ leg: Leg, _ level: Level, code: String, _ words: String, at now: Run.Instant) {
        self.now = now
        var record = makeRecord(.note, level, part: .tls)
        record.leg = leg
        record.code = code
        record.message = Prose(words)
        emit(consume record)
    }

    /// A message of TLS has gone by on a leg; told at trace, without what it says.
    public mutating func traceTLS(_ leg: Leg, _ name: String, length: Int, isReceived: Bool, at now: Run.Instant) {
        guard options.level >= .trace, !negotiation.isClosed else { return }
        self.now = now
        var record = makeRecord(.tls, .trace, part: .tls)
        record.leg = leg
        record.direction = isReceived ? leg.inbound : leg.inbound.opposite
        record.length = UInt64(clamping: length)
        record.code = "tls-message"
        record.message = "\(name) \(isReceived ? "from" : "to") the \(leg.name), \(length) bytes"
        emit(consume record)
    }

    // MARK: Steps

    private mutating func beginInside() {
        negotiation.enterTLS()
        info.version = nil
        forgetClear()
        for direction in Direction.allCases { directions[direction].enterTLS() }
    }

    /// What was said in clear may have been anybody's.
    mutating func forgetClear() {
        info.features = []
        info.mechanisms = []
        info.mechanism = nil
        login?.observe(.enteredTLS)
    }

    private mutating func endWithoutTLS(_ leg: Leg, _ words: String, _ alert: Alert?) {
        if info.ending == nil { info.ending = .tls(leg: leg, words) }
        if options.clientTLS == .off {
            // It has not asked for TLS, and may have no stream yet.
            sayError(.remoteConnectionFailed, "TLS with the server failed.", to: .client)
        } else if directions.recv.takeBuffered() != nil || negotiation.isConsentAwaited {
            sayFailure()
        } else if let alert {
            return self.alert(alert)
        }
        finishLegs()
    }

    // MARK: Plaintext where TLS is due

    /// Whether anything but white space waits: go-sendxmpp ends its request with a line feed.
    private func hasText(_ direction: Direction) -> Bool {
        let pending = directions.pending(direction)
        for index in pending.indices where ![0x20, 0x09, 0x0A, 0x0D].contains(pending[index]) { return true }
        return false
    }

    /// Ends a session whose client goes on in clear behind its request for TLS; whether it did.
    mutating func refusesEarlyBytes() -> Bool {
        guard options.holdsProceed, options.clientTLS != .off, negotiation.isStartingTLS, directions.send.isHeld,
            hasText(.send)
        else { return false }
        refuseInjection(.send)
        return true
    }

    private mutating func refuseInjection(_ direction: Direction) {
        let leg = direction.source
        let words =
            direction == .send
            ? "\(directions.send.waiting) bytes of plaintext after <starttls/>: injected, or sent by a client that does not "
                + "wait"
            : "\(directions.recv.waiting) bytes of plaintext after <proceed/>: injected"
        tlsFailed(leg, TLSFailure(code: "starttls-injection", words), at: now)
    }

    /// Buffers the server's `<proceed/>` until TLS is up on the server's leg. Refuses an unexpected one (without a request, or
    /// inside TLS): the client would start TLS and misread the stream error.
    func interceptConsent(_ event: StreamEvent, _ direction: Direction) -> ItemDecision? {
        guard options.holdsProceed, event.item == .element, direction == .recv, event.head.namespace.namespace == .tls,
            !event.isTruncated, !negotiation.isRefusing, isNamed("proceed", event, .recv)
        else { return nil }
        if negotiation.isConsentAwaited { return .buffer(until: .serverTLS) }
        return .refuse(
            Refusal(
                answer: .streamError(.policyViolation, "Unexpected <proceed/>.", fault: .recv),
                code: "starttls-unexpected",
                message: "unexpected <proceed/>: no STARTTLS request was pending",
                condition: .policyViolation,
                direction: .recv,
                part: .tls,
                itemPart: .tls
            )
        )
    }

    /// Warns of a login without TLS, if TLS is intercepted.
    mutating func warnOfClearLogin(_ offer: StreamFeatures) {
        guard options.holdsProceed, negotiation.isClear, negotiation.isOpening, offer.startTLS == .absent,
            !info.mechanisms.isEmpty
        else { return }
        note(
            .note,
            .warn,
            code: "no-tls",
            "the server offers no TLS; the session continues in clear text, including the login",
            direction: .recv,
            part: .tls
        )
    }
}
