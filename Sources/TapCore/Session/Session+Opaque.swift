internal import TapRecord
import XMPPCore

// Bytes that are not decoded: TLS passed through, malformed streams, and other protocols.
extension Session {
    /// Checks the first bytes of a leg for TLS.
    mutating func lookAtFirstBytes(_ direction: Direction, _ bytes: Span<UInt8>) {
        guard direction == .send, bytes[0] == 0x16, !performs(TLSPolicy.refuseDirectTLS(&context)) else { return }
        guard case .refusing(let condition, _) = context.negotiation else { return beginTLS(directly: true) }
        beginTLS(directly: true)
        lookIntoOpaque(direction, bytes)
        context.info.ending = .tap(condition: condition.rawValue)
        context.alert(HandshakeAlert(condition))
    }

    /// Handles bytes that are forwarded undecoded: reads the clear part of TLS, and computes a digest of other bytes.
    mutating func lookIntoOpaque(_ direction: Direction, _ bytes: Span<UInt8>) {
        guard case .opaque(let why, _) = context.directions[direction].mode else { return }
        guard why != .tls else { return lookIntoTLS(direction, bytes) }
        if context.options.redaction.showsRawBytes { return showBytes(direction, bytes, why) }
        if context.directions[direction].digest == nil {
            context.directions[direction].digest = context.run.makeByteDigest()
        }
        context.directions[direction].digest?.update(bytes)
    }

    private mutating func lookIntoTLS(_ direction: Direction, _ bytes: Span<UInt8>) {
        guard let result = context.negotiation.passedTLS?.read(direction, bytes) else { return }
        var record = context.makeRecord(.tls, .info, part: .tls)
        record.direction = direction
        record.leg = direction.source
        if case .opaque(_, let from) = context.directions[direction].mode { record.offset = from }
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
        context.emit(consume record)
        if case .hello(let hello) = result { ChosenDomain.refuseOtherName(hello, &context) }
    }

    /// Records the bytes themselves, if the user allows raw bytes.
    private mutating func showBytes(_ direction: Direction, _ bytes: Span<UInt8>, _ why: DirectionRelay.Opacity) {
        var record = context.makeRecord(.bytes, .verbose, part: .session)
        record.direction = direction
        record.leg = direction.source
        record.offset = context.directions[direction].received - UInt64(bytes.count)
        record.length = UInt64(bytes.count)
        record.code = why.code
        var copy: [UInt8] = []
        copy.append(bytes)
        record.bytes = copy
        context.emit(consume record)
    }

    /// The code of a record of TLS that is passed through.
    static let tlsBeganCode = "tls-began"

    /// Switches both directions to TLS that is passed through.
    mutating func beginTLS(directly: Bool) {
        context.negotiation.turnOpaque(PassedTLS())
        let at = context.directions.send.decoder.position
        var record = context.makeRecord(.tls, .info, part: .tls)
        record.code = Self.tlsBeganCode
        let what: Prose = directly ? "direct TLS" : "TLS from byte \(at) of the client"
        // In an observed session, nothing was passed through.
        record.message = context.options.isObserved ? what : "\(what.clause), passed through without decryption"
        context.emit(consume record)
        context.finishStep(
            .tls,
            .skipped(
                context.options.isObserved ? "the rest is not decrypted" : "passed through; the rest is not decrypted"
            ),
            details: ["begins": directly ? "directly" : "starttls"]
        )
        turnOpaque(.send, .tls)
        turnOpaque(.recv, .tls)
    }

    /// Records the undecoded bytes at the end of the session.
    mutating func recordOpaqueBytes(_ direction: Direction) {
        guard case .opaque(let why, let from) = context.directions[direction].mode,
            context.directions[direction].received > from
        else {
            return
        }
        let isTLS = why == .tls
        // Late bytes of an ordinary logout are not reported at info.
        let level = why == .ended ? Level.verbose : .info
        guard level <= context.options.level else { return }
        var record = context.makeRecord(isTLS ? .tls : .bytes, level, part: isTLS ? .tls : .session)
        record.direction = direction
        record.leg = direction.source
        record.offset = from
        record.length = context.directions[direction].received - from
        record.code = isTLS ? "tls-passed" : why.code
        record.message =
            isTLS
            ? "\(record.length) bytes of TLS \(context.options.isObserved ? "not decrypted" : "passed through")"
            : "\(record.length) bytes \(context.drops(why) ? "dropped without decoding" : "relayed without decoding")"
        record.digest = context.takeDigest(direction)
        context.emit(consume record)
    }
}
