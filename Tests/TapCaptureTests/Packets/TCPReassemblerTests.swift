import TapRecord
import TapTestKit
import Testing

@testable import TapCapture

@Suite("TCP reassembly")
struct TCPReassemblerTests {
    /// The output of a connection, in the order of each direction.
    private struct Heard {
        var bytes: [Direction: [UInt8]] = [.send: [], .recv: []]
        var holes: [Direction: UInt64] = [.send: 0, .recv: 0]
        /// Bytes and holes before each end.
        var ended: Set<Direction> = []
        var opened = 0
        var closed = 0
        var isLost = false
        /// Where holes stand: how many bytes came before each.
        var places: [Direction: [Int]] = [.send: [], .recv: []]

        mutating func take(_ event: TCPReassembler.Event) {
            switch event {
            case .opened: opened += 1
            case .data(let direction, let bytes): self.bytes[direction]? += bytes
            case .hole(let direction, let count):
                holes[direction]? += count
                places[direction]?.append(bytes[direction]?.count ?? 0)
            case .ended(let direction): ended.insert(direction)
            case .closed: closed += 1
            case .lost: isLost = true
            }
        }
    }

    private var reassembler = TCPReassembler()
    private var clock: Int64 = 0

    private static func endpoint(_ end: PacketBuilder.End) -> PacketEndpoint {
        PacketEndpoint(high: 0, low: end.address.reduce(0) { $0 << 8 | UInt64($1) }, port: end.port, isIPv6: false)
    }

    private mutating func take(
        _ direction: Direction,
        _ sequence: UInt32,
        ack: UInt32? = nil,
        _ flags: TCPSegment.Flags = [],
        _ bytes: [UInt8] = [],
        cut: Int = 0,
        after: Int64 = 1_000
    ) {
        clock += after
        let (client, server) = (Self.endpoint(.client), Self.endpoint(.server))
        let segment = TCPSegment(
            source: direction == .send ? client : server,
            destination: direction == .send ? server : client,
            sequence: sequence,
            acknowledgement: ack ?? 0,
            flags: ack == nil ? flags : flags.union(.acknowledges),
            cut: cut
        )
        reassembler.process(segment, bytes.span, at: Timestamp(nanoseconds: clock))
    }

    private mutating func heard() -> Heard {
        var heard = Heard()
        while let (_, event) = reassembler.next() { heard.take(event) }
        return heard
    }

    @Test("Only the end of a forgotten connection is returned")
    mutating func forgotten() {
        take(.send, 10, .syn)
        take(.recv, 20, ack: 11, .syn)
        take(.send, 11, ack: 21, [], [1, 2])
        _ = heard()
        reassembler.forget(1)
        take(.send, 13, ack: 21, [], [3])
        take(.send, 20, ack: 21, [], [4])
        take(.recv, 21, ack: 14, .fin, [5])
        take(.send, 14, ack: 23, .fin)
        // The last segment once more.
        take(.recv, 21, ack: 14, .fin, [5])
        let heard = heard()
        #expect(heard.opened == 0)
        #expect(heard.bytes[.send] == [] && heard.bytes[.recv] == [] && heard.closed == 1)
        #expect(heard.holes[.send] == 0 && heard.ended.isEmpty && !heard.isLost)
        // The ports are used again.
        take(.send, 500, .syn)
        take(.send, 501, ack: 1, [], [6])
        #expect(self.heard().bytes[.send] == [6])
    }

    @Test("A complete connection is returned, even if sequence numbers wrap around")
    mutating func whole() {
        take(.send, .max - 2, .syn)
        take(.recv, 100, ack: .max - 1, .syn)
        take(.send, .max - 1, ack: 101, [], [1, 2, 3, 4])
        take(.recv, 101, ack: 2, [], [9])
        take(.send, 2, ack: 102, .fin)
        take(.recv, 102, ack: 3, .fin)
        let heard = heard()
        #expect(heard.bytes == [.send: [1, 2, 3, 4], .recv: [9]])
        #expect(heard.ended == [.send, .recv])
        #expect((heard.opened, heard.closed) == (1, 1))
        #expect(heard.holes == [.send: 0, .recv: 0])
    }

    @Test("The first data received wins where segments overlap")
    mutating func overlap() {
        take(.send, 1, .syn)
        take(.send, 4, ack: 1, [], [4, 5, 6])
        take(.send, 3, ack: 1, [], [30, 40])
        take(.send, 2, ack: 1, [], [2, 3, 44, 55])
        take(.send, 2, ack: 1, [], [20, 30, 40, 50, 60, 7])
        #expect(heard().bytes[.send] == [2, 3, 44, 55, 6, 7])
    }

    @Test("A keep-alive segment adds no data")
    mutating func keepAlive() {
        take(.send, 1, .syn)
        take(.send, 2, ack: 1, [], [1, 2])
        take(.send, 3, ack: 1, [], [0])
        take(.send, 3, ack: 1, [])
        take(.send, 4, ack: 1, [], [3])
        #expect(heard().bytes[.send] == [1, 2, 3])
    }

    @Test("Acknowledged bytes that were not captured become a hole")
    mutating func hole() {
        take(.send, 1, .syn)
        take(.send, 2, ack: 1, [], [1, 2])
        take(.send, 9, ack: 1, [], [8, 9])
        #expect(heard().bytes[.send] == [1, 2])
        // It may still come, until the other end has it and some time has passed.
        take(.recv, 1, ack: 11, [])
        #expect(heard().holes[.send] == 0)
        take(.recv, 1, ack: 11, [], after: 2_000_000_000)
        let heard = heard()
        #expect(heard.holes[.send] == 5)
        #expect(heard.bytes[.send] == [8, 9])
    }

    @Test("For a connection without its beginning, the server is the end with an XMPP port")
    mutating func midway() throws {
        take(.recv, 500, ack: 70, [], [5])
        take(.send, 70, ack: 501, [], [6])
        var events: [TCPReassembler.Event] = []
        while let (_, event) = reassembler.next() { events.append(event) }
        guard case .opened(let client, let server, false) = try #require(events.first) else {
            Issue.record("the first event is no opening without a beginning")
            return
        }
        #expect((client.port, server.port) == (40_000, 5222))
        var heard = Heard()
        for event in events { heard.take(event) }
        #expect(heard.bytes == [.send: [6], .recv: [5]])
    }

    @Test("A reset ends a connection, after all data still waiting")
    mutating func reset() {
        take(.send, 1, .syn)
        take(.send, 4, ack: 1, [], [4])
        take(.recv, 1, ack: 2, .reset)
        let heard = heard()
        #expect(heard.bytes[.send] == [4])
        #expect(heard.holes[.send] == 2)
        #expect(heard.closed == 1)
    }

    @Test("A new connection on reused ports is separate")
    mutating func again() {
        take(.send, 1, .syn)
        take(.recv, 1, ack: 2, .syn)
        take(.send, 2, ack: 2, [], [1])
        // A repeated first SYN does not open another connection.
        take(.send, 1, .syn)
        #expect(heard().opened == 1)
        take(.send, 5000, .syn)
        take(.send, 5001, ack: 1, [], [2])
        let second = heard()
        #expect(second.opened == 1)
        #expect(second.isLost)
        #expect(second.bytes[.send] == [2])
    }

    @Test("If there are too many connections, forgotten ones are dropped first")
    mutating func tooMany() {
        func segment(_ port: Int, _ flags: TCPSegment.Flags, _ bytes: [UInt8] = []) {
            var client = Self.endpoint(.client)
            client.low += UInt64(port >> 15)
            client.port = UInt16(port & 0x7FFF)
            reassembler.process(
                TCPSegment(
                    source: client,
                    destination: Self.endpoint(.server),
                    sequence: flags == .syn ? 1 : 2,
                    acknowledgement: 0,
                    flags: flags,
                    cut: 0
                ),
                bytes.span,
                at: Timestamp(nanoseconds: 0),
                as: UInt64(port)
            )
        }
        for port in 0..<TCPReassembler.maximumConnections {
            segment(port, .syn)
            if port >= 2_000 { reassembler.forget(UInt64(port)) }
        }
        _ = heard()
        segment(TCPReassembler.maximumConnections, .syn)
        var lost: [UInt64] = []
        while let (number, event) = reassembler.next() {
            if case .lost = event { lost.append(number) }
        }
        #expect(lost == Array(2_000..<2_000 + UInt64(TCPReassembler.maximumConnections / 16)))
        segment(0, [], [7])
        #expect(heard().bytes[.send] == [7])
    }

    @Test("Bytes that the capture cut off become a hole")
    mutating func cut() {
        take(.send, 1, .syn)
        take(.send, 2, ack: 1, [], [1, 2], cut: 3)
        take(.send, 7, ack: 1, [], [6])
        let heard = heard()
        #expect(heard.bytes[.send] == [1, 2, 6])
        #expect(heard.holes[.send] == 3)
        #expect(heard.places[.send] == [2])
    }

    @Test(
        "Segments in any order return ordered bytes, with holes only for missing ones",
        arguments: 0..<40
    )
    mutating func anyOrder(round: Int) {
        var generator = SeededGenerator(seed: UInt64(round))
        for _ in 0..<50 {
            reassembler = TCPReassembler()
            let isn = UInt32.random(in: .max - 300 ... .max, using: &generator)
            let content = (0..<Int.random(in: 1...400, using: &generator)).map { UInt8(truncatingIfNeeded: $0) }
            let losses = round % 2 == 0 ? 0 : Int.random(in: 0...3, using: &generator)
            var segments: [Range<Int>] = []
            var at = 0
            while at < content.count {
                let end = min(content.count, at + Int.random(in: 1...60, using: &generator))
                segments.append(at..<end)
                if Bool.random(using: &generator) { segments.append(max(0, at - 10)..<end) }
                at = end
            }
            // Late by a few places.
            for index in segments.indices {
                let other = min(segments.count - 1, index + Int.random(in: 0...3, using: &generator))
                segments.swapAt(index, other)
            }
            for _ in 0..<losses where segments.count > 1 {
                segments.remove(at: Int.random(in: segments.indices, using: &generator))
            }
            take(.send, isn, .syn)
            for range in segments {
                take(.send, isn &+ 1 &+ UInt32(range.lowerBound), ack: 1, [], Array(content[range]))
            }
            take(.send, isn &+ 1 &+ UInt32(content.count), ack: 1, .fin)
            take(.recv, 1, ack: isn &+ 2 &+ UInt32(content.count), .fin)
            reassembler.finish()
            let heard = heard()
            let present = Set(segments.flatMap { Array($0) })
            #expect(heard.bytes[.send] == content.indices.filter { present.contains($0) }.map { content[$0] })
            #expect(heard.holes[.send] == UInt64(content.count - present.count))
            #expect(heard.ended.contains(.send))
        }
    }

    @Test(
        "Reordered packets at the beginning are put in order, even before the SYN of the other end",
        arguments: 0..<40
    )
    mutating func beginningInAnyOrder(round: Int) {
        var generator = SeededGenerator(seed: UInt64(round))
        for _ in 0..<20 {
            reassembler = TCPReassembler()
            var packets:
                [(direction: Direction, sequence: UInt32, ack: UInt32?, flags: TCPSegment.Flags, bytes: [UInt8])] = [
                    (.send, 99, nil, .syn, []), (.recv, 499, 100, .syn, []), (.send, 100, 500, [], []),
                ]
            var content: [Direction: [UInt8]] = [.send: [], .recv: []]
            for turn in 0..<8 {
                let direction: Direction = turn % 2 == 0 ? .send : .recv
                let sent = UInt32(content[.send]?.count ?? 0)
                let received = UInt32(content[.recv]?.count ?? 0)
                let bytes = (0..<Int.random(in: 1...5, using: &generator)).map { UInt8(turn * 10 + $0) }
                packets.append(
                    direction == .send
                        ? (.send, 100 + sent, 500 + received, [], bytes)
                        : (.recv, 500 + received, 100 + sent, [], bytes)
                )
                content[direction]? += bytes
            }
            let places = packets.indices.map { ($0, $0 + Int.random(in: 0...4, using: &generator)) }
            // The first of both ends' SYN begins the connection.
            let order = [round % 2] + places.sorted { $0.1 < $1.1 }.map(\.0).filter { $0 != round % 2 }
            for index in order {
                let packet = packets[index]
                take(packet.direction, packet.sequence, ack: packet.ack, packet.flags, packet.bytes)
            }
            reassembler.finish()
            let heard = heard()
            #expect(heard.bytes == content, "\(order)")
            #expect(heard.holes == [.send: 0, .recv: 0] && heard.opened == 1)
        }
    }

    @Test("Random segments do not crash the reassembler, and its memory is bounded")
    mutating func hostile() {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<50_000 {
            take(
                Bool.random(using: &generator) ? .send : .recv,
                UInt32.random(in: .min ... .max, using: &generator),
                ack: Bool.random(using: &generator) ? UInt32.random(in: .min ... .max, using: &generator) : nil,
                TCPSegment.Flags(rawValue: UInt8.random(in: 0...7, using: &generator)),
                [UInt8](repeating: 1, count: Int.random(in: 0...50, using: &generator)),
                cut: Int.random(in: 0...3, using: &generator)
            )
            while reassembler.next() != nil {}
        }
        reassembler.finish()
    }

    @Test("Data repeated after a connection's end opens no connection, but newer data does")
    mutating func repeatedBehindTheEnd() {
        take(.send, 0, .syn)
        take(.recv, 100, ack: 1, .syn)
        take(.recv, 101, ack: 1, [], [1, 2, 3])
        take(.send, 1, ack: 104, .fin)
        take(.recv, 104, ack: 2, .fin)
        take(.recv, 101, ack: 2, .fin, [1, 2, 3])
        take(.recv, 101, ack: 2, [], [1])
        var heard = heard()
        #expect(heard.opened == 1 && heard.closed == 1 && heard.bytes[.recv] == [1, 2, 3])
        take(.recv, 105, ack: 2, [], [4])
        heard = self.heard()
        #expect(heard.opened == 1 && heard.bytes[.recv] == [4])
    }

    @Test("Beyond the maximum, the connections silent for longest are dropped, many at once")
    mutating func manyConnections() {
        func segment(_ number: Int) -> TCPSegment {
            var client = Self.endpoint(.client)
            client.low = UInt64(number)
            return TCPSegment(
                source: client,
                destination: Self.endpoint(.server),
                sequence: 0,
                acknowledgement: 0,
                flags: .syn,
                cut: 0
            )
        }
        func take(_ number: Int) {
            reassembler.process(segment(number), [UInt8]().span, at: Timestamp(nanoseconds: 0), as: UInt64(number))
        }
        for number in 0..<TCPReassembler.maximumConnections { take(number) }
        // The first one is not silent.
        take(0)
        #expect(heard().opened == TCPReassembler.maximumConnections)
        take(TCPReassembler.maximumConnections)
        var lost: [UInt64] = []
        while let (number, event) = reassembler.next() { if case .lost = event { lost.append(number) } }
        #expect(lost == Array(1...UInt64(TCPReassembler.givenUpAtOnce)))
    }
}
