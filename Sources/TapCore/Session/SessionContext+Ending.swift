internal import TapRecord
import XMPPCore

// Items that xmpptap sends itself: stream errors.
extension SessionContext {
    /// Ends the session with a stream error: to the client at once if its header has arrived, else when it arrives. If
    /// the server's stream is at fault, the error is sent there, and the client gets internal-server-error.
    mutating func refuse(_ condition: StreamErrorCondition, _ text: String, fault: Direction = .send) {
        guard !negotiation.isFinished, !negotiation.isRefusing else { return }
        if negotiation.isConnected {
            info.ending = .tap(condition: condition.rawValue)
            if !directions.recv.isOpaque, !directions.send.isOpaque {
                if mayInsert(.recv) {
                    sayError(fault == .send ? condition : .internalServerError, text, to: .client)
                }
                if mayInsert(.send), serverHasStream {
                    if fault == .recv {
                        sayError(condition, text, to: .server)
                    } else {
                        answer([Self.streamEnd], to: .server)
                    }
                }
            }
            finishLegs()
            return
        }
        negotiation.refuse(condition, text)
        answerDeadline = now.monotonic &+ Self.answerTime
        if directions.send.isOpaque { return finish(reset: false) }
        directions.send.hasInput = true
        if info.domain != nil { answerRefused() }
    }

    /// Ends the session because of a peer's item.
    mutating func refuse(_ refusal: Refusal) {
        if refusal.code == ScanFault.Code.itemTooLong.rawValue {
            counters.count(.limitHit(refusal.direction.map { itemLimit($0) } ?? .item))
        }
        login?.observe(.refused(refusal.diagnosis, refusal.cause))
        note(
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
            sayFailure()
            finishLegs()
        }
    }

    /// Answers the header of a refused client.
    mutating func answerRefused() {
        guard case .refusing(let condition, let text) = negotiation else { return }
        info.ending = .tap(condition: condition.rawValue)
        sayError(condition, text, to: .client)
        outlet.end(.client)
        finish(reset: false)
    }

    // MARK: Sending

    /// Sends a stream error and the end of the stream; opens a stream first if the peer has none yet.
    mutating func sayError(_ condition: StreamErrorCondition, _ text: String, to leg: Leg) {
        let hasStream = leg == .client ? clientHasStream : directions.send.decoder.epoch > 0
        answer(
            (hasStream ? [] : header()) + [(.element, Self.streamError(condition, text)), Self.streamEnd],
            condition,
            to: leg
        )
    }

    /// Declines the TLS that the client requested, which ends its stream (RFC 6120 §5.4.2.2).
    mutating func sayFailure() {
        answer(
            [(.element, Array("<failure xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>".utf8)), Self.streamEnd],
            to: .client
        )
    }

    private static let errorName: StaticString = "stream:error"
    private static let declaration = "<?xml version='1.0'?>"

    /// The opening of a stream to the client.
    func header() -> [Said] {
        var writer = XMLWriter()
        writer.start(
            "stream:stream",
            xmlns: "jabber:client",
            [
                "xmlns:stream": "http://etherx.jabber.org/streams", "id": "xmpptap-\(number)", "from": info.domain,
                "version": "1.0",
            ]
        )
        writer.text("")
        return [(.declaration, Array(Self.declaration.utf8)), (.streamOpen, writer.take())]
    }

    private static func streamError(_ condition: StreamErrorCondition, _ text: String) -> [UInt8] {
        XMLWriter.bytes { xml in
            xml.element("\(errorName)") {
                $0.element(condition.rawValue, xmlns: "urn:ietf:params:xml:ns:xmpp-streams")
                $0.element("text", xmlns: "urn:ietf:params:xml:ns:xmpp-streams", ["xml:lang": "en"]) { $0.text(text) }
            }
        }
    }

    // MARK: Ends

    /// Ends both legs in order, each with a FIN.
    mutating func finishLegs() {
        outlet.end(.client)
        outlet.end(.server)
        finish(reset: false)
    }

    /// Ends both legs after all queued writes.
    mutating func finish(reset: Bool) {
        guard negotiation.finish() else { return }
        outlet.end(reset: reset)
    }

    /// Ends the session of a client that has begun TLS, with a fatal alert.
    mutating func alert(_ alert: HandshakeAlert) {
        outlet.answer([0x15, 3, 1, 0, 2, 2, alert.rawValue], to: .client)
        finishLegs()
    }

    /// Breaks both connections, as a rule requires.
    mutating func breakOff() {
        if info.ending == nil { info.ending = .tap(condition: StreamErrorCondition.undefinedCondition.rawValue) }
        finish(reset: true)
    }

    /// Whether the client has a stream from xmpptap or the server.
    var clientHasStream: Bool { negotiation.asymmetric?.clientHasStream ?? (directions.recv.decoder.epoch > 0) }

    /// Whether the server has received the client's stream opening.
    var serverHasStream: Bool {
        negotiation.asymmetric?.reachesServer != false && directions.send.decoder.epoch > 0
    }

    /// The limit that applies to items of a direction.
    func itemLimit(_ direction: Direction) -> SessionCounters.Limit {
        let isOfLogin = directions[direction].limits.itemBytes == options.unauthenticatedLimits.itemBytes
        return isOfLogin && info.opened == nil ? .loginItem : .item
    }

    /// The time in nanoseconds for a refused client to open its stream, in which it receives the stream error.
    static let answerTime: Int64 = 10_000_000_000
}
