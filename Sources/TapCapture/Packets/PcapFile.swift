internal import CPcap
internal import Glibc

/// A pcap file, in either byte order and with times in microseconds or nanoseconds, read by libpcap.
final class PcapFile: PacketReader {
    private let bytes: InputBytes
    private var handle: PcapHandle
    private var hasEnded = false
    /// The offset of the next packet's header: the file's header has 24 bytes, and a packet's 16.
    private var place: UInt64 = 24

    private static let bufferSize = 256 << 10

    /// Opens a file and reads its header.
    init(_ bytes: InputBytes) throws(PacketFault) {
        var functions = xmpptap_cookie_functions()
        functions.read = { cookie, place, count in
            guard let cookie, let place else { return -1 }
            return Unmanaged<InputBytes>.fromOpaque(cookie).takeUnretainedValue().read(into: place, count)
        }
        // The bytes outlive the libpcap handle, which reads from them only during calls of this object.
        let cookie = Unmanaged.passUnretained(bytes).toOpaque()
        guard let file = xmpptap_fopencookie(cookie, "r", functions) else {
            throw .cannotRead(errno: errno)
        }
        // Without this buffer, the file is read in pieces of 4 KiB: the C library does not allocate a buffer of another
        // size.
        let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: Self.bufferSize)
        setvbuf(file, buffer, _IOFBF, Self.bufferSize)
        // Locking is off because libpcap reads twice for each packet, and only one thread at a time uses the reader.
        // When the program ends, the C library may discard the buffer while that thread reads, but it also does so with
        // locking if it cannot get the lock.
        xmpptap_leave_locking_to_caller(file)
        var reason = [CChar](repeating: 0, count: Int(xmpptap_pcap_error_length()))
        let precision = UInt32(PCAP_TSTAMP_PRECISION_NANO)
        guard let handle = pcap_fopen_offline_with_tstamp_precision(file, precision, &reason) else {
            fclose(file)
            buffer.deallocate()
            if bytes.hasFailed { throw PacketFault(reading: bytes) }
            throw .damaged(
                at: 0,
                String(decoding: reason.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
            )
        }
        self.bytes = bytes
        self.handle = PcapHandle(handle, buffer: buffer)
        self.handle.readLinkType()
    }

    func next(_ take: (PacketEntry, Span<UInt8>) -> Void) throws(PacketFault) -> Bool {
        guard !hasEnded else { return false }
        let result = handle.next { packet, bytes in
            place += 16 + UInt64(bytes.count)
            take(.packet(packet), bytes)
        }
        guard result != 1 else { return true }
        hasEnded = true
        guard result != PCAP_ERROR_BREAK else { return false }
        throw fault()
    }

    /// Returns the fault for the packet that libpcap could not read.
    private func fault() -> PacketFault {
        if bytes.hasFailed { return PacketFault(reading: bytes) }
        let reason = handle.reason
        return reason.contains("truncated") ? .truncated(at: bytes.position) : .damaged(at: place, reason)
    }
}
