import TapCore
import TapRecord
import XMPPCore

@testable import TapCapture
@testable import TapSecurity

/// Frames of any link type, and the sessions in them.
///
/// An input is a byte for the link type, then frames: the length in two bytes, the milliseconds since the previous
/// frame in one byte, and the frame's bytes.
enum PacketTarget {
    private static let links: [LinkType] = [.raw, .ethernet, .cooked, .cooked2, .loopback, .other(147)]

    static func run(_ input: [UInt8]) -> String? {
        var script = Script(input)
        let link = links[Int(script.byte()) % links.count]
        var sessions = PacketSessions(PacketSource(keys: KeyLog()), Run(), PacketSource.options)
        var records = RecordBatch()
        var check = RecordCheck()
        var contradiction: String?
        var decoder = PacketDecoder()
        var time: Int64 = 1_700_000_000_000_000_000
        var number: UInt64 = 0
        while !script.isOver, contradiction == nil {
            let length = script.number16()
            let elapsed = script.byte()
            // Sometimes the clock jumps, backwards or far ahead.
            time = elapsed == 255 ? Int64(bitPattern: script.number64()) : time &+ Int64(elapsed) * 1_000_000
            let bytes = script.bytes(length)
            number += 1
            let packet = CapturedPacket(
                time: Timestamp(nanoseconds: time),
                link: link,
                originalLength: length,
                number: number
            )
            guard let found = decoder.decode(packet, bytes.span) else { continue }
            contradiction = wrong(found, bytes.count)
            guard contradiction == nil else { break }
            let (at, place) = (decoder.now, decoder.counts.packets)
            switch found.payload {
            case .range(let range):
                sessions.process(found.segment, bytes.span.extracting(range), at: at, as: place, to: &records)
            case .joined(let bytes): sessions.process(found.segment, bytes.span, at: at, as: place, to: &records)
            }
            while let record = records.next() { contradiction = contradiction ?? check.contradiction(record) }
            records.clear()
        }
        sessions.finish(to: &records)
        while let record = records.next() { contradiction = contradiction ?? check.contradiction(record) }
        return contradiction
    }

    private static func wrong(_ found: PacketDecoder.Found, _ count: Int) -> String? {
        if found.segment.cut < 0 || found.segment.cut > 65_535 { return "\(found.segment.cut) bytes cut" }
        guard case .range(let range) = found.payload else { return nil }
        return 0 <= range.lowerBound && range.upperBound <= count ? nil : "\(range) of \(count) bytes"
    }
}
