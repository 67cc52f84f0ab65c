internal import TapRecord
import XMPPCore

// TLS that this program asks for, answers or begins by itself, because it is to begin on one leg alone or in another way
// than on the other.
extension Session {
    /// Takes an item that goes no further as it is; false where it is like any other.
    mutating func takesAside(_ event: StreamEvent, _ kind: StanzaScanner.Item.Kind, _ direction: Direction) -> Bool {
        guard let asymmetric, !isRefusing else { return false }
        switch (asymmetric.way, direction) {
        case (.answering, .send): answerClient(event, kind)
        case (.asking, .send): return openForServer(event, kind, passes: true)
        case (.preceding, .send): return openForServer(event, kind, passes: false)
        case (.asking, .recv): return hearServer(event, kind)
        case (.answering, .recv), (.preceding, .recv): refuseEarlyServer(event)
        }
        return true
    }

    /// The server that was found begins with TLS. Counts where it would have been asked for it.
    public mutating func serverBeginsWithTLS() {
        if asymmetric?.way == .asking { asymmetric?.way = .preceding }
    }

    /// TLS on the server's leg begins with its first byte, whatever the client does.
    public var serverTLSIsDirect: Bool { options.serverTLS == .direct || asymmetric?.way == .preceding }

    /// TLS is up on the server's leg, and none follows on the client's: its stream is opened inside.
    mutating func openInside() {
        guard let asymmetric else { return }
        self.asymmetric = nil
        tls = .inside
        phase = .opening
        forgetClear()
        enterTLS(.recv)
        guard asymmetric.way == .asking else {
            enqueue(.send(.server, asymmetric.opening))
            return goOnInside()
        }
        say([(.streamOpen, asymmetric.opening)], to: .server)
        begin(.streamOpen, awaits: .server)
        goOnInside()
    }

    /// What the client has said behind its header goes on now, or when it is known what it may use.
    private mutating func goOnInside() {
        if info.version == nil || !awaitFeatures() { release(.send) }
    }

    /// Whether the client has a stream of this program's or of the server's.
    var clientHasStream: Bool {
        switch asymmetric?.way {
        case .answering: asymmetric?.hasAnswered == true
        case .asking, .preceding: false
        case nil: directions.recv.decoder.epoch > 0
        }
    }

    /// Whether the server has got what the client has opened its stream with.
    var serverHasStream: Bool {
        switch asymmetric?.way {
        case .answering, .preceding: false
        case .asking, nil: directions.send.decoder.epoch > 0
        }
    }

    /// Goes no further with an item: what it says is understood and told, and its bytes stay here.
    private mutating func keep(_ event: StreamEvent, _ direction: Direction) {
        directions[direction].forwarded = max(directions[direction].forwarded, event.position + event.length)
        asymmetric?.isKeeping = true
    }

    // MARK: The client's TLS, answered here

    private mutating func answerClient(_ event: StreamEvent, _ kind: StanzaScanner.Item.Kind) {
        keep(event, .send)
        defer { asymmetric?.isKeeping = false }
        switch kind {
        case .declaration: recordItem(event, .send, .declaration, level: .verbose)
        case .whitespace: recordItem(event, .send, .whitespace, level: .verbose)
        case .header:
            handleHeader(event, .send)
            sayOffer()
        case .element where event.head.namespace.namespace == .tls && isNamed("starttls", event, .send):
            recordItem(event, .send, .element, level: .info, part: .tls)
            guard asymmetric?.hasAnswered == true, directions.recv.held == nil else { return }
            phase = .startingTLS
            finish(.startTLS, .ok)
            // Given to the client when the server's TLS is up, or there will be none.
            directions.recv.held = Self.consent
            hold(.send)
            enqueue(.held(.recv))
        case .element:
            recordItem(event, .send, .element, level: .info)
            refuseClear(.client, "the client goes on without TLS")
        case .end:
            handleStreamEnd(event, .send)
            say([Self.end], to: .client)
            enqueue(.finish(.client))
            enqueue(.finish(.server))
            finish(reset: false)
        }
    }

    private static let consent = Array("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>".utf8)
    private static let request = Array("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>".utf8)

    /// Opens a stream for the client in which there is nothing but TLS.
    private mutating func sayOffer() {
        guard !isFinished, asymmetric?.hasAnswered == false else { return }
        asymmetric?.hasAnswered = true
        finish(.streamOpen, .ok)
        let offer =
            "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls></stream:features>"
        say(header() + [(.element, Array(offer.utf8))], to: .client)
        login?.demandsTLS = true
        begin(.startTLS, awaits: .client)
    }

    /// The server speaks where it has been told nothing, or in clear where TLS was to come first.
    private mutating func refuseEarlyServer(_ event: StreamEvent) {
        keep(event, .recv)
        note(
            .error,
            .error,
            code: "starttls-injection",
            "the server's leg brings a stream before one was opened there",
            condition: .policyViolation,
            direction: .recv,
            part: .tls
        )
        refuse(.remoteConnectionFailed, "The server speaks out of turn.")
    }

    /// Lets nothing pass that a server says which has been told nothing; whether it is one. Where the client has left before
    /// it has asked for TLS, that is an alert: there was no hello.
    mutating func refusesEarlyBytesOfServer() -> Bool {
        guard asymmetric?.way == .answering else { return false }
        if directions.send.end == nil {
            refuse(.remoteConnectionFailed, "The server speaks out of turn.")
        } else {
            finish(reset: false)
        }
        return true
    }

    // MARK: The server's TLS, begun from here

    /// The client opens its stream: the server gets that now, and once more inside TLS, or only then.
    private mutating func openForServer(
        _ event: StreamEvent,
        _ kind: StanzaScanner.Item.Kind,
        passes: Bool
    ) -> Bool {
        let isOpen = asymmetric?.isOpen != false
        if !isOpen, kind == .declaration || kind == .header {
            asymmetric?.opening.append(directions.bytes(.send))
            if passes { forward(event, .send) } else { keep(event, .send) }
        } else {
            keep(event, .send)
        }
        defer { asymmetric?.isKeeping = false }
        switch kind {
        case .declaration: recordItem(event, .send, .declaration, level: .verbose)
        case .whitespace: recordItem(event, .send, .whitespace, level: .verbose)
        case .header where !isOpen:
            asymmetric?.isOpen = true
            handleHeader(event, .send)
            // All that follows waits until it can go by TLS.
            hold(.send)
            guard !passes else { return true }
            directions.recv.held = []
            enqueue(.held(.send))
        case .header, .element, .end:
            // The client is gone: it would have waited.
            recordItem(event, .send, .element, level: .info)
            finish(reset: false)
        }
        return true
    }

    /// What the server says before it has been asked for TLS, or in answer to that.
    private mutating func hearServer(_ event: StreamEvent, _ kind: StanzaScanner.Item.Kind) -> Bool {
        switch kind {
        case .declaration, .whitespace, .header:
            guard keepAnswer(event) else { return true }
            defer { asymmetric?.isKeeping = false }
            switch kind {
            case .declaration: recordItem(event, .recv, .declaration, level: .verbose)
            case .header:
                handleHeader(event, .recv)
                // Without a version no features follow, and no TLS (RFC 6120 §4.7.5).
                if event.head.version == nil { goOnWithoutTLS(nil) }
            default: recordItem(event, .recv, .whitespace, level: .verbose)
            }
            return true
        case .element where isFeatures(event) && asymmetric?.hasAsked == false: return askServer(event)
        case .element where asymmetric?.hasAsked == true && event.head.namespace.namespace == .tls:
            keep(event, .recv)
            defer { asymmetric?.isKeeping = false }
            recordItem(event, .recv, .element, level: .info, part: .tls)
            guard isNamed("proceed", event, .recv) else {
                finish(.startTLS, .failed("the server declines"))
                refuse(.remoteConnectionFailed, "The server declines TLS.")
                return true
            }
            finish(.startTLS, .ok)
            // Nothing of it is for the client.
            directions.recv.held = []
            hold(.recv)
            enqueue(.held(.recv))
            return true
        case .element, .end:
            // A stream error, or what nobody expects: the client gets it, in the stream it stands in. Where TLS is required
            // it gets no further by that.
            giveAnswer()
            asymmetric = nil
            if directions.send.isHeld { release(.send) }
            return false
        }
    }

    /// Keeps what may have to be given to the client; false where the server says too much of it.
    private mutating func keepAnswer(_ event: StreamEvent) -> Bool {
        asymmetric?.answer.append(directions.bytes(.recv))
        keep(event, .recv)
        let limit = options.unauthenticatedLimits.itemBytes
        guard let asymmetric, asymmetric.answer.count > limit else { return true }
        let words = "The server has said more than \(limit) bytes, and not what it offers."
        abort(.policyViolation, words, code: ScanFault.Code.itemTooLong.rawValue, at: now)
        return false
    }

    private mutating func giveAnswer() {
        guard let answer = asymmetric?.answer, !answer.isEmpty else { return }
        enqueue(.send(.client, answer))
    }

    /// Asks for TLS where the server offers it; false where features go to the client after all.
    private mutating func askServer(_ event: StreamEvent) -> Bool {
        guard let element = parse(.recv), let offer = StreamFeatures(element) else { return false }
        guard offer.startTLS != .absent else { return !goOnWithoutTLS(offer) }
        keep(event, .recv)
        understand(offer, event, nil)
        asymmetric?.isKeeping = false
        asymmetric?.hasAsked = true
        phase = .startingTLS
        say([(.element, Self.request)], to: .server)
        timeline.cancel(.mechanism)
        begin(.startTLS, awaits: .server)
        return true
    }

    /// The server offers no TLS: the session goes on in clear, unless that is refused; whether it does.
    @discardableResult
    private mutating func goOnWithoutTLS(_ offer: StreamFeatures?) -> Bool {
        if options.serverTLS == .required {
            refuseClear(.server, "the server offers no TLS")
            return false
        }
        giveAnswer()
        asymmetric = nil
        release(.send)
        return true
    }
}
