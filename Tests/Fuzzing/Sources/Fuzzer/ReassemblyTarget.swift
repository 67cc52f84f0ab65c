import TapCore
import TapRecord
import XMPPCore

@testable import TapCapture

/// Segments of one connection, lost, duplicated, truncated and out of order, compared with their stream.
///
/// Each byte is determined by its sender and sequence number, so that a misplaced byte is detected. An input is a mode,
/// the first sequence numbers of both directions, then segments of eight bytes: flags and direction, truncation,
/// position, length, acknowledgement and time.
enum ReassemblyTarget {
    static func run(_ input: [UInt8]) -> String? {
        var script = Script(input)
        // Without acknowledgements, ends and distant segments, all captured bytes are returned, and only the others are
        // missing.
        let isPlain = script.byte() & 1 == 0
        let base: [Direction: UInt32] = [.send: script.number32(), .recv: script.number32()]
        var reassembler = TCPReassembler()
        var model = ConnectionModel()
        var time: Int64 = 0
        while !script.isOver {
            let head = script.byte()
            let cut = head & 0x10 == 0 ? 0 : Int(script.byte())
            let place = script.number16()
            let length = Int(script.byte()) * (head & 0x40 == 0 ? 1 : 4)
            let acknowledged = script.number16()
            time += Int64(script.byte()) * 10_000_000
            let sender: Direction = head & 1 == 0 ? .send : .recv
            var flags: TCPSegment.Flags = head & 2 == 0 ? [] : [.syn]
            if !isPlain {
                if head & 4 != 0 { flags.insert(.fin) }
                if head & 0x80 != 0 { flags.insert(.reset) }
                if head & 8 != 0 { flags.insert(.acknowledges) }
            }
            // The SYN has the sequence number before the first byte.
            let offset = flags.contains(.syn) ? 0 : !isPlain && head & 0x20 != 0 ? place << 16 : place
            let sequence = (base[sender] ?? 0) &+ UInt32(truncatingIfNeeded: offset)
            let segment = TCPSegment(
                source: ConnectionModel.end(sender),
                destination: ConnectionModel.end(sender.opposite),
                sequence: sequence,
                acknowledgement: (base[sender.opposite] ?? 0) &+ UInt32(acknowledged),
                flags: flags,
                cut: cut
            )
            let payload = (0..<length).map { ConnectionModel.byte(sender, segment.firstByte &+ UInt32($0)) }
            reassembler.process(segment, payload.span, at: Timestamp(nanoseconds: time))
            if let contradiction = model.read(&reassembler, after: (segment, sender, length)) { return contradiction }
            if isPlain { model.note(segment, sender, length) }
        }
        reassembler.finish()
        return model.read(&reassembler, after: nil)
    }
}

extension TCPSegment {
    fileprivate var firstByte: UInt32 { flags.contains(.syn) ? sequence &+ 1 : sequence }
}

/// The permitted results of a reassembler for a connection.
private struct ConnectionModel {
    private struct Side {
        /// The sequence numbers at which the direction may begin: one, unless data was captured before its SYN.
        var starts: [UInt32] = []
        /// Whether ``starts`` is final.
        var isBegun = false
        /// The number of bytes and holes that were reported.
        var told = 0
        /// The captured segments; empty if that is not checked.
        var segments: [(first: UInt32, length: Int, cut: Int)] = []
        var holes: [Range<Int>] = []
    }

    private var sides: [Direction: Side] = [.send: Side(), .recv: Side()]
    private var isOpen = false
    private var isWhole = false
    /// Whether the end that is ``Direction/recv`` here is the client.
    private var isSwapped = false

    static func end(_ sender: Direction) -> PacketEndpoint {
        PacketEndpoint(high: 0, low: sender == .send ? 1 : 2, port: sender == .send ? 40_000 : 5222, isIPv6: false)
    }

    static func byte(_ sender: Direction, _ sequence: UInt32) -> UInt8 {
        UInt8(truncatingIfNeeded: ((sequence ^ (sender == .send ? 0x5BD1_E995 : 0)) &* 2_654_435_761) >> 24)
    }

    /// Reads the output after a segment, or at the end; returns the contradiction, if any.
    mutating func read(_ reassembler: inout TCPReassembler, after taken: (TCPSegment, Direction, Int)?) -> String? {
        while let (_, event) = reassembler.next() {
            if case .opened(let client, _, let isWhole) = event {
                self = ConnectionModel()
                isOpen = true
                self.isWhole = isWhole
                isSwapped = client != Self.end(.send)
            }
            if let taken { learn(taken) }
            switch event {
            case .opened, .ended: break
            case .data(let direction, let bytes):
                let sender = isSwapped ? direction.opposite : direction
                guard var side = sides[sender], !side.starts.isEmpty else { return "bytes before the beginning" }
                side.isBegun = true
                side.starts.removeAll { start in
                    let next = start &+ UInt32(truncatingIfNeeded: side.told)
                    return !bytes.enumerated().allSatisfy { Self.byte(sender, next &+ UInt32($0)) == $1 }
                }
                guard !side.starts.isEmpty else {
                    return "\(sender.name): \(bytes.count) bytes behind \(side.told) are wrong"
                }
                side.told += bytes.count
                sides[sender] = side
            case .hole(let direction, let count):
                let sender = isSwapped ? direction.opposite : direction
                guard var side = sides[sender], !side.starts.isEmpty else { return "a hole before the beginning" }
                if count == 0 || count >= 1 << 31 { return "a hole of \(count) bytes" }
                side.isBegun = true
                side.holes.append(side.told..<side.told + Int(count))
                side.told += Int(count)
                sides[sender] = side
            case .closed, .lost:
                if let contradiction = contradictionAtEnd() { return contradiction }
                self = ConnectionModel()
            }
        }
        if let taken { learn(taken) }
        return nil
    }

    /// The first segment of a direction determines its beginning, unless the SYN may follow.
    private mutating func learn(_ taken: (segment: TCPSegment, sender: Direction, length: Int)) {
        let segment = taken.segment
        guard isOpen else { return }
        if isWhole, segment.flags.contains(.acknowledges) {
            add(segment.acknowledgement, taken.sender.opposite, isSYN: false)
        }
        guard taken.length + segment.cut > 0 || !segment.flags.isDisjoint(with: [.syn, .fin]) else { return }
        add(segment.firstByte, taken.sender, isSYN: segment.flags.contains(.syn))
    }

    private mutating func add(_ start: UInt32, _ sender: Direction, isSYN: Bool) {
        guard var side = sides[sender], !side.isBegun, !side.starts.contains(start) else { return }
        side.isBegun = side.starts.isEmpty && (isSYN || !isWhole)
        side.starts.append(start)
        sides[sender] = side
    }

    /// Records which bytes of a direction were captured, and which were cut off.
    mutating func note(_ segment: TCPSegment, _ sender: Direction, _ length: Int) {
        guard isOpen, length + segment.cut > 0 else { return }
        sides[sender]?.segments.append((segment.firstByte, length, segment.cut))
    }

    /// Returns the contradiction at the end: bytes that were captured but not reported, or reported but not captured.
    private func contradictionAtEnd() -> String? {
        for (sender, side) in sides where !side.segments.isEmpty {
            var found: String?
            for start in side.starts {
                found = Self.contradiction(side, from: start).map { "\(sender.name): \($0)" }
                if found == nil { break }
            }
            if let found { return found }
        }
        return nil
    }

    private static func contradiction(_ side: Side, from start: UInt32) -> String? {
        var captured: [Bool] = []
        // A hole although another segment contains the bytes.
        var cut: Set<Int> = []
        for segment in side.segments {
            let first = Int(Int32(bitPattern: segment.first &- start))
            let end = first + segment.length + segment.cut
            guard end > max(0, first) else { continue }
            if captured.count < end { captured += [Bool](repeating: false, count: end - captured.count) }
            for index in max(0, first)..<max(0, first, first + segment.length) { captured[index] = true }
            cut.formUnion(max(0, first, first + segment.length)..<end)
        }
        if side.told != captured.count { return "\(side.told) bytes of \(captured.count) told" }
        for hole in side.holes where hole.contains(where: { captured[$0] && !cut.contains($0) }) {
            return "the hole \(hole) is none"
        }
        return nil
    }
}
