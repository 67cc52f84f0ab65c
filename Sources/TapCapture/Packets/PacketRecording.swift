internal import Glibc
internal import XMPPCore

/// Writes captured packets to a pcapng file.
///
/// If writing fails, nothing more is written; the file keeps the earlier packets.
final class PacketRecording {
    private let path: String
    private let descriptor: Int32
    private let hasSecrets: Bool
    private var blocks: PcapngBlocks
    /// Length of the complete blocks in the file, in bytes.
    private var written: off_t = 0
    /// The error that ended the writing; nil if there was none.
    private(set) var fault: WriterFault?

    /// The arrival time of the oldest unwritten packet; nil if all are written.
    private var oldest: ContinuousClock.Instant?

    /// Number of bytes collected before they are written.
    private static let piece = 256 << 10
    /// Number of bytes collected before they are written, if packets wait for their secrets.
    private static let longPiece = 8 << 20
    /// Time for which packets wait for their secrets: a program may log secrets after it has used them, but readers of
    /// the file need the secrets before the packets.
    private static let secretsTimeout = Duration.seconds(2)

    init(_ path: String, replaces: Bool, tool: String, hasSecrets: Bool) throws(WriterFault) {
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | (replaces ? O_TRUNC : O_EXCL)
        descriptor = open(path, flags, 0o600)
        guard descriptor >= 0 else { throw WriterFault(errno == EEXIST ? .exists : .cannotOpen, path, errno) }
        self.path = path
        self.hasSecrets = hasSecrets
        blocks = PcapngBlocks(tool: tool)
    }

    deinit { close(descriptor) }

    /// Writes the description of the interface, which must precede its packets.
    func begin(_ interface: String, link: UInt16, captureLength: UInt32) {
        blocks.addInterface(link: link, captureLength: captureLength, name: interface)
        flush()
    }

    func add(_ packet: CapturedPacket, _ bytes: Span<UInt8>) {
        guard fault == nil else { return }
        if oldest == nil { oldest = .now }
        blocks.addPacket(
            interface: 0,
            at: packet.time,
            originalLength: packet.originalLength,
            bytes.extracting(first: 0),
            bytes,
            options: { _ in }
        )
        if blocks.count >= (hasSecrets ? Self.longPiece : Self.piece) { flush() }
    }

    /// Adds lines of a key log before the packets that are not written yet, if the file is to contain secrets.
    func add(secrets lines: [UInt8]) {
        guard fault == nil, hasSecrets else { return }
        blocks.insertSecrets(lines)
    }

    /// Writes the added packets, except those whose secrets may still arrive.
    func flushSettled() {
        if hasSecrets, let oldest, oldest.duration(to: .now) < Self.secretsTimeout { return }
        flush()
    }

    /// Writes everything that was added.
    func flush() {
        oldest = nil
        guard fault == nil, blocks.count > 0 else { return }
        let bytes = blocks.takeBytes()
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress?.advanced(by: done), $0.count - done) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                fault = .writing(path, errno)
                // Readers of the file would treat an incomplete block as damage.
                if ftruncate(descriptor, written) == 0 { lseek(descriptor, written, SEEK_SET) }
                return
            }
            done += count
        }
        written += off_t(bytes.count)
    }
}
