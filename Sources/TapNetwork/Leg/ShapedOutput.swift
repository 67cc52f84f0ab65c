internal import NIOCore
internal import TapCore

/// Output of a leg that is delayed according to a ``LinkShape``, and the time of the next piece. Times are passed in;
/// it reads no clock.
struct ShapedOutput {
    /// Number of waiting bytes from which the leg counts as full, so that the other leg is not read.
    static let limit = 64 << 10
    /// Pieces per second if the shape has no piece length.
    private static let piecesPerSecond = 20

    /// Bytes written while one shape applied; a nil shape means no delay.
    private struct Segment {
        var shape: LinkShape?
        var bytes: ByteBuffer
    }

    private var segments: [Segment]
    /// Earliest time of the next piece, in nanoseconds of any monotonic clock.
    private var due: Int64 = .min
    /// Whether sending has paused: unused time does not allow a burst later.
    private var isResting = true
    /// Number of waiting bytes.
    private(set) var count = 0

    init(_ shape: LinkShape) { segments = [Segment(shape: shape, bytes: ByteBuffer())] }

    /// Whether no bytes are waiting, and later writes have no shape.
    var isOver: Bool { count == 0 && segments.allSatisfy { $0.shape == nil } }

    /// Applies another shape to bytes written later.
    mutating func change(to shape: LinkShape?) {
        if segments.last?.bytes.readableBytes == 0 { segments.removeLast() }
        segments.append(Segment(shape: shape, bytes: ByteBuffer()))
    }

    mutating func append(_ bytes: Span<UInt8>) {
        count += bytes.count
        segments[segments.count - 1].bytes.writeBytes(bytes.bytes)
    }

    /// Returns the next piece and the time of the next call. The piece is empty if its time has not come. Returns nil
    /// if no bytes are waiting.
    mutating func takePiece(at now: Int64) -> (bytes: [UInt8], next: Int64?)? {
        guard count > 0 else { return nil }
        if isResting { due = max(due, now) }
        isResting = false
        guard due <= now else { return ([], due) }
        while segments[0].bytes.readableBytes == 0 { segments.removeFirst() }
        let waiting = segments[0].bytes.readableBytes
        let shape = segments[0].shape
        let size = max(1, shape?.slice ?? shape?.bytesPerSecond.map { $0 / Self.piecesPerSecond } ?? waiting)
        let piece = segments[0].bytes.readBytes(length: min(size, waiting)) ?? []
        // Free the sent bytes, even if more bytes are always waiting.
        if segments[0].bytes.readableBytes == 0 {
            segments[0].bytes.clear()
        } else if segments[0].bytes.readerIndex > Self.limit {
            segments[0].bytes.discardReadBytes()
        }
        count -= piece.count
        if count == 0 { segments.removeFirst(segments.count - 1) }
        let time = shape?.bytesPerSecond.map { Int64(piece.count) * 1_000_000_000 / Int64(max(1, $0)) } ?? 0
        due += max(time, shape?.sliceEvery ?? 0)
        if count == 0 { isResting = true }
        return (piece, count > 0 ? due : nil)
    }

    /// Records that the connection is not writable for now; the pause does not allow a burst later.
    mutating func rest() { isResting = true }

    mutating func takeAll() -> [UInt8] {
        let bytes = segments.flatMap { $0.bytes.readableBytesView }
        segments = [Segment(shape: segments.last?.shape, bytes: ByteBuffer())]
        count = 0
        isResting = true
        return bytes
    }
}
