internal import CZlib

/// Decompresses the messages of one direction of a WebSocket (RFC 7692 §7.2.2).
final class MessageInflater {
    /// The reason why bytes cannot be decompressed.
    enum Fault: Error, Equatable {
        case damaged
        /// The message has more bytes than the limit.
        case tooLong
    }

    /// zlib stores the address of this structure, which must not change.
    private let stream: UnsafeMutablePointer<z_stream>
    /// The memory for decompressed bytes.
    private var room = [UInt8](repeating: 0, count: roomBytes)
    private let keepsContext: Bool
    private let messageBytes: Int
    /// Number of bytes of the current message so far.
    private var made = 0

    private static let roomBytes = 16 << 10
    /// The end of each message, which its sender removes (RFC 7692 §7.2.1).
    private static let tail: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]

    /// Creates an inflater; nil if memory is exhausted.
    ///
    /// - Parameters:
    ///   - keepsContext: Whether messages may refer to earlier ones. The window always has the maximum size, which
    ///     includes all smaller ones.
    ///   - messageBytes: Maximum number of bytes of one message.
    init?(keepsContext: Bool, messageBytes: Int) {
        self.keepsContext = keepsContext
        self.messageBytes = messageBytes
        stream = .allocate(capacity: 1)
        stream.initialize(to: z_stream())
        guard xmpptap_inflate_raw(stream) == Z_OK else { return nil }
    }

    deinit {
        inflateEnd(stream)
        stream.deallocate()
    }

    /// Appends the decompressed bytes of a piece of a message to `output`.
    func inflate(_ piece: [UInt8], endsMessage: Bool, into output: inout [UInt8]) throws(Fault) {
        try inflate(piece, into: &output)
        guard endsMessage else { return }
        try inflate(Self.tail, into: &output)
        made = 0
        if !keepsContext { inflateReset(stream) }
    }

    private func inflate(_ piece: [UInt8], into output: inout [UInt8]) throws(Fault) {
        var piece = piece
        var read = 0
        var isFull = false
        // Output may be left when all of the input was read.
        while read < piece.count || isFull {
            let step = step(&piece, from: read, into: &output)
            read += step.read
            made += step.made
            isFull = step.made == Self.roomBytes
            guard made <= messageBytes else { throw .tooLong }
            switch step.code {
            case Z_OK: break
            // No progress was possible: all of the output was taken before.
            case Z_BUF_ERROR where read == piece.count: return
            // A final block; the bytes after it may still refer to the window (RFC 7692 §7.2.3.5).
            case Z_STREAM_END:
                inflateResetKeep(stream)
                isFull = false
            default: throw .damaged
            }
        }
    }

    private func step(
        _ piece: inout [UInt8],
        from start: Int,
        into output: inout [UInt8]
    ) -> (code: Int32, read: Int, made: Int) {
        let (available, stream) = (piece.count - start, self.stream)
        let code = piece.withUnsafeMutableBufferPointer { input in
            room.withUnsafeMutableBufferPointer { room in
                stream.pointee.next_in = input.baseAddress.map { $0 + start }
                stream.pointee.avail_in = UInt32(clamping: available)
                stream.pointee.next_out = room.baseAddress
                stream.pointee.avail_out = UInt32(room.count)
                return CZlib.inflate(stream, Z_SYNC_FLUSH)
            }
        }
        let made = room.count - Int(stream.pointee.avail_out)
        output += room.prefix(made)
        return (code, available - Int(stream.pointee.avail_in), made)
    }
}
