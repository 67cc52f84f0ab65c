internal import CPcap
internal import Glibc
internal import TapRecord
internal import XMPPCore

/// Captures the TCP packets of a network interface with libpcap, as they pass.
///
/// A ``RecordReader`` reads them. Sessions are detected as in a file of the same packets.
package final class LiveCapture: PacketReader {
    /// Why an interface cannot be captured from.
    package enum Fault: Error, Sendable, Hashable {
        /// The user has not the right to.
        case notAllowed
        /// The interface does not exist.
        case noInterface
        /// The interface is there, and is down.
        case down
        /// Anything else, in libpcap's words.
        case other(String)
    }

    /// The interface.
    package let interface: String
    /// Ports of servers that were named; none is all.
    let ports: [UInt16]
    /// A key log that grows beside the packets.
    let keys: FollowedKeyLog?
    private var handle: PcapHandle
    private var recording: PacketRecording?
    private var dropped: UInt32 = 0
    /// Packets that are captured later are not given out; nil without an end.
    private var end: Timestamp?

    /// Bytes that a packet is captured with: more than IP allows.
    private static let captureLength: Int32 = 262_144
    /// Bytes of packets that wait in the kernel.
    private static let bufferSize: Int32 = 8 << 20
    /// Milliseconds that the kernel collects packets before it hands them on: each hand-over costs a wake-up.
    private static let collectingTime: Int32 = 50
    /// Nanoseconds after which the kernel has handed on everything that came before an end.
    private static let drainTime: Int64 = 4 * 50_000_000

    /// Begins to capture.
    ///
    /// - Parameters:
    ///   - interface: Its name; `any` is all of them.
    ///   - ports: Ports of servers; without any, all TCP packets are looked at.
    ///   - keys: Secrets of TLS.
    package init(_ interface: String, ports: [UInt16] = [], keys: FollowedKeyLog? = nil) throws(Fault) {
        var reason = [CChar](repeating: 0, count: Int(xmpptap_pcap_error_length()))
        guard let opened = pcap_create(interface, &reason) else { throw .other(Self.text(reason)) }
        // From here on it is closed by whoever lets go of it last.
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
        self.handle.noteLink()
    }

    /// Writes the packets to a pcapng file, too, as they were captured.
    ///
    /// - Parameters:
    ///   - path: The file, readable by its owner only.
    ///   - replaces: It may exist.
    ///   - tool: The name of the writing program in the file.
    ///   - hasSecrets: The secrets of the key log are written, too: whoever has the file can decrypt it.
    package func record(to path: String, replaces: Bool, tool: String, hasSecrets: Bool) throws(WriterFault) {
        recording = try PacketRecording(path, replaces: replaces, tool: tool, hasSecrets: hasSecrets)
        recording?.begin(interface, link: handle.linkNumber, captureLength: UInt32(Self.captureLength))
    }

    /// Why packets could not be written to the file of ``record(to:replaces:tool:hasSecrets:)``; nil while they can be.
    package var recordingFault: WriterFault? { recording?.fault }

    /// Whether this process may capture: 0, or the system's error number.
    package static var permission: Int32 {
        let descriptor = socket(AF_PACKET, Int32(SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return errno }
        close(descriptor)
        return 0
    }

    // MARK: Packets

    /// The descriptor to poll for packets; -1 if that is not possible.
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

    /// Reads on in the key log; whether it has grown.
    func readKeys() -> Bool {
        guard let lines = keys?.readOn(), !lines.isEmpty else { return false }
        recording?.add(secrets: lines)
        return true
    }

    /// Packets that the kernel has dropped since the last call, since it had no room for them.
    func takeDropped() -> UInt32 {
        var figures = pcap_stat()
        guard pcap_stats(handle.pcap, &figures) == 0 else { return 0 }
        defer { dropped = figures.ps_drop }
        return figures.ps_drop &- dropped
    }

    /// Writes the packets captured so far to the file, except those whose secrets may still arrive.
    func flush() { recording?.flushSettled() }

    /// Writes everything: no more packets and secrets come.
    func finish() { recording?.flush() }

    /// Gives out only what was captured until now.
    func stop() { end = Self.now }

    /// Whether ``stop()`` was called, and everything until then is here.
    var isDrained: Bool { end.map { Self.now.nanoseconds &- $0.nanoseconds > Self.drainTime } ?? false }

    /// The wall clock, of which packets have their times.
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

    /// Tunnels that ``PacketTunnel`` decodes. The kernel cannot compare the ports of the packets in them.
    private static let tunnels =
        "ip proto 4 or ip proto 41 or ip proto 47 or ip6 proto 4 or ip6 proto 41 or ip6 proto 47"
        + " or udp dst port 4789 or udp dst port 8472 or udp dst port 6081"
    /// Fragments. Only the first fragment of a datagram has ports.
    private static let fragments = "ip[6:2] & 0x1fff != 0 or (ip6 and ip6[6] = 44)"

    /// The packets that the kernel hands on: TCP packets of the ports, also with one or two VLAN tags, tunnels and fragments.
    /// The second filter is for links without VLANs.
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

/// What libpcap reads packets from: a file or an interface.
struct PcapHandle {
    /// Closes it.
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

    /// - Parameter buffer: The buffer of the file that it reads, freed with it.
    init(_ pcap: OpaquePointer, buffer: UnsafeMutablePointer<CChar>? = nil) { owner = Owner(pcap, buffer) }

    var pcap: OpaquePointer { owner.pcap }

    /// Notes what packets look like, once that is known.
    mutating func noteLink() {
        link = LinkType(UInt32(bitPattern: pcap_datalink(pcap)))
        // The second number of a time counts microseconds or nanoseconds (pcap_set_tstamp_precision).
        unit = pcap_get_tstamp_precision(pcap) == PCAP_TSTAMP_PRECISION_NANO ? 1 : 1000
    }

    /// The `LINKTYPE_` of its packets: those of raw IP have another number in files.
    var linkNumber: UInt16 { link == .raw ? 101 : UInt16(truncatingIfNeeded: pcap_datalink(pcap)) }

    /// Reads the next packet; returns the result of pcap_next_ex(3): 1, or 0 if nothing is available yet, or negative.
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

    /// What libpcap says of the last call that failed.
    var reason: String { pcap_geterr(pcap).map { String(cString: $0) } ?? "" }
}
