internal import CPcap
internal import Glibc
internal import TapRecord
internal import XMPPCore

/// Captures the TCP packets of a network interface with libpcap.
///
/// A ``RecordReader`` reads the packets, and detects sessions in the same way as in a capture file.
package final class LiveCapture: PacketReader {
    /// Why an interface cannot be captured from.
    package enum Fault: Error, Sendable, Hashable {
        /// The user lacks the permission to capture.
        case notAllowed
        /// The interface does not exist.
        case noInterface
        /// The interface exists but is down.
        case down
        /// Another error; the message is libpcap's.
        case other(String)
    }

    /// The name of the interface.
    package let interface: String
    /// The server ports to capture; empty means all ports.
    let ports: [UInt16]
    /// The TLS key log that grows during the capture; nil if none was given.
    let keys: FollowedKeyLog?
    private var handle: PcapHandle
    private var recording: PacketRecording?
    private var dropped: UInt32 = 0
    /// The time of ``stop()``: packets captured later are discarded; nil before.
    private var end: Timestamp?

    /// Maximum captured bytes of a packet: more than the longest IP packet has.
    private static let captureLength: Int32 = 262_144
    /// Size of the kernel's packet buffer in bytes.
    private static let bufferSize: Int32 = 8 << 20
    /// Time for which the kernel collects packets before it delivers them, in milliseconds. Each delivery costs a
    /// wake-up.
    private static let collectingTime: Int32 = 50
    /// Time in nanoseconds after ``stop()`` within which the kernel delivers all packets captured before it.
    private static let drainTime: Int64 = 4 * 50_000_000

    /// Opens an interface and begins to capture.
    ///
    /// - Parameters:
    ///   - interface: The name of the interface; `any` captures from all interfaces.
    ///   - ports: Ports of servers; if empty, all TCP packets are captured.
    ///   - keys: The TLS key log to follow.
    package init(_ interface: String, ports: [UInt16] = [], keys: FollowedKeyLog? = nil) throws(Fault) {
        var reason = [CChar](repeating: 0, count: Int(xmpptap_pcap_error_length()))
        guard let opened = pcap_create(interface, &reason) else { throw .other(Self.text(reason)) }
        // From here on, the capture is closed when the last reference to the handle is released.
        let handle = PcapHandle(opened)
        pcap_set_snaplen(opened, Self.captureLength)
        pcap_set_promisc(opened, 1)
        pcap_set_timeout(opened, Self.collectingTime)
        pcap_set_buffer_size(opened, Self.bufferSize)
        pcap_set_tstamp_precision(opened, PCAP_TSTAMP_PRECISION_NANO)
        let status = pcap_activate(opened)
        guard status >= 0 else { throw Self.fault(status, handle) }
        try Self.setFilter(handle, ports)
        guard pcap_setnonblock(opened, 1, &reason) == 0 else { throw .other(Self.text(reason)) }
        self.interface = interface
        self.ports = ports
        self.keys = keys
        self.handle = handle
        self.handle.readLinkType()
    }

    /// Also writes the captured packets to a pcapng file.
    ///
    /// - Parameters:
    ///   - path: The path of the file. Only its owner can read the file.
    ///   - replaces: Whether an existing file is replaced.
    ///   - tool: The name of the writing program, which is noted in the file.
    ///   - hasSecrets: Whether the secrets of the key log are written, too. Whoever has the file can then decrypt it.
    package func record(to path: String, replaces: Bool, tool: String, hasSecrets: Bool) throws(WriterFault) {
        recording = try PacketRecording(path, replaces: replaces, tool: tool, hasSecrets: hasSecrets)
        recording?.begin(interface, link: handle.linkNumber, captureLength: UInt32(Self.captureLength))
    }

    /// The error that ended the writing of the file of ``record(to:replaces:tool:hasSecrets:)``; nil if there was none.
    package var recordingFault: WriterFault? { recording?.fault }

    /// 0 if this process is permitted to capture, otherwise the system's error number.
    package static var permission: Int32 {
        let descriptor = socket(AF_PACKET, Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return errno }
        close(descriptor)
        return 0
    }

    // MARK: Packets

    /// The file descriptor to poll for packets; -1 if the interface cannot be polled.
    var descriptor: Int32 { pcap_get_selectable_fd(handle.pcap) }

    func next(_ take: (PacketEntry, Span<UInt8>) -> Void) throws(PacketFault) -> Bool {
        var isLate = false
        let result = handle.next { packet, bytes in
            if let end, packet.time > end { return isLate = true }
            recording?.add(packet, bytes)
            take(.packet(packet), bytes)
        }
        guard result >= 0 else { throw .interface(handle.reason) }
        return result == 1 && !isLate
    }

    /// Reads the lines added to the key log; returns whether there were any.
    func readKeys() -> Bool {
        guard let lines = keys?.readOn(), !lines.isEmpty else { return false }
        recording?.add(secrets: lines)
        return true
    }

    /// Returns the number of packets that the kernel has dropped since the last call because its buffer was full.
    func takeDropped() -> UInt32 {
        var figures = pcap_stat()
        guard pcap_stats(handle.pcap, &figures) == 0 else { return 0 }
        defer { dropped = figures.ps_drop }
        return figures.ps_drop &- dropped
    }

    /// Writes the packets captured so far to the file, except those whose secrets may still arrive.
    func flush() { recording?.flushSettled() }

    /// Writes all captured packets to the file: no more packets or secrets will come.
    func finish() { recording?.flush() }

    /// Stops the capture: packets captured later are discarded.
    func stop() { end = Self.now }

    /// Whether ``stop()`` was called, and enough time has passed for the kernel to deliver all earlier packets.
    var isDrained: Bool { end.map { Self.now.nanoseconds &- $0.nanoseconds > Self.drainTime } ?? false }

    /// The current time of the wall clock, which is also the clock of packet times.
    static var now: Timestamp {
        var time = timeval()
        gettimeofday(&time, nil)
        return Timestamp(nanoseconds: Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_usec) &* 1_000)
    }

    // MARK: Opening

    private static func fault(_ status: Int32, _ handle: PcapHandle) -> Fault {
        switch status {
        case PCAP_ERROR_PERM_DENIED, PCAP_ERROR_PROMISC_PERM_DENIED: return .notAllowed
        case PCAP_ERROR_NO_SUCH_DEVICE: return .noInterface
        case PCAP_ERROR_IFACE_NOT_UP: return .down
        default:
            let reason = handle.reason
            return .other(reason.isEmpty ? String(cString: pcap_statustostr(status)) : reason)
        }
    }

    /// The filter for the tunnels that ``PacketTunnel`` decodes. The kernel cannot compare the ports of packets in
    /// tunnels.
    private static let tunnels =
        "ip proto 4 or ip proto 41 or ip proto 47 or ip6 proto 4 or ip6 proto 41 or ip6 proto 47"
        + " or udp dst port 4789 or udp dst port 8472 or udp dst port 6081"
    /// The filter for fragments whose ports the kernel cannot compare: in IPv4 all but the first of a datagram, in IPv6
    /// all.
    private static let fragments = "ip[6:2] & 0x1fff != 0 or (ip6 and ip6[6] = 44)"

    /// Returns two filters, of which the first that compiles is used. They match TCP packets of the ports, also with
    /// one or two VLAN tags, tunnels and fragments. The second filter is for link types without VLANs.
    static func filters(_ ports: [UInt16]) -> [String] {
        let list = ports.map { "port \($0)" }.joined(separator: " or ")
        let wanted = "\(ports.isEmpty ? "tcp" : "(tcp and (\(list)))") or \(tunnels) or \(fragments)"
        return ["(\(wanted)) or (vlan and (\(wanted))) or (vlan and (\(wanted)))", wanted]
    }

    private static func setFilter(_ handle: PcapHandle, _ ports: [UInt16]) throws(Fault) {
        var program = bpf_program()
        let isCompiled = filters(ports).contains {
            pcap_compile(handle.pcap, &program, $0, 1, PCAP_NETMASK_UNKNOWN) == 0
        }
        guard isCompiled else { throw .other(handle.reason) }
        defer { pcap_freecode(&program) }
        guard pcap_setfilter(handle.pcap, &program) == 0 else { throw .other(handle.reason) }
    }

    private static func text(_ bytes: [CChar]) -> String {
        String(decoding: bytes.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}

/// A libpcap handle, which reads packets from a file or an interface.
struct PcapHandle {
    /// Closes the handle when the last copy of ``PcapHandle`` is released.
    private final class Owner {
        let pcap: OpaquePointer
        private let buffer: UnsafeMutablePointer<CChar>?

        init(_ pcap: OpaquePointer, _ buffer: UnsafeMutablePointer<CChar>?) {
            self.pcap = pcap
            self.buffer = buffer
        }

        deinit {
            pcap_close(pcap)
            buffer?.deallocate()
        }
    }

    private let owner: Owner
    private(set) var link = LinkType.raw
    private var number: UInt64 = 0
    private var unit = 1

    /// - Parameter buffer: The stdio buffer of the file; it is freed after the handle was closed.
    init(_ pcap: OpaquePointer, buffer: UnsafeMutablePointer<CChar>? = nil) { owner = Owner(pcap, buffer) }

    var pcap: OpaquePointer { owner.pcap }

    /// Reads the link type and the resolution of times, once libpcap knows them.
    mutating func readLinkType() {
        link = LinkType(UInt32(bitPattern: pcap_datalink(pcap)))
        // `tv_usec` counts microseconds or nanoseconds (pcap_set_tstamp_precision).
        unit = pcap_get_tstamp_precision(pcap) == PCAP_TSTAMP_PRECISION_NANO ? 1 : 1000
    }

    /// The `LINKTYPE_` number of the packets. For raw IP it differs from libpcap's `DLT_` number.
    var linkNumber: UInt16 { link == .raw ? 101 : UInt16(truncatingIfNeeded: pcap_datalink(pcap)) }

    /// Reads the next packet; returns the result of pcap_next_ex(3): 1 for a packet, 0 if none is available yet,
    /// negative at the end of a file or after an error.
    mutating func next(_ take: (CapturedPacket, Span<UInt8>) -> Void) -> Int32 {
        var header: UnsafeMutablePointer<pcap_pkthdr>?
        var data: UnsafePointer<UInt8>?
        let result = pcap_next_ex(pcap, &header, &data)
        guard result == 1, let header, let data else { return result }
        number += 1
        let time = header.pointee.ts.tv_sec &* 1_000_000_000 &+ header.pointee.ts.tv_usec &* unit
        let packet = CapturedPacket(
            time: Timestamp(nanoseconds: Int64(time)),
            link: link,
            originalLength: Int(header.pointee.len),
            number: number
        )
        take(packet, UnsafeBufferPointer(start: data, count: Int(header.pointee.caplen)).span)
        return result
    }

    /// libpcap's message for the last error of this handle.
    var reason: String { pcap_geterr(pcap).map { String(cString: $0) } ?? "" }
}
