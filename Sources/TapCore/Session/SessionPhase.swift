import XMPPCore

/// How far a session has come. Each case holds what belongs to it alone.
enum Phase {
    /// Streams are being opened, features announced.
    case opening
    /// The initiator has asked for TLS.
    case startingTLS
    /// Authentication is under way.
    case authenticating
    /// Authentication has succeeded; the initiator owes a new stream header.
    case restarting
    /// Authenticated, features known; resource binding or resumption comes next.
    case binding
    /// Stanzas flow.
    case open
    /// One side has closed its stream.
    case closing
    /// Nothing is decoded: TLS passed through, or no XMPP.
    case opaque
    /// The session is answered with a stream error as soon as the client's header has come.
    case refusing(StreamErrorCondition, String)
    /// The last record has been made.
    case closed

    var isClosed: Bool {
        if case .closed = self { return true }
        return false
    }

    /// Whether an authentication is allowed to begin, or has not ended.
    var isBeforeAuthentication: Bool {
        switch self {
        case .opening, .startingTLS, .authenticating: true
        default: false
        }
    }
}

// What each item does to the session.
extension Session {
    /// One event of a decoder: passed on, understood, recorded.
    mutating func handle(_ event: StreamEvent, _ direction: Direction) {
        switch event.kind {
        case .item(let kind):
            if kind == .element, event.isTruncated, pipes[direction].mode == .store {
                return refuseOversize(event, direction)
            }
            if kind == .header, direction == .send, refuseOtherDomain(event) || refusesClearStream() { return }
            if kind == .element, refusesClearElement(event, direction) { return }
            if separate != nil, takesAside(event, kind, direction) { return }
            if kind == .element, direction == .recv, isFeatures(event) { return passFeatures(event) }
            if kind == .element, terminates(event, direction) { return }
            if kind == .whitespace, keepsWhiteSpace(event, direction) { return }
            if shouldHold(event, direction) { holdItem(event, direction) } else { forward(event, direction) }
            if event.head.isUnusual { doubt(event, kind, direction) }
            switch kind {
            case .declaration: recordItem(event, direction, .declaration, level: .verbose)
            case .whitespace: recordItem(event, direction, .whitespace, level: .verbose)
            case .header: handleHeader(event, direction)
            case .element: handleElement(event, direction)
            case .end: handleStreamEnd(event, direction)
            }
        case .fragment(let isFirst):
            // In cut-through the piece has passed; where items are stored it must not, and the item is refused.
            if pipes[direction].mode == .store {
                if isFirst { refuseOversize(event, direction) }
            } else {
                digest(direction, isFirst: isFirst)
            }
        case .fault(let fault): handleFault(fault, event, direction)
        case .torn: recordTorn(event, direction)
        }
    }

    private mutating func refuseOversize(_ event: StreamEvent, _ direction: Direction) {
        let limit = pipes[direction].decoder.limits.itemBytes
        let isStranger = limit == options.unauthenticatedLimits.itemBytes
        let words = "\(limit) bytes, the limit \(isStranger ? "before authentication" : "of a session")"
        note(
            .error,
            .error,
            code: ScanFault.Code.itemTooLong.rawValue,
            "an item longer than \(words), at offset \(event.offset) of stream \(event.epoch); the session is closed",
            condition: .policyViolation,
            direction: direction
        )
        login?.refusal = "an item of the \(direction.source.name) is larger than \(words)"
        refuse(.policyViolation, "An item is larger than \(words).", fault: direction)
    }

    /// Some clients say goodbye twice, which harms nobody.
    private func isRepeatedEnd(_ fault: ScanFault, _ direction: Direction) -> Bool {
        guard fault.code == .afterStreamEnd else { return false }
        let bytes = pipes.bytes(direction)
        return bytes.count > 1 && bytes[0] == 0x3C && bytes[1] == 0x2F
    }

    private mutating func handleFault(_ fault: ScanFault, _ event: StreamEvent, _ direction: Direction) {
        if direction == .recv, refusesEarlyBytesOfServer() { return }
        let isForeign = pipes[direction].decoder.epoch == 0 && fault.code == .notXML
        if isRepeatedEnd(fault, direction) {
            note(
                .note,
                .verbose,
                code: "repeated-end",
                "the end of the stream, once more",
                direction: direction
            )
        } else {
            recordFault(fault, event, direction, isForeign: isForeign)
            if let login, login.fault == nil { login.fault = (fault, direction, isForeign) }
        }
        failRung(condition: fault.condition.rawValue, isForeign ? "no XMPP" : fault.explanation)
        if isRefusing { return direction == .send ? answerRefused() : finish(reset: false) }
        if refusesUnread {
            return refuse(fault.condition, "\(fault.explanation), at offset \(fault.offset)", fault: direction)
        }
        turnOpaque(direction, isForeign ? .foreign : .unparsable)
        if isForeign {
            turnOpaque(direction.opposite, .paired)
            phase = .opaque
        }
    }

    // MARK: Stream headers and ends

    mutating func handleHeader(_ event: StreamEvent, _ direction: Direction) {
        let head = event.head
        switch direction {
        case .send:
            facts.version = text(head.version, direction)
            if let to = text(head.to, direction) { facts.domain = to }
            if let from = text(head.from, direction) { facts.from = from }
            facts.kind =
                switch pipes[direction].decoder.contentNamespace {
                case .client: .client
                case .server: .server
                case .componentAccept, .componentConnect: .component
                default: .unknown
                }
        case .recv:
            login?.hasServerHeader = true
            login?.serverVersion = text(head.version, direction)
            if facts.streams.count < SessionFacts.mostStreams {
                facts.streams.append(.init(epoch: event.epoch, id: text(head.id, direction)))
            }
        }
        if options.level >= .info {
            var record = makeRecord(event, direction, .streamOpen, level: .info)
            record.message = headerWords(event, direction)
            emit(record)
        }
        if event.epoch > 1, !isRestartDue(direction) {
            // The first is worth a word; who sends a thousand of them has a thousand records of headers.
            note(
                .note,
                pipes[direction].hasRestartedUncalled ? .verbose : .warn,
                code: "unexpected-restart",
                "a new stream header that no success, proceed or compressed called for",
                direction: direction
            )
            pipes[direction].hasRestartedUncalled = true
        }
        pipes[direction].mayRestart = false
        awaitFeatures(event, direction)
        climbHeader(event, direction)
        if case .refusing = phase, direction == .send { answerRefused() }
    }

    /// Whether the initiator may open a new stream: after success, or ahead of it while authentication is under way.
    private func isRestartDue(_ direction: Direction) -> Bool {
        if pipes[direction].mayRestart { return true }
        return switch phase {
        case .restarting, .authenticating: true
        case .binding:
            direction == .recv || pipes.send.decoder.epoch <= pipes.recv.decoder.epoch
        default: false
        }
    }

    mutating func handleStreamEnd(_ event: StreamEvent, _ direction: Direction) {
        pipes[direction].hasClosedStream = true
        recordItem(event, direction, .streamClose, level: .info)
        if facts.ending == nil { facts.ending = .clean(by: direction) }
        if case .open = phase { phase = .closing }
    }

    // MARK: Elements

    private mutating func handleElement(_ event: StreamEvent, _ direction: Direction) {
        guard event.head.kind == .nonza else { return handleStanza(event, direction) }
        guard !event.isTruncated else { return recordItem(event, direction, .element, level: .info) }
        switch event.head.namespace.namespace {
        case .streams: handleStreamElement(event, direction)
        case .tls: handleTLS(event, direction)
        case .sasl, .sasl2, .sasl2Legacy: handleSASL(event, direction)
        case .compression: handleCompression(event, direction)
        case .streamManagement, .streamManagement2: handleStreamManagement(event, direction)
        case .dialback: handleDialback(event, direction)
        case .componentAccept where isNamed("handshake", event, direction),
            .componentConnect where isNamed("handshake", event, direction):
            handleHandshake(event, direction)
        case .bidirectional:
            if direction == .send { isBidirectional = true }
            recordItem(event, direction, .element, level: .info)
        default: recordItem(event, direction, .element, level: .info)
        }
    }

    private mutating func handleStreamElement(_ event: StreamEvent, _ direction: Direction) {
        guard let element = parse(direction) else { return recordItem(event, direction, .element, level: .info) }
        guard element.isNamed("error") else { return recordItem(event, direction, .element, level: .info) }
        let condition =
            element.firstChild { $0.namespace == .streamErrors && !$0.isNamed("text") }?.name ?? "undefined-condition"
        judge(streamError: condition, element, direction)
        var record = makeRecord(event, direction, .element, level: .error)
        record.condition = condition
        record.code = "stream-error"
        record.summary = "ends the stream"
        // A component whose secret is wrong is told so by a stream error (XEP-0114 §3).
        if let step = decodeStep(element, direction) {
            record.sasl = step.facts
            facts.authentication = .failed(condition: condition)
        }
        let words = element.childText("text", .streamErrors).map { tools.redactor.disclose(text: $0) }
        record.message = words
        emit(record)
        failRung(condition: condition, words)
    }

    private mutating func handleTLS(_ event: StreamEvent, _ direction: Direction) {
        recordItem(event, direction, .element, level: .info, part: .tls)
        switch direction {
        case .send where isNamed("starttls", event, direction):
            // There is nothing to wait for once authentication has succeeded (RFC 6120 §5.3.1).
            guard phase.isBeforeAuthentication else { return }
            phase = .startingTLS
            begin(.startTLS, awaits: .server)
            ladder.cancel(.mechanism)
            // What follows belongs to TLS or, if the server declines, to this stream: it waits for the answer, unless
            // none can come, or the client has sent all it will and TLS cannot begin.
            if !pipes.recv.hasPassedEnd, pipes.send.end == nil { hold(.send) }
        case .recv where isNamed("proceed", event, direction):
            finish(.startTLS, .ok)
            // What is held goes on when TLS is up on the server's leg.
            if pipes.recv.held != nil { return }
            if options.holdsProceed { return refuseSecondTLS() }
            if options.isInsideTLS { return passTLS() }
            noteEarlyBytes()
            beginTLS(directly: false)
        case .recv:
            if case .startingTLS = phase {
                phase = .opening
                finish(.startTLS, .failed("the server declines"))
            }
            if pipes.send.isHeld { release(.send) }
        default: break
        }
    }

    /// The streams begin anew inside TLS, of which nothing else is seen.
    private mutating func passTLS() {
        finish(.tls, .skipped("not told; the streams that follow are those inside"))
        phase = .opening
        for direction in Direction.allCases { pipes[direction].mayRestart = true }
        if pipes.send.isHeld { release(.send) }
    }

    /// Reports plaintext that the client sent between its request for TLS and the server's consent.
    private mutating func noteEarlyBytes() {
        let count = pipes.send.waiting
        guard count > 0, pipes.pending(.send)[0] != 0x16 else { return }
        note(
            .note,
            .warn,
            code: "starttls-injection",
            "\(count) bytes that are not TLS came between <starttls/> and <proceed/>",
            direction: .send,
            part: .tls
        )
    }

    private mutating func handleCompression(_ event: StreamEvent, _ direction: Direction) {
        recordItem(event, direction, .element, level: .info)
        if direction == .send, isNamed("compress", event, direction) { begin(.compression, awaits: .server) }
        if direction == .recv, isNamed("failure", event, direction) { finish(.compression, .failed()) }
        guard direction == .recv, isNamed("compressed", event, direction) else { return }
        finish(.compression, .ok)
        note(
            .note,
            .warn,
            code: "compression",
            "the streams are compressed from here on and cannot be read",
            direction: direction
        )
        turnOpaque(.send, .compression)
        turnOpaque(.recv, .compression)
    }

    private mutating func handleStreamManagement(_ event: StreamEvent, _ direction: Direction) {
        recordItem(event, direction, .element, level: .info)
        if isNamed("r", event, direction) { return liveness.asks(direction, at: now.monotonic) }
        if isNamed("a", event, direction) { return liveness.acknowledges(direction) }
        if direction == .send, isNamed("resume", event, direction) { return begin(.resume, awaits: .server) }
        guard direction == .recv else { return }
        if isNamed("failed", event, direction), ladder.isUnderWay(.resume) {
            let condition = parse(direction)?.firstChild { $0.namespace == .stanzaErrors }?.name
            return finish(.resume, .failed(condition: condition))
        }
        if isNamed("enabled", event, direction), let enabled = parse(direction) { noteOtherPlace(enabled) }
        guard isNamed("resumed", event, direction) else { return }
        finish(.resume, .ok)
        becomeOpen(event, "the session is resumed")
    }

    /// Stanzas flow: bytes pass as they come from now on, under the limits of a session that has authenticated.
    mutating func becomeOpen(_ event: StreamEvent, _ words: String) {
        if case .open = phase { return }
        phase = .open
        facts.opened = now
        login = nil
        for direction in Direction.allCases {
            pipes[direction].decoder.limits = options.limits
            cutThrough(direction)
        }
        climbToTop()
        noteReady(words)
        watchLogins()
    }

    /// The last event's element as a tree; nil when libxml2 disagrees with the scanner, which is recorded.
    mutating func parse(_ direction: Direction) -> Element? {
        do {
            return try tools.parser.parse(pipes[direction].decoder)
        } catch {
            note(
                .error,
                .warn,
                code: "parser-disagreement",
                "libxml2 refuses what the scanner accepts: \(error.message) (\(error.code))",
                direction: direction
            )
            return nil
        }
    }

    func isNamed(_ name: StaticString, _ event: StreamEvent, _ direction: Direction) -> Bool {
        pipes.bytes(direction).slice(event.head.name).equals(name)
    }

    /// What an attribute of the last event means; nil where it is absent.
    func text(_ attribute: StanzaHead.Attribute?, _ direction: Direction) -> String? {
        guard let attribute else { return nil }
        let raw = pipes.bytes(direction).slice(attribute.range)
        guard attribute.needsDecoding else { return raw.string() }
        var meaning: [UInt8] = []
        AttributeValue.decode(raw, into: &meaning)
        return meaning.span.string()
    }
}
