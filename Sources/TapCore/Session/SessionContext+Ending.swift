internal import TapRecord
import XMPPCore

// Ends a session: stream errors, closing of the legs, and the reason for the record of the end.
extension SessionContext {
    /// Closes the session with a stream error, which is sent to the client at once if its header has arrived, and
    /// otherwise after the header. If the server is at fault, the error is sent to the server, and the client gets
    /// `internal-server-error`.
    ///
    /// - Parameter code: The code of the close frames, if the legs are WebSockets.
    mutating func refuse(
        _ condition: StreamErrorCondition,
        _ text: String,
        fault: Direction = .send,
        closing code: WebSocketCloseCode = .normal
    ) {
        guard !negotiation.isFinished, !negotiation.isRefusing else { return }
        if negotiation.isConnected {
            info.ending = .tap(condition: condition.rawValue)
            if !directions.recv.isOpaque, !directions.send.isOpaque {
                if mayInsert(.recv) {
                    sendStreamError(fault == .send ? condition : .internalServerError, text, to: .client)
                }
                if mayInsert(.send), serverHasStream {
                    if fault == .recv {
                        sendStreamError(condition, text, to: .server)
                    } else {
                        answer([streamEnd], to: .server)
                    }
                }
            }
            finishLegs(code)
            return
        }
        negotiation.refuse(condition, text)
        answerDeadline = now.monotonic &+ Self.answerTime
        if directions.send.isOpaque { return finish(reset: false) }
        directions.send.hasInput = true
        if info.domain != nil { answerRefused() }
    }

    /// Closes the session because of a peer's item.
    mutating func refuse(_ refusal: Refusal) {
        if refusal.code == ScanFault.Code.itemTooLong.rawValue {
            counters.count(.limitHit(refusal.direction.map { itemLimit($0) } ?? .item))
        }
        login?.observe(.refused(refusal.diagnosis, refusal.cause))
        report(
            .error,
            .error,
            code: refusal.code,
            refusal.message,
            condition: refusal.condition,
            direction: refusal.direction,
            part: refusal.part,
            remedy: refusal.remedy
        )
        switch refusal.answer {
        case .streamError(let condition, let text, let fault): refuse(condition, text, fault: fault)
        case .tlsFailure:
            info.ending = .tap(condition: StreamErrorCondition.policyViolation.rawValue)
            sendTLSFailure()
            finishLegs()
        }
    }

    /// Answers the header of a client, because its session is refused.
    mutating func answerRefused() {
        guard case .refusing(let condition, let text) = negotiation else { return }
        info.ending = .tap(condition: condition.rawValue)
        sendStreamError(condition, text, to: .client)
        outlet.end(.client, with: .normal)
        outlet.end(.client)
        finish(reset: false)
    }

    // MARK: Sending

    /// Sends a stream error and the end of the stream; first opens a stream if the peer has none.
    ///
    /// - Parameter opensStream: Whether the peer has no stream, although it had one before TLS.
    mutating func sendStreamError(
        _ condition: StreamErrorCondition,
        _ text: String,
        to leg: Leg,
        opensStream: Bool = false
    ) {
        let hasStream = !opensStream && (leg == .client ? clientHasStream : directions.send.decoder.epoch > 0)
        answer(
            (hasStream ? [] : header()) + [(.element, streamError(condition, text)), streamEnd],
            condition,
            to: leg
        )
    }

    /// Declines the TLS that the client requested, which ends the client's stream (RFC 6120 §5.4.2.2).
    mutating func sendTLSFailure() {
        answer(
            [(.element, Array("<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>".utf8)), streamEnd],
            to: .client
        )
    }

    private static let errorName: StaticString = "stream:error"
    private static let declaration = "<?xml version='1.0'?>"

    /// Returns the opening of a stream to the client.
    func header() -> [SentItem] {
        if isOfMessages { return [(.streamOpen, openMessage())] }
        var writer = XMLWriter()
        writer.start(
            "stream:stream",
            xmlns: info.kind == .server ? "jabber:server" : "jabber:client",
            [
                "xmlns:stream": "http://etherx.jabber.org/streams", "id": "xmpptap-\(number)", "from": info.domain,
                "version": "1.0",
            ]
        )
        writer.text("")
        return [(.declaration, Array(Self.declaration.utf8)), (.streamOpen, writer.take())]
    }

    /// Returns the `<open/>` for the client (RFC 7395 §3.4).
    private func openMessage() -> [UInt8] {
        XMLWriter.bytes {
            $0.element(
                "open",
                xmlns: Namespace.framing.uri.description,
                ["id": "xmpptap-\(number)", "from": info.domain, "version": "1.0"]
            )
        }
    }

    private func streamError(_ condition: StreamErrorCondition, _ text: String) -> [UInt8] {
        // In a message, the prefix must be declared (RFC 7395 §3.3.3).
        let declared = isOfMessages ? Namespace.streams.uri.description : nil
        return XMLWriter.bytes { xml in
            xml.element("\(Self.errorName)", ["xmlns:stream": declared]) {
                $0.element(condition.rawValue, xmlns: "urn:ietf:params:xml:ns:xmpp-streams")
                $0.element("text", xmlns: "urn:ietf:params:xml:ns:xmpp-streams", ["xml:lang": "en"]) { $0.text(text) }
            }
        }
    }

    // MARK: Ends

    /// Half-closes both legs with a FIN, the client's first, then closes them.
    ///
    /// - Parameter code: The code of the close frames, if the legs are WebSockets.
    mutating func finishLegs(_ code: WebSocketCloseCode = .normal) {
        for leg in [Leg.client, .server] {
            let direction = leg.inbound.opposite
            let isAtBoundary = directions[direction].isStoring || directions[direction].isBetweenItems
            if isAtBoundary, !directions[direction].isOpaque, !directions[direction].hasClosedSocket {
                outlet.end(leg, with: code)
            }
            outlet.end(leg)
        }
        finish(reset: false)
    }

    /// Closes both legs after all queued writes.
    mutating func finish(reset: Bool) {
        guard negotiation.finish() else { return }
        outlet.end(reset: reset)
    }

    /// Closes the session of a client that has begun TLS, with a fatal alert.
    mutating func alert(_ alert: HandshakeAlert) {
        outlet.answer([0x15, 3, 1, 0, 2, 2, alert.rawValue], to: .client)
        finishLegs()
    }

    /// Resets both connections, because a rule requires it.
    mutating func resetConnections() {
        if info.ending == nil { info.ending = .tap(condition: StreamErrorCondition.undefinedCondition.rawValue) }
        finish(reset: true)
    }

    /// Ends the session for a reason of xmpptap, with a stream error.
    mutating func abort(_ condition: StreamErrorCondition, _ text: String, _ code: String) {
        login?.observe(.refused(Prose(text)))
        report(.error, .error, code: code, Prose(text), condition: condition, part: .session)
        refuse(condition, text)
    }

    /// Ends this session, whose connections still exist, because the given session resumes it.
    mutating func closeSuperseded(by session: UInt64) {
        if info.ending == nil {
            info.ending = .unclean(leg: .client, .finished)
            info.reason = "resumed as session \(session)"
        }
        finish(reset: true)
    }

    /// Whether xmpptap or the server has opened a stream to the client.
    var clientHasStream: Bool { negotiation.asymmetric?.clientHasStream ?? (directions.recv.decoder.epoch > 0) }

    /// Whether the client's stream opening was sent to the server.
    var serverHasStream: Bool {
        negotiation.asymmetric?.reachesServer != false && directions.send.decoder.epoch > 0
    }

    /// Returns the name of the size limit that applies to items of a direction.
    func itemLimit(_ direction: Direction) -> SessionCounters.Limit {
        let isOfLogin = directions[direction].limits.itemBytes == options.unauthenticatedLimits.itemBytes
        return isOfLogin && info.opened == nil ? .loginItem : .item
    }

    /// The time limit in nanoseconds within which a refused client must open its stream to receive the stream error.
    static let answerTime: Int64 = 10_000_000_000

    // MARK: Why a session ended

    /// Stores how a leg ended; only the first ending is kept.
    ///
    /// - Parameter unheard: The request of this direction's sender that was not answered, if any.
    mutating func setCloseReason(_ direction: Direction, _ end: LegEnd, _ unheard: Liveness.Finding?) {
        guard info.ending == nil else { return }
        if direction == .send && directions.send.hasClosedStream
            || direction == .recv && directions.recv.hasClosedStream
        {
            return
        }
        // After the other side closed its stream, the end of the connection is expected.
        if end == .finished, directions.send.hasClosedStream || directions.recv.hasClosedStream {
            info.ending = .clean(by: directions.send.hasClosedStream ? .send : .recv)
            return
        }
        info.ending =
            directions[direction].isOpaque
            ? .undecoded(
                leg: direction.source,
                negotiation.passedTLS?.endsWithAlert(direction) == true ? .finished : end
            )
            : .unclean(leg: direction.source, end)
        info.closeReason = unheard?.closeReason
        info.reason = unheard?.reason
    }

    /// Stores how a session ends, because a stream error was relayed.
    mutating func judge(
        streamError condition: String,
        _ element: Element,
        _ direction: Direction,
        _ unheard: Liveness.Finding?
    ) {
        info.ending = .error(condition: condition, by: direction)
        let text = element.childText("text", .streamErrors).map { Prose(tools.redactor.disclose(text: $0)) }
        switch condition {
        case "conflict":
            info.closeReason = .conflict
            let resource = info.jid.flatMap { Address($0).resource }.map {
                tools.redactor.disclose(name: $0)
            }
            info.reason =
                "another login uses the same resource\(resource.map { " \($0)" } ?? "")\(text.map { ": \($0.clause)" } ?? "")"
        case "connection-timeout":
            info.closeReason = unheard?.closeReason ?? .idle
            info.reason = unheard?.reason
        case "system-shutdown": info.closeReason = .systemShutdown
        case "policy-violation":
            info.closeReason = .policyViolation
            info.reason = text
        case "see-other-host":
            info.closeReason = .seeOtherHost
            let named = element.childText("see-other-host", .streamErrors) ?? ""
            let host = named.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            let behind =
                options.isObserved
                ? ""
                : edited == nil
                    ? "; the client will bypass xmpptap" : "; the client was told to reconnect instead"
            info.reason = "redirected to \(host.isEmpty ? "another host" : host)\(behind)"
        default:
            info.closeReason = .streamError
            info.reason = text
        }
        guard direction == .recv, let early = info.enableFault(for: condition) else { return }
        info.reason = info.reason.map { "\($0); \(early)" } ?? early
    }
}
