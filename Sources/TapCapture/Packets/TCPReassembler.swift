internal import TapRecord
internal import XMPPCore

/// Puts the segments of TCP connections in order (RFC 9293 §3.4).
///
/// If segments overlap, the bytes captured first are used. Bytes that the receiver has acknowledged and that were not
/// captured are a hole, which is reported at its place before later bytes. Sequence numbers wrap, connections may have
/// begun before the capture, and ports may be used again.
struct TCPReassembler {
    /// A connection: a later one has a larger number.
    typealias Number = UInt64
    /// Bytes that come next, and who reads them.
    typealias Next = (number: Number, direction: Direction, reader: PacketConnection)

    enum Event {
        /// A connection was seen for the first time. `isWhole`: with its beginning.
        case opened(client: PacketEndpoint, server: PacketEndpoint, isWhole: Bool)
        /// The next bytes.
        case data(Direction, [UInt8])
        /// So many bytes were not captured.
        case hole(Direction, UInt64)
        /// One end has said that it sends nothing more.
        case ended(Direction)
        /// The connection is over: one end has reset it, or both have ended it.
        case closed(byReset: Direction?)
        /// Nothing more is known of it: the capture has ended, or too many connections are open.
        case lost
    }

    /// Segments that wait for one before them, a direction; more make what is missing a hole.
    private static let mostWaiting = 1_024
    /// The same, in bytes.
    private static let mostWaitingBytes = 1 << 20
    /// Packets and nanoseconds that acknowledged bytes may still come after: packets are not always captured in order.
    private static let patience: (packets: UInt64, time: Int64) = (16, 1_000_000_000)
    /// Connections that are followed. Beyond them some are given up at once, since to find them takes a look at all: forgotten
    /// ones first, then the longest silent.
    static let mostConnections = 16_384
    static let givenUpAtOnce = 1024

    /// Connections that are over and remembered; beyond them all are forgotten.
    private static let mostOver = 4096
    /// Bytes before the end of a direction that may come again.
    private static let mostRepeated = 1 << 24

    private struct Key: Hashable {
        let hash: UInt64
        let one: PacketEndpoint
        let other: PacketEndpoint

        /// The same for both directions.
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

    /// A direction. A class, like the connection: instances are modified in place and never copied.
    private final class Side {
        /// The sequence number of its beginning; nil if that was not captured.
        var first: UInt32?
        /// The next byte's sequence number; nil before the first segment.
        var next: UInt32?
        var waiting: [(sequence: UInt32, bytes: [UInt8], cut: Int)] = []
        var waitingBytes = 0
        /// The packet and the time at which the first of them began to wait.
        var since: (packet: UInt64, time: Timestamp)?
        /// The other end's acknowledgement number.
        var acknowledged: UInt32?
        /// The smallest acknowledgement number that the other end sent before its own first byte: the sequence number of
        /// this end's first byte, if its SYN was not captured.
        var firstAcknowledged: UInt32?
        /// The sequence number of the first data, if the beginning was not captured before it.
        var joinedAt: UInt32?
        /// The sequence number of its end.
        var end: UInt32?
        var hasEnded = false
    }

    private final class Connection {
        let number: Number
        let key: Key
        let client: PacketEndpoint
        let server: PacketEndpoint
        /// Whether its first captured segment has SYN: the other end's SYN may still follow.
        let isWhole: Bool
        let send = Side()
        let recv = Side()
        var packets: UInt64 = 0
        var lastPacket: UInt64 = 0
        /// Nobody wants its bytes.
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

        subscript(direction: Direction) -> Side { direction == .send ? send : recv }

        /// Discards waiting segments.
        func clear() {
            send.waiting = []
            recv.waiting = []
        }
    }

    private var indices: [Key: Int] = [:]
    /// Where connections were found by the lowest bits of their hashes: of most segments that is where theirs is.
    private var usual = [UInt16](repeating: 0, count: 1024)
    /// The last sequence numbers of both ends of closed connections: retransmissions do not begin another connection.
    private var over: [Key: (one: UInt32, other: UInt32)] = [:]
    private var connections: [Connection] = []
    private var free: [Int] = []
    private var packets: UInt64 = 0
    /// The connection of the last segment.
    private var latest: Int?
    private var events = Outputs<(number: Number, event: Event)>()
    private let serverPorts: Set<UInt16>

    /// - Parameter serverPorts: Ports at which servers are, to tell the client of a connection that had begun before.
    init(serverPorts: Set<UInt16> = TCPReassembler.knownPorts) { self.serverPorts = serverPorts }

    /// Returns the next event; nil until another segment has been taken.
    mutating func next() -> (number: Number, event: Event)? { events.next() }

    /// Takes the next segment of an open connection in order, which is the usual case; nil leaves it to
    /// ``take(_:_:at:as:)``.
    ///
    /// - Returns: Whose bytes they are: they are the next ones, and not copied.
    @inline(__always)
    mutating func takeNext(_ segment: TCPSegment, _ count: Int) -> Next? {
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

    /// Has ``takeNext(_:_:)`` name the reader of a connection, if the last segment was of it.
    func attach(_ reader: PacketConnection, to number: Number) {
        guard let latest, connections[latest].number == number else { return }
        connections[latest].reader = reader
    }

    /// Takes a segment; ``next()`` returns the events.
    ///
    /// - Parameter number: That of a connection that begins with it; nil is the number of segments so far.
    mutating func take(
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

    /// Skips later bytes of the last segment's connection, if it has this number.
    mutating func forget(_ number: Number) {
        guard let latest, connections[latest].number == number else { return }
        connections[latest].isForgotten = true
        connections[latest].reader = nil
        connections[latest].clear()
    }

    /// Ends the packets: ``next()`` returns the waiting bytes.
    mutating func finish() {
        for index in indices.values.sorted(by: { connections[$0].number < connections[$1].number }) {
            flush(connections[index])
            close(index, .lost)
        }
    }

    // MARK: Connections

    /// Returns the index of a segment's connection, if it was found last with these bits of the hash, and the
    /// direction.
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

    /// Returns the index of an open connection.
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
        // Data after the end of a connection does not begin another, nor does a retransmission of its last segment.
        let length = bytes.count + segment.cut
        let mayBegin = length > 0 && !segment.flags.contains(.fin) && !isRepeated(segment, length, key)
        guard segment.flags.contains(.syn) || mayBegin else { return nil }
        over[key] = nil
        if indices.count >= Self.mostConnections { giveUpOldest() }
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

    /// Whether the segment begins another connection between the same ends.
    private func isNew(_ segment: TCPSegment, _ index: Int) -> Bool {
        guard segment.flags.contains(.syn), !segment.flags.contains(.acknowledges) else { return false }
        let direction: Direction = segment.source == connections[index].client ? .send : .recv
        let side = connections[index][direction]
        // The same again is one whose answer was late.
        if side.first == segment.sequence { return false }
        // Captured behind its answer, or behind the data that follow it.
        let next = segment.sequence &+ 1
        return side.first != nil || (side.joinedAt ?? side.firstAcknowledged) != next
    }

    /// Whether a connection that is over had sent such bytes.
    private func isRepeated(_ segment: TCPSegment, _ length: Int, _ key: Key) -> Bool {
        guard let ends = over[key] else { return false }
        let end = segment.source == key.one ? ends.one : ends.other
        let distance = Self.distance(from: end, to: segment.sequence &+ UInt32(truncatingIfNeeded: length))
        return distance <= 0 && distance > -Self.mostRepeated
    }

    /// Which end has opened a connection: by its first segment, else by the ports that servers have.
    private func isFromClient(_ segment: TCPSegment) -> Bool {
        if segment.flags.contains(.syn) { return !segment.flags.contains(.acknowledges) }
        let (source, destination) = (segment.source.port, segment.destination.port)
        switch (serverPorts.contains(source), serverPorts.contains(destination)) {
        case (false, true): return true
        case (true, false): return false
        default: return source >= destination
        }
    }

    /// The ports of XMPP's servers: clients, clients by TLS, servers, servers by TLS, components.
    static let knownPorts: Set<UInt16> = [5222, 5223, 5269, 5270, 5275, 5347]

    /// Several at a time: to find only one for each that begins would take long.
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
            if over.count >= Self.mostOver { over.removeAll(keepingCapacity: true) }
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
        if side.end != nil { noteEnd(direction, connection) }
    }

    private static func acknowledge(_ number: UInt32, _ side: Side) {
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
        // Behind those that begin at the same place: of these the first counts.
        let at = side.waiting.firstIndex { Self.distance(from: sequence, to: $0.sequence) > 0 }
        side.waiting.insert((sequence, copy, cut), at: at ?? side.waiting.endIndex)
        side.waitingBytes += bytes.count
        if side.since == nil { side.since = (connection.packets, time) }
    }

    /// Gives bytes in their place, without those at their beginning that were there before.
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

    /// Gives what waits, up to the first byte that is missing.
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

    /// Makes a hole of missing bytes that will not arrive.
    private mutating func giveUpMissing(
        _ direction: Direction,
        _ connection: Connection,
        _ time: Timestamp
    ) {
        let side = connection[direction]
        while let first = side.waiting.first, let since = side.since {
            // Without the SYN, nothing before it may be missing.
            let isAcknowledged =
                side.next == nil || side.acknowledged.map { Self.distance(from: first.sequence, to: $0) >= 0 } ?? false
            let isOld =
                connection.packets &- since.packet >= Self.patience.packets
                || time.nanoseconds &- since.time.nanoseconds >= Self.patience.time
            let isFull = side.waiting.count > Self.mostWaiting || side.waitingBytes > Self.mostWaitingBytes
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

    /// Gives all that waits, with holes before it.
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
                noteEnd(direction, connection)
            }
        }
    }

    private mutating func noteEnd(_ direction: Direction, _ connection: Connection) {
        let side = connection[direction]
        guard !side.hasEnded, let end = side.end, let next = side.next, Self.distance(from: next, to: end) <= 0 else {
            return
        }
        side.hasEnded = true
        give(connection, .ended(direction))
    }

    /// The distance of a number after another, modulo 2^32: negative if it is before it.
    private static func distance(from one: UInt32, to other: UInt32) -> Int { Int(Int32(bitPattern: other &- one)) }
}
