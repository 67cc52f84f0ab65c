internal import TapRecord

/// The kinds of frames that captures hold, by their numbers in files (`LINKTYPE_`, tcpdump.org/linktypes).
enum LinkType: Hashable, Sendable {
    case ethernet
    /// BSD loopback: the protocol family, in the byte order of the machine that captured or of the network.
    case loopback
    /// An IPv4 or IPv6 packet without anything before it.
    case raw
    /// Linux's "any" interface, versions 1 and 2.
    case cooked, cooked2
    /// A packet logged by a Linux firewall (NFLOG), in one of several attributes.
    case firewallLog
    case other(UInt32)

    init(_ number: UInt32) {
        switch number {
        case 1: self = .ethernet
        case 0, 108: self = .loopback
        // 12 and 14 are what some systems write for raw IP.
        case 12, 14, 101, 228, 229: self = .raw
        case 113: self = .cooked
        case 239: self = .firewallLog
        case 276: self = .cooked2
        default: self = .other(number)
        }
    }
}

/// A packet of a capture, beside its bytes.
struct CapturedPacket: Sendable {
    /// The time of the capture; 0 if it is unknown.
    var time: Timestamp
    var link: LinkType
    /// Its length on the wire, of which fewer bytes may have been captured.
    var originalLength: Int
    /// Its number in the capture, from 1.
    var number: UInt64
}

/// An entry of a capture.
enum PacketEntry {
    /// A packet: its bytes follow.
    case packet(CapturedPacket)
    /// Lines of a TLS key log that the capture holds (a decryption secrets block).
    case keys([UInt8])
}

/// The formats of files of packets, as tcpdump and Wireshark record them.
enum PacketFormat {
    case pcap, pcapng

    /// The format of a file, by how it begins: pcap in either order of bytes, with times in microseconds or nanoseconds.
    init?(_ beginning: [UInt8]) {
        switch Array(beginning.prefix(4)) {
        case [0xD4, 0xC3, 0xB2, 0xA1], [0xA1, 0xB2, 0xC3, 0xD4], [0x4D, 0x3C, 0xB2, 0xA1], [0xA1, 0xB2, 0x3C, 0x4D]:
            self = .pcap
        case [0x0A, 0x0D, 0x0D, 0x0A]: self = .pcapng
        default: return nil
        }
    }
}

/// Where packets come from: a file or an interface.
protocol PacketReader: AnyObject {
    /// Passes the next entry to `take`, with the packet's bytes; returns false at the end, or if nothing more is
    /// available yet.
    ///
    /// - Throws: ``PacketFault`` if the rest cannot be read. Earlier entries were valid.
    func next(_ take: (PacketEntry, Span<UInt8>) -> Void) throws(PacketFault) -> Bool
}

/// Why packets, or the rest of them, cannot be read.
package enum PacketFault: Error, Hashable {
    /// The file ends within a packet or block, after so many bytes.
    case truncated(at: UInt64)
    /// Invalid data in place of a packet: the place in bytes from the beginning of the file, and the reason.
    case damaged(at: UInt64, String)
    /// Reading failed; the system's error number.
    case cannotRead(errno: Int32)
    /// The interface can no longer be captured from, in libpcap's words.
    case interface(String)
    /// The file is compressed, and cannot be decompressed here.
    case compressed(CompressionFault)

    /// Why nothing more could be read.
    init(reading bytes: InputBytes) {
        self = bytes.takeFault().map { .compressed($0) } ?? .cannotRead(errno: bytes.failure ?? 0)
    }
}

extension Span<UInt8> {
    /// A number of the network's byte order; the caller has checked the bounds.
    @inline(__always)
    func number16(at offset: Int) -> UInt16 { number(at: offset) }
    /// The same with four bytes.
    @inline(__always)
    func number32(at offset: Int) -> UInt32 { number(at: offset) }
    /// The same with eight bytes.
    @inline(__always)
    func number64(at offset: Int) -> UInt64 { number(at: offset) }

    @inline(__always)
    private func number<Number: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> Number {
        Number(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: Number.self))
    }
}
