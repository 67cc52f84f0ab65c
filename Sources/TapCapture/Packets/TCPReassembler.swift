internal import TapRecord
internal import XMPPCore

/// Puts the segments of TCP connections in order (RFC 9293 §3.4).
///
/// If segments overlap, the bytes captured first are used. Bytes that the receiver has acknowledged but that were not
/// captured are a hole, which is reported before the bytes that follow it. Sequence numbers may wrap, connections may
/// have begun before the capture, and ports may be reused.
struct TCPReassembler {
    /// The number of a connection. A later connection has a larger number.
    typealias Number = UInt64
    /// The connection, the direction and the reader of a segment's bytes.
    typealias Next = (number: Number, direction: Direction, reader: PacketConnection)

    enum Event {
        /// A connection was seen for the first time. `isWhole`: its beginning was captured.
        case opened(client: PacketEndpoint, server: PacketEndpoint, isWhole: Bool)
        /// The next bytes.
        case data(Direction, [UInt8])
        /// A number of bytes that were not captured.
        case hole(Direction, UInt64)
        /// One end has finished sending (FIN).
        case ended(Direction)
        /// The connection is over: the sender of a direction has reset it, or both ends have finished sending (nil).
        case closed(byReset: Direction?)
        /// Nothing more is known of the connection: the capture has ended, too many connections are open, or another
        /// one has the same endpoints.
        case lost
    }

    /// Maximum number of segments in a direction that wait for missing bytes. If there are more, the missing bytes
    /// become a hole.
    private static let maximumWaiting = 1_024
    /// Maximum bytes of the waiting segments in a direction.
    private static let maximumWaitingBytes = 1 << 20
    /// Number of packets, and time in nanoseconds, for which acknowledged bytes may still arrive: packets are not
    /// always captured in order.
    private static let reorderingTolerance: (packets: UInt64, time: Int64) = (16, 1_000_000_000)
    /// Maximum number of connections that are followed. If it is reached, ``givenUpAtOnce`` connections are given up
    /// together, because the search for the oldest examines all connections: forgotten ones first, then those silent
    /// for the longest time.
    static let maximumConnections = 16_384
    static let givenUpAtOnce = 1024

    /// Maximum number of closed connections that are remembered. If it is reached, all of them are forgotten.
    private static let maximumOver = 4096
    /// Maximum distance in bytes before the end of a direction at which a segment counts as a retransmission.
    private static let maximumRepeated = 1 << 24

    private struct Key: Hashable {
        let hash: UInt64
        let one: PacketEndpoint
        let other: PacketEndpoint

        /// Creates the key of a segment's connection, the same for both directions.
        @inline(__always)
        init(_ segment: TCPSegment) {
            hash = segment.connectionHash
            let (source, destination) = (segment.source, segment.destination)
            let isForward =
                (source.high, source.low, source.port) <= (destination.high, destination.low, destination.port)
            (one, other) = isForward ? (source, destination) : (destination, source)
        }

        func hash(into hasher: inout Hasher) { hasher.combine(hash) }
    }

    /// A direction of a connection. A class, like ``Connection``: instances are modified in place and never copied.
    private final class HalfConnection {
        /// The sequence number of the SYN; nil if it was not captured.
        var first: UInt32?
        /// The next byte's sequence number; nil before the first segment.
        var next: UInt32?
        var waiting: [(sequence: UInt32, bytes: [UInt8], cut: Int)] = []
        var waitingBytes = 0
        /// The packet count of the connection and the time when segments began to wait; nil if none waits.
        var since: (packet: UInt64, time: Timestamp)?
        /// The largest acknowledgement number that the other end has sent.
        var acknowledged: UInt32?
        /// The smallest acknowledgement number that the other end sent before its own first byte. If this end's SYN was
        /// not captured, this is the sequence number of its first byte.
        var firstAcknowledged: UInt32?
        /// The sequence number of the first captured data, if no SYN was captured before them.
        var joinedAt: UInt32?
        /// The sequence number after the last byte; nil before the FIN.
        var end: UInt32?
        var hasEnded = false
    }

    private final class Connection {
        let number: Number
        let key: Key
        let client: PacketEndpoint
        let server: PacketEndpoint
        /// Whether the first captured segment has SYN. The SYN of the other end may still follow.
        let isWhole: Bool
        let send = HalfConnection()
        let recv = HalfConnection()
        var packets: UInt64 = 0
        var lastPacket: UInt64 = 0
        /// Whether later bytes are skipped.
        var isForgotten = false
        var isClosed = false
        var reader: PacketConnection?

        init(number: Number, key: Key, client: PacketEndpoint, isWhole: Bool) {
            self.number = number
            self.key = key
            self.client = client
            self.isWhole = isWhole
            server = key.one == client ? key.other : key.one
        }

        subscript(direction: Direction) -> HalfConnection { direction == .send ? send : recv }

        /// Discards waiting segments.
        func clear() {
            send.waiting = []
            recv.waiting = []
        }
    }

    private var indices: [Key: Int] = [:]
    /// The index of the connection found last for each value of a hash's 10 lowest bits. Most segments belong to that
    /// connection.
    private var usual = [UInt16](repeating: 0, count: 1024)
    /// The sequence numbers after the last bytes of closed connections, by which retransmissions are recognised: these
    /// do not begin another connection.
    private var over: [Key: (one: UInt32, other: UInt32)] = [:]
    private var connections: [Connection] = []
    private var free: [Int] = []
    private var packets: UInt64 = 0
    /// The connection of the last segment.
    private var latest: Int?
    private var events = Outputs<(number: Number, event: Event)>()
    private let serverPorts: Set<UInt16>

    /// - Parameter serverPorts: Ports of servers. They identify the client of a connection whose beginning was not
    ///   captured.
    init(serverPorts: Set<UInt16> = TCPReassembler.knownPorts) { self.serverPorts = serverPorts }

    /// Returns the next event; nil until another segment has been taken.
    mutating func next() -> (number: Number, event: Event)? { events.next() }

    /// Processes a segment that is the next one of an open connection, which is the usual case. Otherwise returns nil, and
    /// the segment must be passed to ``process(_:_:at:as:)``.
    ///
    /// - Returns: The connection and the reader of the bytes, which are not copied.
    @inline(__always)
    mutating func processNext(_ segment: TCPSegment, _ count: Int) -> Next? {
        guard count > 0, segment.cut == 0, segment.flags.isSubset(of: [.acknowledges, .push]) else { return nil }
        guard let (index, direction) = findUsual(segment) ?? findAnew(segment) else { return nil }
        let connection = connections[index]
        let (side, other) = (connection[direction], connection[direction.opposite])
        guard side.next == segment.sequence, side.end == nil, side.waiting.isEmpty, other.waiting.isEmpty,
            let reader = connection.reader
        else { return nil }
        packets += 1
        latest = index
        connection.lastPacket = packets
        connection.packets += 1
        if segment.flags.contains(.acknowledges) { Self.acknowledge(segment.acknowledgement, other) }
        side.next = segment.sequence &+ UInt32(truncatingIfNeeded: count)
        return (connection.number, direction, reader)
    }

    /// Sets the reader that ``processNext(_:_:)`` returns for a connection, if the last segment belongs to the connection.
    func attach(_ reader: PacketConnection, to number: Number) {
        guard let latest, connections[latest].number == number else { return }
        connections[latest].reader = reader
    }

    /// Processes a segment; ``next()`` returns the events.
    ///
    /// - Parameter number: The number of the connection, if the segment begins one; nil uses the number of segments
    ///   so far.
    mutating func process(
        _ segment: TCPSegment,
        _ bytes: Span<UInt8>,
        at time: Timestamp,
        as number: Number? = nil
    ) {
        packets += 1
        guard let index = self.index(of: segment, bytes, number ?? packets) else { return }
        let connection = connections[index]
        connection.lastPacket = packets
        connection.packets += 1
        let direction: Direction = segment.source == connection.client ? .send : .recv
        receive(segment, bytes, direction, connection, time)
        if connection.send.hasEnded, connection.recv.hasEnded {
            close(index, .closed(byReset: nil))
        } else if segment.flags.contains(.reset) {
            flush(connection)
            close(index, .closed(byReset: direction))
        }
    }

    /// Skips later bytes of a connection, if the last segment belongs to the connection.
    mutating func forget(_ number: Number) {
        guard let latest, connections[latest].number == number else { return }
        connections[latest].isForgotten = true
        connections[latest].reader = nil
        connections[latest].clear()
    }

    /// Ends all connections, because there are no more packets. ``next()`` then returns the waiting bytes.
    mutating func finish() {
        for index in indices.values.sorted(by: { connections[$0].number < connections[$1].number }) {
            flush(connections[index])
            close(index, .lost)
        }
    }

    // MARK: Connections

    /// Returns the index of a segment's connection and the direction, if it is the connection found last for these bits
    /// of the hash; otherwise nil.
    @inline(__always)
    private func findUsual(_ segment: TCPSegment) -> (index: Int, direction: Direction)? {
        let index = Int(usual[Int(truncatingIfNeeded: segment.connectionHash & 1023)])
        guard index < connections.count, !connections[index].isClosed else { return nil }
        let (client, server) = (connections[index].client, connections[index].server)
        if segment.source == client, segment.destination == server { return (index, .send) }
        return segment.source == server && segment.destination == client ? (index, .recv) : nil
    }

    private mutating func findAnew(_ segment: TCPSegment) -> (index: Int, direction: Direction)? {
        guard let index = find(Key(segment)) else { return nil }
        return (index, segment.source == connections[index].client ? .send : .recv)
    }

    /// Returns the index of an open connection; nil if there is none.
    @inline(__always)
    private mutating func find(_ key: Key) -> Int? {
        let slot = Int(truncatingIfNeeded: key.hash & 1023)
        let index = Int(usual[slot])
        if index < connections.count, !connections[index].isClosed, connections[index].key == key { return index }
        guard let index = indices[key] else { return nil }
        usual[slot] = UInt16(truncatingIfNeeded: index)
        return index
    }

    private mutating func index(
        of segment: TCPSegment,
        _ bytes: Span<UInt8>,
        _ number: Number
    ) -> Int? {
        let key = Key(segment)
        if let found = find(key) {
            guard isNew(segment, found) else {
                latest = found
                return found
            }
            flush(connections[found])
            close(found, .lost)
        }
        // Neither data after the end of a connection nor a retransmission of its last segment begins another
        // connection.
        let length = bytes.count + segment.cut
        let mayBegin = length > 0 && !segment.flags.contains(.fin) && !isRepeated(segment, length, key)
        guard segment.flags.contains(.syn) || mayBegin else { return nil }
        over[key] = nil
        if indices.count >= Self.maximumConnections { giveUpOldest() }
        let isClient = isFromClient(segment)
        let isWhole = segment.flags.contains(.syn)
        let connection = Connection(
            number: number,
            key: key,
            client: isClient ? segment.source : segment.destination,
            isWhole: isWhole
        )
        let index: Int
        if let place = free.popLast() {
            connections[place] = connection
            index = place
        } else {
            connections.append(connection)
            index = connections.count - 1
        }
        indices[key] = index
        latest = index
        let server = isClient ? segment.destination : segment.source
        give(connection, .opened(client: connection.client, server: server, isWhole: isWhole))
        return index
    }

    /// Returns whether a segment begins another connection between the same ends.
    private func isNew(_ segment: TCPSegment, _ index: Int) -> Bool {
        guard segment.flags.contains(.syn), !segment.flags.contains(.acknowledges) else { return false }
        let direction: Direction = segment.source == connections[index].client ? .send : .recv
        let side = connections[index][direction]
        // A SYN with the same number is a retransmission: its answer was late.
        if side.first == segment.sequence { return false }
        // The SYN of this connection may have been captured after its answer, or after the data that follow it.
        let next = segment.sequence &+ 1
        return side.first != nil || (side.joinedAt ?? side.firstAcknowledged) != next
    }

    /// Returns whether a segment's bytes are a retransmission in a connection that is over.
    private func isRepeated(_ segment: TCPSegment, _ length: Int, _ key: Key) -> Bool {
        guard let ends = over[key] else { return false }
        let end = segment.source == key.one ? ends.one : ends.other
        let distance = Self.distance(from: end, to: segment.sequence &+ UInt32(truncatingIfNeeded: length))
        return distance <= 0 && distance > -Self.maximumRepeated
    }

    /// Returns whether the client has sent a segment: decided by its SYN, otherwise by the ports of servers, otherwise
    /// by the larger port.
    private func isFromClient(_ segment: TCPSegment) -> Bool {
        if segment.flags.contains(.syn) { return !segment.flags.contains(.acknowledges) }
        let (source, destination) = (segment.source.port, segment.destination.port)
        switch (serverPorts.contains(source), serverPorts.contains(destination)) {
        case (false, true): return true
        case (true, false): return false
        default: return source >= destination
        }
    }

    /// The usual ports of XMPP servers: for clients, clients with direct TLS, servers, servers with direct TLS, and
    /// components.
    static let knownPorts: Set<UInt16> = [5222, 5223, 5269, 5270, 5275, 5347]

    /// Gives up several connections at once: a search for each new connection would take too long.
    private mutating func giveUpOldest() {
        func age(_ index: Int) -> (Int, UInt64) {
            (connections[index].isForgotten ? 0 : 1, connections[index].lastPacket)
        }
        let oldest = indices.values.sorted { age($0) < age($1) }
        for index in oldest.prefix(Self.givenUpAtOnce) {
            flush(connections[index])
            close(index, .lost)
        }
    }

    private mutating func close(_ index: Int, _ event: Event) {
        let connection = connections[index]
        give(connection, event)
        let key = connection.key
        indices[key] = nil
        if case .closed = event, let send = connection.send.next, let recv = connection.recv.next {
            if over.count >= Self.maximumOver { over.removeAll(keepingCapacity: true) }
            over[key] = connection.client == key.one ? (send, recv) : (recv, send)
        }
        connection.clear()
        connection.reader = nil
        connection.isClosed = true
        free.append(index)
        latest = nil
    }

    private mutating func give(_ connection: Connection, _ event: Event) { events.append((connection.number, event)) }

    // MARK: Bytes

    private mutating func receive(
        _ segment: TCPSegment,
        _ bytes: Span<UInt8>,
        _ direction: Direction,
        _ connection: Connection,
        _ time: Timestamp
    ) {
        let side = connection[direction]
        guard !connection.isForgotten else {
            if segment.flags.contains(.fin) { side.hasEnded = true }
            return
        }
        var sequence = segment.sequence
        if segment.flags.contains(.syn) {
            sequence &+= 1
            if side.next == nil {
                side.first = segment.sequence
                side.next = sequence
                drain(direction, connection)
            }
        }
        if segment.flags.contains(.acknowledges) {
            let other = connection[direction.opposite]
            Self.acknowledge(segment.acknowledgement, other)
            if other.next == nil, let first = side.first, sequence == first &+ 1 {
                let earlier = other.firstAcknowledged ?? segment.acknowledgement
                let isEarlier = Self.distance(from: earlier, to: segment.acknowledgement) < 0
                other.firstAcknowledged = isEarlier ? segment.acknowledgement : earlier
            }
        }
        let length = bytes.count + segment.cut
        if length > 0 {
            if side.next == nil, !connection.isWhole {
                side.next = sequence
                side.joinedAt = sequence
            }
            if side.next == nil, let first = side.firstAcknowledged, Self.distance(from: first, to: sequence) >= 0 {
                side.next = first
            }
            place(sequence, bytes, segment.cut, direction, connection, time)
        }
        if segment.flags.contains(.fin) {
            if side.next == nil, !connection.isWhole { side.next = sequence }
            side.end = sequence &+ UInt32(truncatingIfNeeded: length)
        }
        // Missing bytes of the other direction may be given up because of this segment.
        if !connection.send.waiting.isEmpty { giveUpMissing(.send, connection, time) }
        if !connection.recv.waiting.isEmpty { giveUpMissing(.recv, connection, time) }
        if side.end != nil { reportEnd(direction, connection) }
    }

    private static func acknowledge(_ number: UInt32, _ side: HalfConnection) {
        if let known = side.acknowledged, distance(from: known, to: number) <= 0 { return }
        side.acknowledged = number
    }

    private mutating func place(
        _ sequence: UInt32,
        _ bytes: Span<UInt8>,
        _ cut: Int,
        _ direction: Direction,
        _ connection: Connection,
        _ time: Timestamp
    ) {
        let side = connection[direction]
        let distance = side.next.map { Self.distance(from: $0, to: sequence) }
        if let distance, distance <= 0 {
            deliver(bytes, cut, overlap: -distance, direction, connection)
            if !side.waiting.isEmpty { drain(direction, connection) }
            return
        }
        var copy: [UInt8] = []
        copy.append(bytes)
        // After segments with the same sequence number, because the bytes captured first are used.
        let at = side.waiting.firstIndex { Self.distance(from: sequence, to: $0.sequence) > 0 }
        side.waiting.insert((sequence, copy, cut), at: at ?? side.waiting.endIndex)
        side.waitingBytes += bytes.count
        if side.since == nil { side.since = (connection.packets, time) }
    }

    /// Outputs bytes of a segment, except the first `overlap` ones, which were output before.
    private mutating func deliver(
        _ bytes: Span<UInt8>,
        _ cut: Int,
        overlap: Int,
        _ direction: Direction,
        _ connection: Connection
    ) {
        let side = connection[direction]
        guard overlap < bytes.count + cut else { return }
        if overlap < bytes.count {
            var copy: [UInt8] = []
            copy.append(bytes.extracting(droppingFirst: overlap))
            give(connection, .data(direction, copy))
        }
        let missing = overlap > bytes.count ? cut - (overlap - bytes.count) : cut
        if missing > 0 { give(connection, .hole(direction, UInt64(missing))) }
        let length = UInt32(truncatingIfNeeded: bytes.count + cut - overlap)
        side.next = (side.next ?? 0) &+ length
    }

    /// Outputs the waiting segments up to the first missing byte.
    private mutating func drain(_ direction: Direction, _ connection: Connection) {
        let side = connection[direction]
        var taken = 0
        let waiting = side.waiting
        for segment in waiting {
            guard let next = side.next else { break }
            let distance = Self.distance(from: next, to: segment.sequence)
            guard distance <= 0 else { break }
            deliver(segment.bytes.span, segment.cut, overlap: -distance, direction, connection)
            side.waitingBytes -= segment.bytes.count
            taken += 1
        }
        side.waiting.removeFirst(taken)
        if side.waiting.isEmpty { side.since = nil }
    }

    /// Reports a hole in place of missing bytes that will not arrive.
    private mutating func giveUpMissing(
        _ direction: Direction,
        _ connection: Connection,
        _ time: Timestamp
    ) {
        let side = connection[direction]
        while let first = side.waiting.first, let since = side.since {
            // Without the SYN it is unknown whether bytes are missing before the first segment, so no acknowledgement
            // is needed.
            let isAcknowledged =
                side.next == nil || side.acknowledged.map { Self.distance(from: first.sequence, to: $0) >= 0 } ?? false
            let isOld =
                connection.packets &- since.packet >= Self.reorderingTolerance.packets
                || time.nanoseconds &- since.time.nanoseconds >= Self.reorderingTolerance.time
            let isFull = side.waiting.count > Self.maximumWaiting || side.waitingBytes > Self.maximumWaitingBytes
            guard isAcknowledged && isOld || isFull else { return }
            skipToWaiting(direction, connection)
            if !side.waiting.isEmpty { side.since = (connection.packets, time) }
        }
    }

    private mutating func skipToWaiting(_ direction: Direction, _ connection: Connection) {
        let side = connection[direction]
        guard let first = side.waiting.first else { return }
        let missing = side.next.map { Self.distance(from: $0, to: first.sequence) } ?? 0
        if missing > 0 { give(connection, .hole(direction, UInt64(missing))) }
        side.next = first.sequence
        drain(direction, connection)
    }

    /// Outputs all waiting segments, with holes before them.
    private mutating func flush(_ connection: Connection) {
        guard !connection.isForgotten else { return }
        for direction in [Direction.send, .recv] {
            let side = connection[direction]
            while !side.waiting.isEmpty { skipToWaiting(direction, connection) }
            side.next = side.next ?? side.end
            if let end = side.end, let next = side.next {
                let missing = Self.distance(from: next, to: end)
                if missing > 0 { give(connection, .hole(direction, UInt64(missing))) }
                side.next = end
                reportEnd(direction, connection)
            }
        }
    }

    private mutating func reportEnd(_ direction: Direction, _ connection: Connection) {
        let side = connection[direction]
        guard !side.hasEnded, let end = side.end, let next = side.next, Self.distance(from: next, to: end) <= 0 else {
            return
        }
        side.hasEnded = true
        give(connection, .ended(direction))
    }

    /// Returns the distance from one sequence number to another, modulo 2^32; negative if the other is before it.
    private static func distance(from one: UInt32, to other: UInt32) -> Int { Int(Int32(bitPattern: other &- one)) }
}
