import Foundation
import Synchronization
import TapCore
import TapRecord
import TapSecurity
import TapTestKit
import Testing

@testable import TapCapture

@Suite("Key log and recording of a live capture")
struct LiveCaptureTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    private static func line(_ digit: Character) -> String {
        "CLIENT_RANDOM \(String(repeating: digit, count: 64)) \(String(repeating: "a", count: 96))\n"
    }

    private func append(_ text: String, to path: String) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seekToEnd()
        try file.write(contentsOf: Data(text.utf8))
        try file.close()
    }

    @Test("A key log is read as it grows, line by line")
    func growing() throws {
        let path = folder.path(of: "keys")
        let keys = try FollowedKeyLog(path)
        #expect(!keys.exists && keys.readOn().isEmpty)
        let (first, second) = (Self.line("1"), Self.line("2"))
        _ = try folder.write(first + second.prefix(20), to: "keys")
        #expect(keys.readOn() == Array(first.utf8) && keys.exists)
        #expect(keys.log.count == 1 && keys.readOn().isEmpty)
        try append(String(second.dropFirst(20)), to: path)
        #expect(keys.readOn() == Array(second.utf8) && keys.log.count == 2)
        #expect(keys.log.damagedLines == 0)
    }

    @Test("A key log that is emptied or replaced is read from its beginning")
    func replaced() throws {
        let path = try folder.write(Self.line("1") + Self.line("2"), to: "keys")
        let keys = try FollowedKeyLog(path)
        #expect(!keys.readOn().isEmpty)
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.truncate(atOffset: 0)
        try file.write(contentsOf: Data(Self.line("3").utf8))
        try file.close()
        #expect(keys.readOn() == Array(Self.line("3").utf8))
        let other = try folder.write(Self.line("4"), to: "other")
        #expect(rename(other, path) == 0)
        #expect(keys.readOn() == Array(Self.line("4").utf8) && keys.log.count == 4)
    }

    private static let packets: [[UInt8]] = [[1, 2, 3], [4], [], [5, 6, 7, 8]]

    private func record(to path: String, hasSecrets: Bool) throws -> PacketRecording {
        let recording = try PacketRecording(path, replaces: false, tool: "test", hasSecrets: hasSecrets)
        recording.begin("eth0", link: 1, captureLength: 262_144)
        for (index, packet) in Self.packets.enumerated() {
            let captured = CapturedPacket(
                time: Timestamp(nanoseconds: 1_700_000_000_000_000_001 + Int64(index)),
                link: .ethernet,
                originalLength: 9,
                number: 1
            )
            recording.add(captured, packet.span)
        }
        recording.add(secrets: Array(Self.line("1").utf8))
        recording.flush()
        return recording
    }

    @Test("Packets are written unchanged, after the TLS secrets if these are included", arguments: [true, false])
    func recording(hasSecrets: Bool) throws {
        let path = folder.path(of: "x.pcapng")
        let recording = try record(to: path, hasSecrets: hasSecrets)
        #expect(recording.fault == nil)
        let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        let content = try PacketBuilder.read(PcapngFile.init, bytes)
        #expect(content.fault == nil)
        #expect(content.packets.map(\.bytes) == Self.packets)
        #expect(content.packets.map(\.packet.link) == [.ethernet, .ethernet, .ethernet, .ethernet])
        #expect(content.packets.first?.packet.time.nanoseconds == 1_700_000_000_000_000_001)
        #expect(content.packets.allSatisfy { $0.packet.originalLength == 9 })
        #expect(content.keys == (hasSecrets ? [Array(Self.line("1").utf8)] : []))
        if hasSecrets {
            let secrets = try #require(bytes.firstRange(of: Self.line("1").utf8))
            let packet = try #require(bytes.firstRange(of: [1, 2, 3, 0]))
            #expect(secrets.lowerBound < packet.lowerBound)
        }
        #expect(throws: WriterFault.self) { try record(to: path, hasSecrets: false) }
    }

    @Test("A full disk stops the recording with a fault and does not throw")
    func diskFull() throws {
        let recording = try PacketRecording("/dev/full", replaces: true, tool: "test", hasSecrets: false)
        recording.begin("eth0", link: 1, captureLength: 0)
        #expect(recording.fault?.code == .diskFull)
        recording.flush()
    }

    // MARK: Secrets that come later than the packets

    private static func record(_ type: UInt8, _ bytes: [UInt8]) -> [UInt8] {
        [type, 3, 3] + PacketBuilder.big16(bytes.count) + bytes
    }

    private static func handshake(_ type: UInt8, _ body: [UInt8]) -> [UInt8] {
        record(0x16, [type, 0] + PacketBuilder.big16(body.count) + body)
    }

    /// TLS 1.3 up to the first record for which secrets are needed.
    private static let clientHello = handshake(
        1,
        [3, 3] + [UInt8](repeating: 7, count: 32) + [0, 0, 2, 0x13, 1, 1, 0, 0, 0]
    )
    private static let serverHello = handshake(
        2,
        [3, 3] + [UInt8](repeating: 8, count: 32) + [0, 0x13, 1, 0, 0, 6, 0, 0x2B, 0, 2, 3, 4]
    )
    private static let encrypted = record(0x17, [UInt8](repeating: 9, count: 1_000))

    /// A connection; its packets are given to a source one by one.
    private struct Connection {
        private static let packets = Atomic<UInt64>(0)

        var client: PacketBuilder.End
        var decoder = PacketDecoder()
        var sent: UInt32 = 1
        var received: UInt32 = 1

        mutating func send(_ bytes: [UInt8], _ source: inout PacketSource, flags: TCPSegment.Flags = []) {
            give(.client, bytes, flags, &source)
        }
        mutating func receive(_ bytes: [UInt8], _ source: inout PacketSource, flags: TCPSegment.Flags = []) {
            give(.server, bytes, flags, &source)
        }
        mutating func begin(_ source: inout PacketSource) {
            send([], &source, flags: .syn)
            receive([], &source, flags: .syn)
            send(LiveCaptureTests.clientHello, &source)
            receive(LiveCaptureTests.serverHello + LiveCaptureTests.encrypted, &source)
        }

        private mutating func give(
            _ leg: Leg,
            _ bytes: [UInt8],
            _ flags: TCPSegment.Flags,
            _ source: inout PacketSource
        ) {
            let isSent = leg == .client
            let (one, other) = isSent ? (client, .server) : (.server, client)
            let whole = PacketBuilder.tcp(
                one,
                other,
                sequence: isSent ? sent : received,
                acknowledgement: isSent ? (flags == .syn ? nil : received) : sent,
                flags: flags,
                bytes
            )
            let packet = PacketBuilder.version4(one, other, whole)
            let captured = CapturedPacket(
                time: Timestamp(nanoseconds: 1_700_000_000_000_000_000),
                link: .raw,
                originalLength: packet.count,
                number: 1
            )
            let count = UInt32(bytes.count) + (flags == .syn ? 1 : 0)
            if isSent { sent += count } else { received += count }
            guard let (segment, payload) = decoder.decode(captured, packet.span), case .range(let range) = payload
            else {
                return
            }
            let number = Self.packets.add(1, ordering: .relaxed).newValue
            source.process(segment, packet.span.extracting(range), at: decoder.now, as: number)
        }
    }

    /// Sessions that have begun, and how many said that they lack a secret.
    private static func told(_ source: inout PacketSource) -> (begun: Int, withoutSecret: Int) {
        var told = (begun: 0, withoutSecret: 0)
        while let input = source.next() {
            switch input.kind {
            case .began: told.begun += 1
            case .input(.remark(_, let code, _)) where code == "no-secret": told.withoutSecret += 1
            case .received, .recorded, .input: break
            }
        }
        return told
    }

    @Test("A connection waits for secrets until its buffer is full or the capture ends")
    func bounded() {
        var source = PacketSource(keys: KeyLog(), waits: true)
        var connection = Connection(client: .client)
        connection.begin(&source)
        for _ in 0..<64 { connection.receive(Self.encrypted, &source) }
        #expect(Self.told(&source) == (0, 0))
        for _ in 0..<2 { connection.send(Self.encrypted, &source) }
        #expect(Self.told(&source) == (1, 1))
        var other = Connection(client: .init(address: [192, 0, 2, 9], port: 1))
        other.begin(&source)
        #expect(Self.told(&source) == (0, 0))
        source.retrySecrets()
        #expect(Self.told(&source) == (0, 0))
        source.finish()
        #expect(Self.told(&source) == (1, 1))
    }

    @Test("If too many connections wait for secrets, the oldest continues without them")
    func tooManyWaiting() {
        var source = PacketSource(keys: KeyLog(), waits: true)
        for port in 1...PacketSource.maximumWaiting {
            var connection = Connection(client: .init(address: [192, 0, 2, 1], port: UInt16(port)))
            connection.begin(&source)
        }
        #expect(Self.told(&source) == (0, 0))
        var last = Connection(client: .init(address: [192, 0, 2, 9], port: 1))
        last.begin(&source)
        #expect(Self.told(&source) == (1, 1))
    }
}
