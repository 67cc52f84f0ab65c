internal import TapDiagnosis
package import TapRecord
internal import XMPPCore

/// Converts the sessions of a recording to packets in a pcapng file, for Wireshark and the filters of tcpdump.
///
/// Each session becomes one TCP connection from the client to port 5222 of the server, with a handshake, at least one
/// segment for each item, and a FIN or RST, at the times of the records. The exported streams are those inside TLS:
/// items before TLS, and STARTTLS itself, are left out, because Wireshark treats everything after `<proceed/>` as TLS.
/// The interface of a packet is the leg on which xmpptap received or sent the item. A packet has a comment if a rule
/// acted on its item, or if xmpptap sent the item. A session over WebSocket has a handshake on port 80, and one frame for
/// each item.
///
/// Pass the entries of a recording in order to ``add(_:)``, and write ``takeBytes()`` after each.
package struct PacketExport {
    /// Number of items left out because their XML was not recorded, or only a part of it.
    package private(set) var missing: UInt64 = 0

    private var file: PcapngWriter
    private var runs = RunNumbers()
    private var connections: [RunNumbers.Session: Connection] = [:]

    /// Creates a file without sessions.
    ///
    /// - Parameter tool: The name of the writing program, which is noted in the file.
    package init(tool: String) { file = PcapngWriter(tool: tool) }

    /// Removes and returns the bytes to write next. The file's header comes first.
    package mutating func takeBytes() -> [UInt8] { file.takeBytes() }

    /// Number of bytes that ``takeBytes()`` returns.
    package var waitingBytes: Int { file.count }

    /// Handles a header: the records that follow belong to its run.
    package mutating func add(_ header: RecordHeader) { runs.add(header) }

    /// Processes the next record.
    package mutating func add(_ line: RecordLine) {
        let record = line.record
        guard record.session > 0 else { return }
        let key = runs.session(of: record)
        // The connection is removed from the dictionary while it changes, because it would be copied otherwise.
        var connection = connections.removeValue(forKey: key) ?? Connection(key, record)
        switch record.code {
        case LoginStep.code: connection.readServer(record)
        case Record.Code.webSocketOpened:
            if let path = record.details?["path"]?.text { connection.path = path }
        case Record.Code.tlsOpened: connection.waiting.removeAll { $0.record.leg == record.leg }
        case Record.Code.sessionEnded:
            writeHeld(&connection)
            file.end(connection, record)
            return
        default:
            if Self.isExchanged(record) { add(line, &connection) }
        }
        connections[key] = connection
    }

    /// Writes the items that are still held: there are no more records. A session whose end was not recorded stays
    /// open.
    package mutating func finish() {
        for key in connections.keys.sorted(by: { ($0.run, $0.number) < ($1.run, $1.number) }) {
            guard var connection = connections[key] else { continue }
            writeHeld(&connection)
        }
        connections = [:]
    }

    /// Returns whether a record is an item that the client and the server exchanged. Excluded are STARTTLS, and the
    /// negotiation that xmpptap performs with the server on behalf of the client.
    private static func isExchanged(_ record: Record) -> Bool {
        switch record.kind {
        case .stanza: return true
        case .element where record.part == .tls: return false
        case .declaration, .streamOpen, .element, .streamClose:
            return record.leg != .server || record.origin == .peer && record.action != Record.answered
        // White space between items has no meaning, and after it Wireshark would wait for the rest of a stanza.
        case .whitespace, .session, .tls, .bytes, .note, .error, .chunk, .frame: return false
        }
    }

    /// Maximum number of records of a session that are held until it is known whether TLS begins.
    private static let maximumWaiting = 64

    private mutating func add(_ line: RecordLine, _ connection: inout Connection) {
        let record = line.record
        guard record.direction != nil, let xml = record.xml, !xml.isEmpty, !record.isTruncated else {
            missing += 1
            return
        }
        guard !connection.isSettled else { return write(line, &connection) }
        connection.waiting.append(line)
        let isHeader = record.kind == .streamOpen || record.kind == .declaration
        guard record.direction == .send && !isHeader || connection.waiting.count >= Self.maximumWaiting else { return }
        writeHeld(&connection)
    }

    /// Writes the held records, once TLS can no longer begin.
    private mutating func writeHeld(_ connection: inout Connection) {
        connection.isSettled = true
        for line in connection.waiting { write(line, &connection) }
        connection.waiting = []
    }

    private mutating func write(_ line: RecordLine, _ connection: inout Connection) {
        guard let direction = line.record.direction, let xml = line.record.xml else { return }
        file.begin(&connection)
        file.send(
            line.content.span.slice(xml),
            direction,
            connection: &connection,
            at: line.record.time,
            on: line.record.leg ?? direction.source,
            isOut: line.record.origin == .tap,
            comment: Self.comment(line)
        )
    }

    /// Returns the packet comment for an item: what xmpptap did with it; nil if it passed unchanged.
    private static func comment(_ line: RecordLine) -> String? {
        let record = line.record
        var text = record.origin == .tap ? "sent by xmpptap" : record.action
        if let rule = record.rule { text = "\(text ?? "matched"), rule \(rule)" }
        if record.code == "inferred" { text = record.message.map { "\($0)" } }
        guard let edited = record.edited else { return text }
        return "\(text ?? "edited"); sent on as: \(line.content.span.slice(edited).string())"
    }
}

extension PacketExport {
    /// A session as a TCP connection.
    struct Connection {
        /// The name of the session, used as the comment on the first packet.
        let name: String
        let began: Timestamp
        var client: PacketEndpoint
        var server: PacketEndpoint
        /// The next sequence number of the client.
        var sent: UInt32
        /// The next sequence number of the server.
        var received: UInt32
        var hasBegun = false
        /// Whether the session is a WebSocket.
        let isFramed: Bool
        /// The path of the request for the WebSocket.
        var path = "/"
        /// Whether it has been determined if TLS begins. Records are held until then.
        var isSettled = false
        /// Records held until it is known whether TLS begins.
        var waiting: [RecordLine] = []

        init(_ key: RunNumbers.Session, _ first: Record) {
            name = "session \(key.number)" + (key.run > 1 ? " of run \(key.run)" : "")
            began = first.time
            // Programs would take a SYN for a retransmission if an earlier one between the same ends had the same
            // sequence number.
            sent = UInt32(truncatingIfNeeded: (UInt64(clamping: key.run) << 16 &+ key.number) &* 0x9E37_79B1)
            received = ~sent
            // Unknown addresses are replaced by addresses for documentation (RFC 5737).
            // A capture does not contain the HTTP of BOSH: such items are exported as those of a WebSocket.
            isFramed = first.details?[Record.Detail.transport] != nil
            server = PacketEndpoint(high: 0, low: 0xC000_0201, port: isFramed ? 80 : 5222, isIPv6: false)
            client =
                first.remote.flatMap { PacketEndpoint($0) }
                ?? PacketEndpoint(
                    high: 0,
                    low: 0xC633_6401 + key.number / 0x4000 % 0xFF,
                    port: UInt16(0xC000 + key.number % 0x4000),
                    isIPv6: false
                )
        }

        /// Reads the server's address from the details of a login step, if it has one.
        mutating func readServer(_ step: Record) {
            guard !hasBegun, let address = step.details?["address"]?.text, let found = PacketEndpoint(address) else {
                return
            }
            server = found
            // Wireshark uses this port to recognise the protocol, and to tell the server from the client.
            server.port = isFramed ? 80 : 5222
        }

        /// Whether the packets are IPv6. Both directions use the same address family.
        var isIPv6: Bool { client.isIPv6 || server.isIPv6 }
    }
}

extension PacketEndpoint {
    /// Parses an address in the form that records use: `192.0.2.1:40000` or `[2001:db8::1]:40000`; nil if it is
    /// invalid.
    init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else {
            return nil
        }
        let host = text[..<colon]
        guard host.hasPrefix("["), host.hasSuffix("]") else {
            let parts = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
            guard parts.count == 4 else { return nil }
            var low: UInt64 = 0
            for part in parts {
                guard let part else { return nil }
                low = low << 8 | UInt64(part)
            }
            self.init(high: 0, low: low, port: port, isIPv6: false)
            return
        }
        // Packets do not contain the zone of an address.
        let address = host.dropFirst().dropLast().prefix { $0 != "%" }
        guard let groups = Self.groups(address) else { return nil }
        func half(_ part: ArraySlice<UInt16>) -> UInt64 { part.reduce(0) { $0 << 16 | UInt64($1) } }
        self.init(high: half(groups[..<4]), low: half(groups[4...]), port: port, isIPv6: true)
    }

    /// Parses the eight groups of an IPv6 address (RFC 4291 §2.2); nil if it is invalid.
    private static func groups(_ text: Substring) -> [UInt16]? {
        let halves = text.split(separator: "::", omittingEmptySubsequences: false)
        guard (1...2).contains(halves.count) else { return nil }
        var parts: [[UInt16]] = []
        for half in halves {
            var groups: [UInt16] = []
            for word in half.split(separator: ":", omittingEmptySubsequences: false) where !half.isEmpty {
                guard word.count <= 4, let group = UInt16(word, radix: 16) else { return nil }
                groups.append(group)
            }
            parts.append(groups)
        }
        let count = parts.reduce(0) { $0 + $1.count }
        guard parts.count == 2 ? count < 8 : count == 8 else { return nil }
        return parts[0] + [UInt16](repeating: 0, count: 8 - count) + (parts.count == 2 ? parts[1] : [])
    }

    /// Returns the bytes of the address in a packet. If `inIPv6`, an IPv4 address is mapped (RFC 4291 §2.5.5.2).
    fileprivate func address(inIPv6: Bool) -> [UInt8] {
        func bytes(_ number: UInt64, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: number >> UInt64(8 * (count - 1 - $0))) }
        }
        guard inIPv6 else { return bytes(low, 4) }
        return isIPv6
            ? bytes(high, 8) + bytes(low, 8) : [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF] + bytes(low, 4)
    }
}

/// Writes sessions as packets of TCP connections.
struct PcapngWriter {
    /// Maximum bytes of an item in one packet: 65,535 (the maximum of IPv4) minus 40 for the headers.
    static let segmentSize = 65_495
    /// Maximum number of bytes by which a segment is shortened so that it does not end in ">".
    private static let maximumRunLength = 1024
    /// Maximum bytes of a comment; its length field has 16 bits.
    private static let commentSize = 60_000

    private var blocks: PcapngBlocks

    init(tool: String) {
        blocks = PcapngBlocks(tool: tool)
        for leg in [Leg.client, .server] {
            // LINKTYPE_RAW: a packet begins with IP.
            blocks.addInterface(
                link: 101,
                name: "\(leg.name)",
                description: "between xmpptap and the \(leg.name)"
            )
        }
    }

    var count: Int { blocks.count }

    mutating func takeBytes() -> [UInt8] { blocks.takeBytes() }

    // MARK: Connections

    /// Adds the handshake of a connection, unless it was added before.
    mutating func begin(_ connection: inout PacketExport.Connection) {
        guard !connection.hasBegun else { return }
        connection.hasBegun = true
        let (at, comment) = (connection.began, connection.name)
        packet([], .send, &connection, at, .client, flags: .syn, comment: comment)
        packet([], .recv, &connection, at, .client, flags: [.syn, .acknowledges])
        packet([], .send, &connection, at, .client, flags: .acknowledges)
        guard connection.isFramed else { return }
        for (direction, head) in Self.handshake(connection.path) {
            packet(Array(head.utf8), direction, &connection, at, .client, flags: [.push, .acknowledges])
        }
    }

    /// Returns the heads of a handshake (RFC 6455 §1.2), with the key of the example there: the original was not
    /// recorded.
    private static func handshake(_ path: String) -> [(Direction, String)] {
        let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n"
        return [
            (
                .send,
                "GET \(path) HTTP/1.1\r\nHost: server.example\r\n\(upgrade)Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                    + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: xmpp\r\n\r\n"
            ),
            (
                .recv,
                "HTTP/1.1 101 Switching Protocols\r\n\(upgrade)Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
                    + "Sec-WebSocket-Protocol: xmpp\r\n\r\n"
            ),
        ]
    }

    /// Adds the end of a connection: RST if the session's last record states a reset, otherwise FIN from both ends.
    mutating func end(_ connection: PacketExport.Connection, _ record: Record) {
        guard connection.hasBegun else { return }
        var connection = connection
        let leg = record.leg ?? .client
        let isReset = record.details?["close_reason"]?.text == "reset"
        let comment = record.message.map { "\($0)" }
        packet(
            [],
            leg.inbound,
            &connection,
            record.time,
            leg,
            flags: isReset ? [.reset, .acknowledges] : [.fin, .acknowledges],
            comment: comment
        )
        guard !isReset else { return }
        packet([], leg.inbound.opposite, &connection, record.time, leg.other, flags: [.fin, .acknowledges])
        packet([], leg.inbound, &connection, record.time, leg, flags: .acknowledges)
    }

    /// Adds the segments of an item.
    mutating func send(
        _ item: Span<UInt8>,
        _ direction: Direction,
        connection: inout PacketExport.Connection,
        at time: Timestamp,
        on leg: Leg,
        isOut: Bool,
        comment: String?
    ) {
        guard !connection.isFramed else {
            var frame: [UInt8] = []
            WebSocketFrameWriter.append(
                message: item,
                as: direction == .send ? .client(maskKey: 0) : .server,
                to: &frame
            )
            for start in stride(from: 0, to: frame.count, by: Self.segmentSize) {
                let part = Array(frame[start..<min(frame.count, start + Self.segmentSize)])
                let comment = start == 0 ? comment : nil
                packet(
                    part,
                    direction,
                    &connection,
                    time,
                    leg,
                    flags: [.push, .acknowledges],
                    isOut: isOut,
                    comment: comment
                )
            }
            return
        }
        var start = 0
        while start < item.count {
            var end = min(item.count, start + Self.segmentSize)
            // Wireshark takes a segment that ends in ">" for the end of a stanza, so the segment is cut before such
            // bytes. That is not possible within a long run of ">".
            var cut = end
            while end < item.count, cut > end - Self.maximumRunLength, item[cut - 1] == 0x3E { cut -= 1 }
            if cut > end - Self.maximumRunLength { end = cut }
            let part = item.extracting(start..<end)
            packet(
                part.withUnsafeBufferPointer { Array($0) },
                direction,
                &connection,
                time,
                leg,
                flags: [.push, .acknowledges],
                isOut: isOut,
                comment: start == 0 ? comment : nil
            )
            start = end
        }
    }

    // MARK: Packets

    private mutating func packet(
        _ payload: [UInt8],
        _ direction: Direction,
        _ connection: inout PacketExport.Connection,
        _ time: Timestamp,
        _ leg: Leg,
        flags: TCPSegment.Flags,
        isOut: Bool = false,
        comment: String? = nil
    ) {
        let isSend = direction == .send
        let (from, to) = isSend ? (connection.client, connection.server) : (connection.server, connection.client)
        let isIPv6 = connection.isIPv6
        let (source, destination) = (from.address(inIPv6: isIPv6), to.address(inIPv6: isIPv6))
        var segment: [UInt8] = []
        segment.reserveCapacity(20 + payload.count)
        segment.appendBig16(from.port)
        segment.appendBig16(to.port)
        segment.appendBig32(isSend ? connection.sent : connection.received)
        segment.appendBig32(
            flags.contains(.acknowledges) ? isSend ? connection.received : connection.sent : 0
        )
        segment += [0x50, flags.rawValue, 0xFF, 0xFF, 0, 0, 0, 0]
        segment += payload
        let length = UInt32(segment.count)
        var sum = Checksum()
        sum.add(source)
        sum.add(destination)
        sum.add([0, 6])
        sum.add([UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length)])
        sum.add(segment)
        segment.replaceSubrange(16..<18, with: sum.bytes)

        var head: [UInt8] = []
        if isIPv6 {
            head += [0x60, 0, 0, 0]
            head.appendBig16(UInt16(truncatingIfNeeded: length))
            head += [6, 64]
            head += source + destination
        } else {
            head += [0x45, 0]
            head.appendBig16(UInt16(truncatingIfNeeded: length + 20))
            head += [0, 0, 0x40, 0, 64, 6, 0, 0]
            head += source + destination
            var sum = Checksum()
            sum.add(head)
            head.replaceSubrange(10..<12, with: sum.bytes)
        }
        blocks.addPacket(
            interface: leg == .client ? 0 : 1,
            at: time,
            originalLength: head.count + segment.count,
            head.span,
            segment.span
        ) { block in
            if let comment {
                block.option(1, Array(String(decoding: comment.utf8.prefix(Self.commentSize), as: UTF8.self).utf8))
            }
            // epb_flags: 1 if xmpptap received the packet on that leg, 2 if it sent the packet.
            block.option(2, [isOut ? 2 : 1, 0, 0, 0])
            block.endOptions()
        }
        let advance = UInt32(payload.count) + (flags.isDisjoint(with: [.syn, .fin]) ? 0 : 1)
        if isSend { connection.sent &+= advance } else { connection.received &+= advance }
    }
}

/// The checksum of IP and TCP (RFC 1071).
private struct Checksum {
    private var sum: UInt64 = 0

    /// Adds bytes. Their offset in the data of the checksum must be even.
    mutating func add(_ bytes: [UInt8]) {
        let span = bytes.span
        var index = 0
        while index + 1 < span.count {
            sum += UInt64(span.number16(at: index))
            index += 2
        }
        if index < span.count { sum += UInt64(span[index]) << 8 }
    }

    var bytes: [UInt8] {
        var folded = sum
        while folded > 0xFFFF { folded = folded & 0xFFFF + folded >> 16 }
        let result = ~UInt16(truncatingIfNeeded: folded)
        return [UInt8(result >> 8), UInt8(result & 0xFF)]
    }
}

extension [UInt8] {
    fileprivate mutating func appendBig16(_ number: UInt16) {
        append(UInt8(number >> 8))
        append(UInt8(number & 0xFF))
    }
    fileprivate mutating func appendBig32(_ number: UInt32) {
        appendBig16(UInt16(number >> 16))
        appendBig16(UInt16(number & 0xFFFF))
    }
}
