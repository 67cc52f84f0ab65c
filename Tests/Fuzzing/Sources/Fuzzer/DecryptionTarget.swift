import RecordedTLS
import TapCore
import TapRecord
import XMPPCore

@testable import TapSecurity

/// A recorded TLS connection with its secrets.
final class RecordedConnection {
    private(set) var passed: [(direction: Direction, bytes: [UInt8])] = []
    private(set) var sent: [Direction: [UInt8]] = [.send: [], .recv: []]
    private(set) var keyLines: [[UInt8]] = []

    /// One connection of each kind.
    nonisolated(unsafe) static let all: [RecordedConnection] = (0..<recorded_tls_kinds()).map(RecordedConnection.init)

    private init(_ kind: CInt) {
        let works = recorded_tls(kind, Unmanaged.passUnretained(self).toOpaque()) { context, what, bytes, count in
            guard let context else { return }
            let connection = Unmanaged<RecordedConnection>.fromOpaque(context).takeUnretainedValue()
            connection.note(UInt8(bitPattern: what), Array(UnsafeBufferPointer(start: bytes, count: count)))
        }
        guard works == 1 else { fatalError("TLS connection \(kind) does not work") }
    }

    private func note(_ what: UInt8, _ bytes: [UInt8]) {
        switch what {
        case UInt8(ascii: "c"): passed.append((.send, bytes))
        case UInt8(ascii: "s"): passed.append((.recv, bytes))
        case UInt8(ascii: "C"): sent[.send]? += bytes
        case UInt8(ascii: "S"): sent[.recv]? += bytes
        default: keyLines.append(bytes)
        }
    }
}

/// Recorded TLS in pieces, with bytes changed, removed, added and duplicated. The output must be data that was sent, in
/// order, and contain all undamaged data.
///
/// An input selects the connection, the missing lines of its key log, the size of the pieces and whether secrets may be
/// late. Damages of five bytes follow: the kind, the position in two bytes, the extent and a value.
enum DecryptionTarget {
    private struct Damage {
        var kind: UInt8
        var place: Int
        var amount: Int
        var value: UInt8
    }

    static func run(_ input: [UInt8]) -> String? {
        var script = Script(input)
        let connection = RecordedConnection.all[Int(script.byte()) % RecordedConnection.all.count]
        let missing = script.byte()
        let size = 1 + Int(script.byte()) * 4
        let patience = script.byte() & 1 == 0 ? 0 : 1 << 16
        let total = connection.passed.reduce(0) { $0 + $1.bytes.count }
        var damages: [Damage] = []
        while !script.isOver, damages.count < 16 {
            let kind = script.byte() % 6
            let place = script.number16() % total
            damages.append(Damage(kind: kind, place: place, amount: 1 + Int(script.byte()), value: script.byte()))
        }
        damages.sort { $0.place < $1.place }
        let isWhole = damages.isEmpty && missing == 0

        let keys = KeyLog()
        for (index, line) in connection.keyLines.enumerated() where missing >> UInt8(index & 7) & 1 == 0 {
            keys.append((line + [0x0A]).span)
        }
        let decryptor = TLSDecryptor(keyLog: keys, missingSecretLimit: patience)
        var reading = Reading(sent: connection.sent)
        var place = 0
        for (direction, bytes) in connection.passed {
            var start = 0
            while start < bytes.count {
                var end = min(bytes.count, start + size)
                if let damage = damages.first, damage.place < place + bytes.count {
                    if damage.place > place + start {
                        end = min(end, damage.place - place)
                    } else {
                        damages.removeFirst()
                        start = apply(damage, direction, bytes, start, decryptor)
                        if let contradiction = reading.read(decryptor) { return contradiction }
                        continue
                    }
                }
                decryptor.receive(direction, bytes.span.extracting(start..<end))
                start = end
                if let contradiction = reading.read(decryptor) { return contradiction }
            }
            place += bytes.count
        }
        if missing != 0, patience > 0 {
            for line in connection.keyLines { keys.append((line + [0x0A]).span) }
            decryptor.retry()
        }
        for direction in Direction.allCases { decryptor.finish(direction) }
        if let contradiction = reading.read(decryptor) { return contradiction }
        // Data that arrived completely and in time for its keys must be decrypted completely.
        guard isWhole, reading.places != connection.sent.mapValues(\.count) else { return nil }
        return "\(reading.places) bytes decrypted"
    }

    /// Damages the bytes from `start` on; returns where to continue.
    private static func apply(
        _ damage: Damage,
        _ direction: Direction,
        _ bytes: [UInt8],
        _ start: Int,
        _ decryptor: TLSDecryptor
    ) -> Int {
        let end = min(bytes.count, start + damage.amount)
        switch damage.kind {
        case 0:
            decryptor.receive(direction, [bytes[start] ^ max(1, damage.value)].span)
            return start + 1
        case 1:
            decryptor.hole(direction, bytes: end - start)
            return end
        case 2: return end
        case 3: decryptor.receive(direction, [UInt8](repeating: damage.value, count: damage.amount).span)
        case 4: decryptor.receive(direction, bytes.span.extracting(max(0, start - damage.amount * 4)..<start))
        default:
            // A hole up to the end of the flight.
            decryptor.hole(direction, bytes: bytes.count - start)
            return bytes.count
        }
        return start
    }

    /// The data decrypted so far.
    private struct Reading {
        let sent: [Direction: [UInt8]]
        /// The position in the sent data.
        var places: [Direction: Int] = [.send: 0, .recv: 0]
        var failed: Set<Direction> = []

        mutating func read(_ decryptor: TLSDecryptor) -> String? {
            while let output = decryptor.next() {
                switch output {
                case .plaintext(let direction, let bytes):
                    if failed.contains(direction) { return "\(direction.name): plaintext after a failure" }
                    guard let place = place(of: bytes, direction) else {
                        return "\(direction.name): plaintext that was not sent: \(bytes)"
                    }
                    places[direction] = place + bytes.count
                case .failed(let direction, _):
                    if !failed.insert(direction).inserted { return "\(direction.name): it fails twice" }
                case .hole(let direction, let bytes):
                    if bytes <= 0 { return "\(direction.name): a hole of \(bytes) bytes" }
                case .handshake, .alert, .closeNotify: break
                }
            }
            return nil
        }

        /// The position of bytes in the sent data, after those before them.
        private func place(of bytes: [UInt8], _ direction: Direction) -> Int? {
            guard let sent = sent[direction], var place = places[direction] else { return nil }
            while place + bytes.count <= sent.count {
                if sent[place..<place + bytes.count].elementsEqual(bytes) { return place }
                place += 1
            }
            return nil
        }
    }
}
