internal import TapRecord
import XMPPCore

// Handles bytes that are not decoded: TLS that is passed through, malformed streams, and other protocols.
extension SessionContext {
    /// Stops decoding a direction. Pending and later bytes are forwarded unchanged.
    mutating func stopDecoding(_ direction: Direction, _ why: DirectionRelay.UndecodedReason) {
        guard !directions[direction].isOpaque else { return }
        // While an item is delayed, only the reason is stored: decoding stops when the item is released.
        if let rules, rules[direction].item != nil {
            rules[direction].item?.endWait(why)
            return
        }
        // While a request to resume waits, only the reason is stored too: decoding stops after the request.
        if direction == .send, endWaiting(why) { return }
        let position = directions[direction].position
        if why != .tls {
            let (sent, received) = (directions.send.received, directions.recv.received)
            login?.observe(
                direction == .send
                    ? .unread(sent: position, received: received) : .unread(sent: sent, received: position)
            )
        }
        let isForwarded = !drops(why)
        // Stanzas and acknowledgements of this direction can no longer be counted.
        if isForwarded { outlet.stopCounting() }
        if isForwarded, why != .tls { flushRest(direction) }
        let rest = directions[direction].copyPending()
        directions[direction].stopDecoding(why)
        if !rest.isEmpty { inspectUndecoded(direction, rest.span) }
        // The session has ended if the bytes are not TLS, and undecoded bytes must not be forwarded.
        if why == .tls, !negotiation.isFinished { flushRest(direction) }
    }

    /// Ends the wait of a request to resume, because its direction is not decoded after it; returns false if no request
    /// waits.
    mutating func endWaiting(_ why: DirectionRelay.UndecodedReason) -> Bool {
        guard streamManagement?.endWaiting(why) == true else { return false }
        directions.send.hasInput = true
        return true
    }

    /// Relays both directions without decoding them, from their first byte on. The login is not followed.
    mutating func relayBlind() {
        login = nil
        negotiation.stopDecoding(nil)
        for direction in Direction.allCases { directions[direction].stopDecoding(.blind) }
    }

    /// Checks the first bytes of a leg for TLS.
    mutating func inspectFirstBytes(_ direction: Direction, _ bytes: Span<UInt8>) {
        guard direction == .send, bytes[0] == 0x16, !options.isBlind, !TLSPolicy.refusesDirectTLS(&self) else { return }
        guard case .refusing(let condition, _) = negotiation else { return beginTLS(directly: true) }
        beginTLS(directly: true)
        inspectUndecoded(direction, bytes)
        info.ending = .tap(condition: condition.rawValue)
        alert(HandshakeAlert(condition))
    }

    /// Handles bytes that are forwarded undecoded: reads the unencrypted part of TLS, and computes a digest of other
    /// bytes.
    mutating func inspectUndecoded(_ direction: Direction, _ bytes: Span<UInt8>) {
        guard case .opaque(let why, _) = directions[direction].mode else { return }
        guard why != .tls else { return inspectTLS(direction, bytes) }
        guard why != .blind else { return }
        if options.redaction.showsRawBytes { return showBytes(direction, bytes, why) }
        if directions[direction].digest == nil {
            directions[direction].digest = run.makeByteDigest()
        }
        directions[direction].digest?.update(bytes)
    }

    private mutating func inspectTLS(_ direction: Direction, _ bytes: Span<UInt8>) {
        guard let result = negotiation.passedTLS?.read(direction, bytes) else { return }
        var record = makeRecord(.tls, .info, part: .tls)
        record.direction = direction
        record.leg = direction.source
        if case .opaque(_, let from) = directions[direction].mode { record.offset = from }
        switch result {
        case .needMore: break
        case .hello(let hello):
            record.code = "client-hello"
            record.message =
                "ClientHello for \(hello.serverName ?? "no server name"), up to \(ClientHello.name(ofVersion: hello.version))"
            record.tls = hello.details
        case .notTLS:
            record.level = .warn
            record.code = "not-tls"
            record.message = "what follows is not TLS"
        case .malformed(let reason):
            record.level = .warn
            record.code = "malformed-client-hello"
            record.message = "malformed ClientHello: \(reason)"
        }
        emit(consume record)
        switch result {
        case .hello(let hello): refuseOtherName(hello)
        case .notTLS where refusesUnread:
            report(
                .error,
                .error,
                code: "not-tls",
                "the client continued without TLS, in bytes that are not decoded; session closed",
                condition: .policyViolation,
                direction: direction,
                part: .tls
            )
            refuse(.policyViolation, "TLS was expected.")
        case .needMore, .notTLS, .malformed: break
        }
    }

    /// Records the bytes themselves. Used if the redaction policy shows raw bytes.
    private mutating func showBytes(_ direction: Direction, _ bytes: Span<UInt8>, _ why: DirectionRelay.UndecodedReason)
    {
        var record = makeRecord(.bytes, .verbose, part: .session)
        record.direction = direction
        record.leg = direction.source
        record.offset = directions[direction].received - UInt64(bytes.count)
        record.length = UInt64(bytes.count)
        record.code = why.code
        var copy: [UInt8] = []
        copy.append(bytes)
        record.bytes = copy
        emit(consume record)
    }

    /// The code of the record that reports TLS that is not decrypted.
    static let tlsBeganCode = "tls-began"

    /// Switches both directions to TLS that is passed through.
    mutating func beginTLS(directly: Bool) {
        negotiation.stopDecoding(PassedTLS())
        let at = directions.send.decoder.position
        var record = makeRecord(.tls, .info, part: .tls)
        record.code = Self.tlsBeganCode
        let what: Prose = directly ? "direct TLS" : "TLS from byte \(at) of the client"
        // In an observed session, xmpptap passed nothing through.
        record.message = options.isObserved ? what : "\(what.clause), passed through without decryption"
        emit(consume record)
        finishStep(
            .tls,
            .skipped(
                options.isObserved ? "the rest is not decrypted" : "passed through; the rest is not decrypted"
            ),
            details: ["begins": directly ? "directly" : "starttls"]
        )
        stopDecoding(.send, .tls)
        stopDecoding(.recv, .tls)
    }

    /// Records the bytes that were not decoded, at the end of the session.
    mutating func recordOpaqueBytes(_ direction: Direction) {
        guard case .opaque(let why, let from) = directions[direction].mode,
            directions[direction].received > from
        else {
            return
        }
        let isTLS = why == .tls
        // Bytes after the end of the stream are normal in a logout, so they are not recorded at level `info`.
        let level = why == .ended ? Level.verbose : .info
        guard level <= options.level else { return }
        var record = makeRecord(isTLS ? .tls : .bytes, level, part: isTLS ? .tls : .session)
        record.direction = direction
        record.leg = direction.source
        record.offset = from
        record.length = directions[direction].received - from
        record.code = isTLS ? "tls-passed" : why.code
        record.message =
            isTLS
            ? "\(record.length) bytes of TLS \(options.isObserved ? "not decrypted" : "passed through")"
            : "\(record.length) bytes \(drops(why) ? "dropped without decoding" : "relayed without decoding")"
        record.digest = takeDigest(direction)
        emit(consume record)
    }

    /// Returns whether two names are the same domain, ignoring case and comparing internationalized names in their
    /// ASCII form.
    static func isSame(_ domain: String, _ other: String) -> Bool {
        guard let one = Address(domain).jid, let two = Address(other).jid, two.isServer, two.isBare else {
            return false
        }
        return one.asciiDomain == two.asciiDomain
    }

    /// Refuses a ClientHello for a host of a domain other than the chosen one, with a TLS alert.
    mutating func refuseOtherName(_ hello: ClientHello) {
        guard let chosenDomain, !negotiation.isFinished, let name = hello.serverName,
            !Self.isSame(chosenDomain, name)
        else {
            return
        }
        login?.observe(
            .refused("the session is for \(chosenDomain), but the client's ClientHello names another host")
        )
        report(
            .error,
            .error,
            code: "host-unknown",
            "the session is for \(chosenDomain), TLS for \(name)",
            condition: .hostUnknown,
            direction: .send,
            part: .tls
        )
        info.ending = .tap(condition: StreamErrorCondition.hostUnknown.rawValue)
        alert(.unrecognizedName)
    }
}
