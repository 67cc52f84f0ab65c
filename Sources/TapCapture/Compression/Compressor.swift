internal import CZlib
internal import Glibc

/// Compresses what is written to one file. What has come out can be read without what follows.
public final class Compressor {
    private enum Stream {
        case gzip(UnsafeMutablePointer<z_stream>)
        case zstd(Zstandard, OpaquePointer)
    }

    private static let piece = 64 << 10

    private let stream: Stream
    private let place = UnsafeMutableRawBufferPointer.allocate(byteCount: piece, alignment: 16)
    /// Whether something was compressed since the last end.
    private var isWithinMember = false

    /// A compressor; nil where its library is not installed, or there is no memory.
    public init?(_ compression: Compression) {
        switch compression {
        case .gzip:
            let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
            stream.initialize(to: z_stream())
            self.stream = .gzip(stream)
            guard xmpptap_deflate_gzip(stream) == Z_OK else { return nil }
        case .zstd:
            guard let library = Zstandard.library, let context = library.createCompressor() else {
                place.deallocate()
                return nil
            }
            // The default level takes three times as long on logs, for 2 % less.
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
        place.deallocate()
    }

    /// What stands for all bytes up to the last of these, flushed; nil where there is no memory.
    public func compress(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        isWithinMember = true
        return run(bytes, isEnd: false)
    }

    /// The end of what was compressed; nothing where there is none. What follows is another member.
    public func finish() -> [UInt8] {
        guard isWithinMember else { return [] }
        isWithinMember = false
        return run(UnsafeRawBufferPointer(start: nil, count: 0), isEnd: true) ?? []
    }

    private func run(_ input: UnsafeRawBufferPointer, isEnd: Bool) -> [UInt8]? {
        // For both libraries the input is not const, and is not changed.
        let source = UnsafeMutableRawPointer(mutating: input.baseAddress)
        var output: [UInt8] = []
        switch stream {
        case .gzip(let stream):
            stream.pointee.next_in = source?.assumingMemoryBound(to: UInt8.self)
            stream.pointee.avail_in = UInt32(clamping: input.count)
            repeat {
                stream.pointee.next_out = place.baseAddress?.assumingMemoryBound(to: UInt8.self)
                stream.pointee.avail_out = UInt32(place.count)
                _ = deflate(stream, isEnd ? Z_FINISH : Z_SYNC_FLUSH)
                output += place.prefix(place.count - Int(stream.pointee.avail_out))
            } while stream.pointee.avail_out == 0
            if isEnd { deflateReset(stream) }
        case .zstd(let library, let context):
            var from = Zstandard.Buffer(bytes: source, size: input.count)
            var rest = 0
            repeat {
                var into = Zstandard.Buffer(bytes: place.baseAddress, size: place.count)
                rest = library.compress(context, &into, &from, isEnd ? Zstandard.end : Zstandard.flush)
                guard library.isError(rest) == 0 else { return nil }
                output += place.prefix(into.position)
            } while rest > 0
        }
        return output
    }
}
