internal import CZlib
internal import Glibc

/// Compresses the data of one file. Each output can be decompressed without the later ones.
package final class Compressor {
    private enum Stream {
        case gzip(UnsafeMutablePointer<z_stream>)
        case zstd(Zstandard, OpaquePointer)
    }

    private static let piece = 64 << 10

    private let stream: Stream
    /// Whether data was compressed since the last end of a member.
    private var isWithinMember = false

    /// Creates a compressor; nil if its library is not installed, or memory is exhausted.
    ///
    /// - Parameter isFast: Whether speed is more important than size; for gzip only.
    package init?(_ compression: Compression, isFast: Bool = false) {
        switch compression {
        case .gzip:
            let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
            stream.initialize(to: z_stream())
            self.stream = .gzip(stream)
            let level = isFast ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION
            guard xmpptap_deflate_gzip(stream, level) == Z_OK else { return nil }
        case .zstd:
            guard let library = Zstandard.library, let context = library.createCompressor() else { return nil }
            // The default level takes three times as long on logs, and saves only 2 % of the size.
            _ = library.setParameter(context, Zstandard.level, 1)
            stream = .zstd(library, context)
        }
    }

    deinit {
        switch stream {
        case .gzip(let stream):
            deflateEnd(stream)
            stream.deallocate()
        case .zstd(let library, let context): _ = library.freeCompressor(context)
        }
    }

    /// Compresses bytes and flushes the compressor, so that the result represents all bytes so far; nil if memory is
    /// exhausted.
    package func compress(_ bytes: RawSpan) -> [UInt8]? {
        isWithinMember = true
        return bytes.withUnsafeBytes { run($0, isEnd: false) }
    }

    /// Ends the member and returns its last bytes; empty if no member was begun. Later data begins another member.
    package func finish() -> [UInt8] {
        guard isWithinMember else { return [] }
        isWithinMember = false
        return run(UnsafeRawBufferPointer(start: nil, count: 0), isEnd: true) ?? []
    }

    private func run(_ input: UnsafeRawBufferPointer, isEnd: Bool) -> [UInt8]? {
        // Both libraries declare the input as mutable, but do not change it.
        let source = UnsafeMutableRawPointer(mutating: input.baseAddress)
        var output: [UInt8] = []
        switch stream {
        case .gzip(let stream):
            stream.pointee.next_in = source?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_in = UInt32(clamping: input.count)
            repeat {
                output.append(upTo: Self.piece) { place in
                    stream.pointee.next_out = place
                    stream.pointee.avail_out = UInt32(Self.piece)
                    _ = deflate(stream, isEnd ? Z_FINISH : Z_SYNC_FLUSH)
                    return Self.piece - Int(stream.pointee.avail_out)
                }
            } while stream.pointee.avail_out == 0
            if isEnd { deflateReset(stream) }
        case .zstd(let library, let context):
            var from = Zstandard.Buffer(bytes: source, size: input.count)
            var rest = 0
            repeat {
                output.append(upTo: Self.piece) { place in
                    var into = Zstandard.Buffer(bytes: place, size: Self.piece)
                    rest = library.compress(context, &into, &from, isEnd ? Zstandard.end : Zstandard.flush)
                    return into.position
                }
                guard library.isError(rest) == 0 else { return nil }
            } while rest > 0
        }
        return output
    }
}
