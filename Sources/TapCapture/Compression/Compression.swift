/// The compression format of a file.
package enum Compression: Sendable, Hashable, CaseIterable {
    /// The gzip format (RFC 1952), by zlib.
    case gzip
    /// The Zstandard format (RFC 8878), by libzstd if it is installed.
    case zstd

    /// Creates the compression for the ending of a file's name; nil if the file is not compressed.
    package init?(path: String) {
        guard let compression = Self.allCases.first(where: { path.hasSuffix($0.ending) }) else { return nil }
        self = compression
    }

    /// Creates the compression for the first bytes of a file; nil if the file is not compressed.
    init?(beginning: some Collection<UInt8>) {
        guard let compression = Self.allCases.first(where: { beginning.starts(with: $0.signature) }) else { return nil }
        self = compression
    }

    /// The ending of file names: `.gz` or `.zst`.
    package var ending: String {
        switch self {
        case .gzip: ".gz"
        case .zstd: ".zst"
        }
    }

    /// The first bytes of each member of a file. For gzip, the third byte is the compression method; only one is
    /// defined.
    var signature: [UInt8] {
        switch self {
        case .gzip: [0x1F, 0x8B, 0x08]
        case .zstd: [0x28, 0xB5, 0x2F, 0xFD]
        }
    }

    /// Whether the library of the format is installed.
    package var isAvailable: Bool { self == .gzip || Zstandard.library != nil }

    /// The message if libzstd is not installed: the end of a sentence.
    package static let missingLibrary = "libzstd.so.1 is not installed; install it, or use the ending .gz"
}

/// A problem of a compressed file. A file consists of members (zstd: frames), each compressed separately, one for
/// each run of the writer.
package enum CompressionFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// A member has no end, because the program that wrote it was killed; another member or the end of the file
    /// follows. The offset in bytes in the compressed file.
    case truncated(at: UInt64)
    /// The data cannot be decompressed: the offset in bytes in the compressed file, and the library's reason. Reading
    /// continues at the next member.
    case damaged(at: UInt64, String)

    /// The fault, as a human-readable clause.
    package var description: String {
        switch self {
        case .truncated(let place):
            "its compressed data is cut off at byte \(place): the program that wrote it was stopped, or is still writing"
        case .damaged(let place, let reason): "its compressed data is damaged at byte \(place): \(reason)"
        }
    }
}
