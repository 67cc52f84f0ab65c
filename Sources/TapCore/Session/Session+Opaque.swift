import XMPPCore

// Bytes that are not decoded: TLS passed through, what cannot be parsed, and what is no XMPP at all.
extension Session {
    /// The very first bytes of a leg decide whether they are XMPP.
    mutating func lookAtFirstBytes(_ direction: Direction, _ bytes: Span<UInt8>) {
        guard direction == .send, bytes[0] == 0x16 else { return }
        turnOpaque(.send, .tls)
        turnOpaque(.recv, .tls)
        phase = .opaque
        noteTLSBegan(directly: true)
    }

    /// Bytes that pass undecoded: of TLS what it says in clear is read, of all else a digest is kept.
    mutating func lookIntoOpaque(_ direction: Direction, _ bytes: Span<UInt8>) {
        guard case .opaque(let why) = pipes[direction].mode, why != .tls else { return }
        if options.redaction.showsRawBytes { return showBytes(direction, bytes, why) }
        if pipes[direction].digest == nil { pipes[direction].digest = run.makeByteDigest() }
        pipes[direction].digest?.update(bytes)
    }

    /// The bytes themselves, for a user who asked to see all.
    private mutating func showBytes(_ direction: Direction, _ bytes: Span<UInt8>, _ why: Pipe.Opacity) {
        var record = makeRecord(.bytes, .verbose, part: .session)
        record.direction = direction
        record.leg = direction.source
        record.offset = pipes[direction].forwarded
        record.length = UInt64(bytes.count)
        record.code = why.code
        var copy: [UInt8] = []
        copy.append(bytes)
        record.bytes = copy
        emit(record)
    }

    mutating func noteTLSBegan(directly: Bool) {
        let at = pipes.send.opaqueFrom ?? 0
        var record = makeRecord(.tls, .info, part: .tls)
        record.code = "tls-began"
        record.message =
            directly
            ? "TLS from the first byte on; it is passed through and cannot be read"
            : "TLS begins at byte \(at) from the client; it is passed through and cannot be read"
        emit(record)
    }

    /// What passed undecoded, told when the session ends.
    mutating func recordOpaqueBytes(_ direction: Direction) {
        guard case .opaque(let why) = pipes[direction].mode, let from = pipes[direction].opaqueFrom,
            pipes[direction].received > from
        else { return }
        let isTLS = why == .tls
        var record = makeRecord(isTLS ? .tls : .bytes, .info, part: isTLS ? .tls : .session)
        record.direction = direction
        record.leg = direction.source
        record.offset = from
        record.length = pipes[direction].received - from
        record.code = isTLS ? "tls-passed" : why.code
        record.message =
            isTLS ? "\(record.length) bytes of TLS passed through" : "\(record.length) bytes passed on unread"
        record.digest = takeDigest(direction)
        emit(record)
    }

    /// The digest of the bytes since it was begun, in hexadecimal; nil where none was.
    mutating func takeDigest(_ direction: Direction) -> String? {
        defer { pipes[direction].digest = nil }
        guard let bytes = try? pipes[direction].digest?.finalize() else { return nil }
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }

    /// Runs the digest over bytes of an item that is not kept.
    mutating func digest(_ direction: Direction, isFirst: Bool) {
        if isFirst { pipes[direction].digest = run.makeByteDigest() }
        guard let digest = pipes[direction].digest else { return }
        digest.update(pipes.bytes(direction))
    }
}
