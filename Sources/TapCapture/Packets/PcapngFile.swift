internal import TapRecord

/// Reads a pcapng file: sections in either byte order, interfaces with several link types and resolutions, and TLS
/// secrets.
///
/// libpcap is not used, because it rejects files whose interfaces have different link types, and skips secrets and
/// comments. The format is specified in draft-ietf-opsawg-pcapng.
final class PcapngFile: PacketReader {
    fileprivate struct Interface {
        var link: LinkType
        /// Whether the unit of times is 2^-`exponent` seconds; otherwise it is 10^-`exponent` seconds.
        var isBinary = false
        var exponent: UInt8 = 6
        /// Seconds added to each time.
        var offset: Int64 = 0
        var captureLength: UInt32
    }

    /// Maximum length of a block in bytes: more than any packet or key log needs.
    static let maximumBlockLength = 64 << 20
    /// Maximum number of interfaces in a section.
    private static let maximumInterfaces = 65_536
    private static let piece = 256 << 10

    private let bytes: InputBytes
    private var buffer: [UInt8] = []
    private var start = 0
    /// The offset in the file of the buffer's first byte.
    private var base: UInt64 = 0
    private var isLittle = true
    private var interfaces: [Interface] = []
    private var number: UInt64 = 0
    private var hasEnded = false

    /// Creates a reader of a file from its beginning.
    init(_ bytes: InputBytes) { self.bytes = bytes }

    func next(_ take: (PacketEntry, Span<UInt8>) -> Void) throws(PacketFault) -> Bool {
        guard !hasEnded else { return false }
        do throws(PacketFault) {
            while let block = try nextBlock() {
                start = block.upperBound
                if try entry(block, take) { return true }
            }
        } catch {
            hasEnded = true
            throw error
        }
        hasEnded = true
        return false
    }

    // MARK: Blocks

    /// Returns the range of the next block in the buffer; nil at the end of the file.
    private func nextBlock() throws(PacketFault) -> Range<Int>? {
        guard try need(12) else {
            guard start == buffer.count else { throw .truncated(at: base + UInt64(buffer.count)) }
            return nil
        }
        let at = base + UInt64(start)
        if buffer[start..<start + 4].elementsEqual([0x0A, 0x0D, 0x0D, 0x0A]) {
            switch Array(buffer[start + 8..<start + 12]) {
            case [0x4D, 0x3C, 0x2B, 0x1A]: isLittle = true
            case [0x1A, 0x2B, 0x3C, 0x4D]: isLittle = false
            default: throw .damaged(at: at, "a section without a known byte order")
            }
            interfaces = []
        }
        let length = Int(number32(start + 4))
        guard length >= 12, length % 4 == 0 else { throw .damaged(at: at, "a block of \(length) bytes") }
        guard length <= Self.maximumBlockLength else {
            throw .damaged(at: at, "a block of \(length) bytes is too long")
        }
        guard try need(length) else { throw .truncated(at: base + UInt64(buffer.count)) }
        guard number32(start + length - 4) == UInt32(length) else {
            throw .damaged(at: at, "a block whose two lengths differ")
        }
        return start..<start + length
    }

    /// Reads until `count` bytes of the next block are in the buffer; returns false if the file ends before.
    private func need(_ count: Int) throws(PacketFault) -> Bool {
        while buffer.count - start < count {
            base += UInt64(start)
            buffer.removeSubrange(..<start)
            start = 0
            let size = max(Self.piece, count - buffer.count)
            let found = buffer.append(upTo: size) { bytes.read(into: $0, size) }
            if found < 0 { throw PacketFault(reading: bytes) }
            if found == 0 { return false }
        }
        return true
    }

    /// Reads a block; returns whether an entry was passed to `take`.
    private func entry(
        _ block: Range<Int>,
        _ take: (PacketEntry, Span<UInt8>) -> Void
    ) throws(PacketFault) -> Bool {
        let body = block.lowerBound + 8..<block.upperBound - 4
        switch number32(block.lowerBound) {
        case 1: try describeInterface(body)
        case 6: return try packet(body, isOld: false, take)
        case 2: return try packet(body, isOld: true, take)
        case 3: return try simplePacket(body, take)
        case 0x0A: return try secrets(body, take)
        default: break
        }
        return false
    }

    private func describeInterface(_ body: Range<Int>) throws(PacketFault) {
        guard body.count >= 8 else { throw damaged(body, "an interface of \(body.count) bytes") }
        guard interfaces.count < Self.maximumInterfaces else { throw damaged(body, "too many interfaces") }
        var interface = Interface(
            link: LinkType(UInt32(number16(body.lowerBound))),
            captureLength: number32(body.lowerBound + 4)
        )
        forEachOption(body.dropFirst(8)) { code, value in
            switch (code, value.count) {
            case (9, 1):
                interface.isBinary = buffer[value.lowerBound] & 0x80 != 0
                interface.exponent = buffer[value.lowerBound] & 0x7F
            case (14, 8): interface.offset = Int64(bitPattern: number64(value.lowerBound))
            default: break
            }
        }
        interfaces.append(interface)
    }

    /// - Parameter isOld: Whether this is the obsolete Packet Block, with two bytes for its interface, and a drop
    ///   count after them.
    private func packet(
        _ body: Range<Int>,
        isOld: Bool,
        _ take: (PacketEntry, Span<UInt8>) -> Void
    ) throws(PacketFault) -> Bool {
        guard body.count >= 20 else { throw damaged(body, "a packet of \(body.count) bytes") }
        let at = body.lowerBound
        return try give(
            body,
            interface: isOld ? Int(number16(at)) : Int(number32(at)),
            time: UInt64(number32(at + 4)) << 32 | UInt64(number32(at + 8)),
            captured: Int(number32(at + 12)),
            original: Int(number32(at + 16)),
            head: 20,
            take
        )
    }

    /// Reads a Simple Packet Block: a packet of the first interface, without a time. Its captured length is limited by
    /// the block and by the interface's capture length.
    private func simplePacket(
        _ body: Range<Int>,
        _ take: (PacketEntry, Span<UInt8>) -> Void
    ) throws(PacketFault) -> Bool {
        guard body.count >= 4 else { throw damaged(body, "a packet of \(body.count) bytes") }
        let original = Int(number32(body.lowerBound))
        let most = interfaces.first.map { $0.captureLength == 0 ? Int.max : Int($0.captureLength) } ?? Int.max
        return try give(
            body,
            interface: 0,
            time: nil,
            captured: min(original, most, body.count - 4),
            original: original,
            head: 4,
            take
        )
    }

    private func give(
        _ body: Range<Int>,
        interface: Int,
        time: UInt64?,
        captured: Int,
        original: Int,
        head: Int,
        _ take: (PacketEntry, Span<UInt8>) -> Void
    ) throws(PacketFault) -> Bool {
        guard interfaces.indices.contains(interface) else {
            throw damaged(body, "a packet of interface \(interface), which is not described")
        }
        guard captured <= body.count - head else { throw damaged(body, "a packet longer than its block") }
        number += 1
        let packet = CapturedPacket(
            time: Timestamp(nanoseconds: time.map { interfaces[interface].nanoseconds($0) } ?? 0),
            link: interfaces[interface].link,
            originalLength: max(original, captured),
            number: number
        )
        let first = body.lowerBound + head
        let bytes = buffer
        take(.packet(packet), bytes.span.extracting(first..<first + captured))
        return true
    }

    /// Reads TLS secrets; secrets of other protocols are skipped.
    private func secrets(
        _ body: Range<Int>,
        _ take: (PacketEntry, Span<UInt8>) -> Void
    ) throws(PacketFault) -> Bool {
        guard body.count >= 8 else { throw damaged(body, "secrets of \(body.count) bytes") }
        let length = Int(number32(body.lowerBound + 4))
        guard length <= body.count - 8 else { throw damaged(body, "secrets longer than their block") }
        guard number32(body.lowerBound) == 0x544C_534B else { return false }
        let nothing: [UInt8] = []
        take(.keys(Array(buffer[body.lowerBound + 8..<body.lowerBound + 8 + length])), nothing.span)
        return true
    }

    // MARK: Parts of blocks

    private func forEachOption(_ options: Range<Int>, _ take: (UInt16, Range<Int>) -> Void) {
        var at = options.lowerBound
        while at + 4 <= options.upperBound {
            let code = number16(at)
            let length = Int(number16(at + 2))
            guard code != 0, at + 4 + length <= options.upperBound else { return }
            take(code, at + 4..<at + 4 + length)
            at += 4 + (length + 3) & ~3
        }
    }

    private func damaged(_ body: Range<Int>, _ reason: String) -> PacketFault {
        .damaged(at: base + UInt64(max(0, body.lowerBound - 8)), reason)
    }

    private func number16(_ at: Int) -> UInt16 {
        let number = buffer.span.number16(at: at)
        return isLittle ? number.byteSwapped : number
    }
    private func number32(_ at: Int) -> UInt32 {
        let number = buffer.span.number32(at: at)
        return isLittle ? number.byteSwapped : number
    }
    private func number64(_ at: Int) -> UInt64 {
        let number = buffer.span.number64(at: at)
        return isLittle ? number.byteSwapped : number
    }
}

extension PcapngFile.Interface {
    /// Converts a time from the interface's unit to nanoseconds since 1970; 0 if it is out of range.
    fileprivate func nanoseconds(_ time: UInt64) -> Int64 {
        let seconds: UInt64
        let rest: UInt64
        if isBinary {
            guard exponent < 64 else { return 0 }
            seconds = time >> UInt64(exponent)
            let fraction = time & ((1 << UInt64(exponent)) - 1)
            rest =
                (UInt64(1) << UInt64(exponent)).dividingFullWidth(fraction.multipliedFullWidth(by: 1_000_000_000))
                .quotient
        } else {
            guard exponent < 20 else { return 0 }
            let unit = (0..<exponent).reduce(UInt64(1)) { power, _ in power &* 10 }
            seconds = time / unit
            rest = unit.dividingFullWidth((time % unit).multipliedFullWidth(by: 1_000_000_000)).quotient
        }
        let whole = Int64(clamping: seconds).addingReportingOverflow(offset).partialValue
        let (product, isOver) = whole.multipliedReportingOverflow(by: 1_000_000_000)
        return isOver ? 0 : product &+ Int64(clamping: rest)
    }
}
