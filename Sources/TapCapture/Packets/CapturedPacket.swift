internal import TapRecord

/// The link type of a packet: the format of its frame (`LINKTYPE_` numbers, tcpdump.org/linktypes).
enum LinkType: Hashable, Sendable {
    case ethernet
    /// BSD loopback: the frame begins with the protocol family, in the byte order of the capturing machine (number 0)
    /// or of the network (number 108).
    case loopback
    /// An IPv4 or IPv6 packet without a link-layer header.
    case raw
    /// Linux cooked capture, versions 1 and 2, as on the `any` interface.
    case cooked, cooked2
    /// A packet logged by a Linux firewall (NFLOG): a list of attributes, one of which holds the packet.
    case firewallLog
    case other(UInt32)

    init(_ number: UInt32) {
        switch number {
        case 1: self = .ethernet
        case 0, 108: self = .loopback
        // Some systems write 12 or 14 for raw IP.
        case 12, 14, 101, 228, 229: self = .raw
        case 113: self = .cooked
        case 239: self = .firewallLog
        case 276: self = .cooked2
        default: self = .other(number)
        }
    }
}

/// The properties of a captured packet. Its bytes are passed separately.
struct CapturedPacket: Sendable {
    /// The time of the capture; 0 if it is unknown.
    var time: Timestamp
    var link: LinkType
    /// The length of the packet on the wire, in bytes. Fewer bytes may have been captured.
    var originalLength: Int
    /// The number of the packet in the capture, from 1.
    var number: UInt64
}

/// An entry of a capture.
enum PacketEntry {
    /// A packet. Its bytes are passed beside the entry.
    case packet(CapturedPacket)
    /// Lines of a TLS key log that the capture holds (a decryption secrets block).
    case keys([UInt8])
}

/// The formats of capture files that tcpdump and Wireshark write.
enum PacketFormat {
    case pcap, pcapng

    /// Detects the format of a file by its first four bytes; nil if they are unknown. A pcap file may have either byte
    /// order, and times in microseconds or nanoseconds.
    init?(_ beginning: [UInt8]) {
        switch Array(beginning.prefix(4)) {
        case [0xD4, 0xC3, 0xB2, 0xA1], [0xA1, 0xB2, 0xC3, 0xD4], [0x4D, 0x3C, 0xB2, 0xA1], [0xA1, 0xB2, 0x3C, 0x4D]:
            self = .pcap
        case [0x0A, 0x0D, 0x0D, 0x0A]: self = .pcapng
        default: return nil
        }
    }
}

/// A source of packets: a file or an interface.
protocol PacketReader: AnyObject {
    /// Passes the next entry to `take`, with the packet's bytes; returns false at the end, or if nothing more is
    /// available yet.
    ///
    /// - Throws: ``PacketFault`` if the rest cannot be read. Earlier entries were valid.
    func next(_ take: (PacketEntry, Span<UInt8>) -> Void) throws(PacketFault) -> Bool
}

/// Why packets, or the rest of them, cannot be read.
package enum PacketFault: Error, Hashable {
    /// The file ends within a packet or block, after this number of bytes.
    case truncated(at: UInt64)
    /// Invalid data in place of a packet: the offset from the beginning of the file in bytes, and the reason.
    case damaged(at: UInt64, String)
    /// Reading failed; `errno` is the system's error number.
    case cannotRead(errno: Int32)
    /// Capturing from the interface failed; the message is libpcap's.
    case interface(String)
    /// The file is compressed and cannot be decompressed.
    case compressed(CompressionFault)

    /// Creates the fault for an input that could not be read: its decompression fault or its error number.
    init(reading bytes: InputBytes) {
        self = bytes.takeFault().map { .compressed($0) } ?? .cannotRead(errno: bytes.failure ?? 0)
    }
}

extension Span<UInt8> {
    /// Returns the 16-bit number at an offset, in network byte order. The caller must check the bounds.
    @inline(__always)
    func number16(at offset: Int) -> UInt16 { number(at: offset) }
    /// Returns the 32-bit number at an offset, in network byte order. The caller must check the bounds.
    @inline(__always)
    func number32(at offset: Int) -> UInt32 { number(at: offset) }
    /// Returns the 64-bit number at an offset, in network byte order. The caller must check the bounds.
    @inline(__always)
    func number64(at offset: Int) -> UInt64 { number(at: offset) }

    @inline(__always)
    private func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Number {
        Number(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: Number.self))
    }
}
