internal import CZlib
internal import Glibc

/// Decompresses the members of a file, one after the other.
final class Decompressor {
    /// The result of one step.
    struct Step {
        /// The number of input bytes read and of output bytes made.
        var read: Int
        var made: Int
        var result: Result
    }

    enum Result {
        /// More input is needed, or the output was full.
        case within
        /// The member ends after the input bytes read.
        case end
        case damaged(String)
    }

    private enum Stream {
        case gzip(UnsafeMutablePointer<z_stream>)
        case zstd(Zstandard, OpaquePointer)
    }

    let compression: Compression
    private let stream: Stream
    /// The number of bytes passed to libzstd in one step: up to the next block boundary, because a step that fails
    /// does not say how much of its input was valid.
    private var need = firstNeed
    private static let firstNeed = 2
    private static let blockHeader = 3

    /// Creates a decompressor; nil if its library is not installed, or memory is exhausted.
    init?(_ compression: Compression) {
        self.compression = compression
        switch compression {
        case .gzip:
            let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
            stream.initialize(to: z_stream())
            self.stream = .gzip(stream)
            guard xmpptap_inflate_gzip(stream) == Z_OK else { return nil }
        case .zstd:
            guard let library = Zstandard.library, let context = library.createDecompressor() else { return nil }
            stream = .zstd(library, context)
        }
    }

    deinit {
        switch stream {
        case .gzip(let stream):
            inflateEnd(stream)
            stream.deallocate()
        case .zstd(let library, let context): _ = library.freeDecompressor(context)
        }
    }

    /// Prepares the decompressor for another member.
    func reset() {
        switch stream {
        case .gzip(let stream): inflateReset(stream)
        case .zstd(let library, let context): _ = library.resetDecompressor(context, Zstandard.session)
        }
        need = Self.firstNeed
    }

    /// Decompresses part of `input` to `place`, which has space for `room` bytes. Does not modify `input`.
    func step(_ input: UnsafeMutableRawBufferPointer, into place: UnsafeMutableRawPointer, _ room: Int) -> Step {
        switch stream {
        case .gzip(let stream):
            stream.pointee.next_in = input.baseAddress?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_in = UInt32(clamping: input.count)
            stream.pointee.next_out = place.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_out = UInt32(clamping: room)
            let code = inflate(stream, Z_NO_FLUSH)
            let read = input.count - Int(stream.pointee.avail_in)
            let made = room - Int(stream.pointee.avail_out)
            return switch code {
            case Z_OK, Z_BUF_ERROR: Step(read: read, made: made, result: .within)
            case Z_STREAM_END: Step(read: read, made: made, result: .end)
            default:
                Step(read: read, made: made, result: .damaged(stream.pointee.msg.map { String(cString: $0) } ?? ""))
            }
        case .zstd(let library, let context):
            var from = Zstandard.Buffer(bytes: input.baseAddress, size: min(input.count, need))
            var into = Zstandard.Buffer(bytes: place, size: room)
            let hint = library.decompress(context, &into, &from)
            guard library.isError(hint) == 0 else {
                let reason = library.errorName(hint).map { String(cString: $0) } ?? ""
                return Step(read: 0, made: 0, result: .damaged(reason))
            }
            // The hint includes the header of the next block.
            need = hint > Self.blockHeader ? hint - Self.blockHeader : max(1, hint)
            return Step(read: from.position, made: into.position, result: hint == 0 ? .end : .within)
        }
    }
}

extension Decompressor {
    /// Decompresses the bytes from an offset on, and appends the result, of at most `limit` bytes with those before. The libraries take
    /// pointers, which do not leave this function.
    fileprivate func step(
        _ input: inout [UInt8],
        from offset: Int,
        appendingTo output: inout [UInt8],
        limit: Int
    ) -> Step {
        let room = max(0, min(256 << 10, limit - output.count))
        var step = Step(read: 0, made: 0, result: .within)
        input.withUnsafeMutableBytes { bytes in
            let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[min(offset, bytes.count)...])
            output.append(upTo: room) { place in
                step = self.step(rest, into: place, room)
                return step.made
            }
        }
        return step
    }
}

extension Compression {
    /// Returns the decompressed members of `bytes`, as far as they are not damaged.
    ///
    /// - Parameter limit: The maximum number of bytes of the result.
    package func contents(of bytes: [UInt8], limit: Int) -> [UInt8] {
        guard let decompressor = Decompressor(self) else { return [] }
        var input = bytes
        var output: [UInt8] = []
        var position = 0
        while position < input.count, output.count < limit {
            let step = decompressor.step(&input, from: position, appendingTo: &output, limit: limit)
            position += step.read
            switch step.result {
            case .end: decompressor.reset()
            case .within: if step.read == 0, step.made == 0 { return output }
            case .damaged: return output
            }
        }
        return output
    }
}
