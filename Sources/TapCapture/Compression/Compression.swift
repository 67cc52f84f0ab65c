/// How a file is compressed.
package enum Compression: Sendable, Hashable, CaseIterable {
    /// RFC 1952, by zlib.
    case gzip
    /// RFC 8878, by libzstd if that is installed.
    case zstd

    /// The compression of a file by the ending of its name; nil is none.
    package init?(path: String) {
        guard let compression = Self.allCases.first(where: { path.hasSuffix($0.ending) }) else { return nil }
        self = compression
    }

    /// The compression of a file by its first bytes; nil is none.
    init?(beginning: some Collection<UInt8>) {
        guard let compression = Self.allCases.first(where: { beginning.starts(with: $0.signature) }) else { return nil }
        self = compression
    }

    /// `.gz` or `.zst`.
    package var ending: String {
        switch self {
        case .gzip: ".gz"
        case .zstd: ".zst"
        }
    }

    /// How each member of a file begins. Of gzip the third byte is the only method that there is.
    var signature: [UInt8] {
        switch self {
        case .gzip: [0x1F, 0x8B, 0x08]
        case .zstd: [0x28, 0xB5, 0x2F, 0xFD]
        }
    }

    /// Whether its library is installed.
    package var isAvailable: Bool { self == .gzip || Zstandard.library != nil }

    /// The reason if a library for compression is not installed: the end of a sentence.
    package static let missingLibrary = "libzstd.so.1 is not installed; install it, or use the ending .gz"
}

/// A problem of a compressed file. Its members are the parts compressed at one time: a run of the writer.
package enum CompressionFault: Error, Sendable, Hashable, CustomStringConvertible {
    /// A member without its end, as of a program that was killed, which another member or the end of the file follows; the
    /// place in bytes from the beginning of the compressed file.
    case truncated(at: UInt64)
    /// The data here cannot be decompressed: the same place, and the library's reason. Reading continues at the next
    /// member.
    case damaged(at: UInt64, String)

    /// A clause for people.
    package var description: String {
        switch self {
        case .truncated(let place):
            "its compressed data is cut off at byte \(place): the program that wrote it was stopped, or is still writing"
        case .damaged(let place, let reason): "its compressed data is damaged at byte \(place): \(reason)"
        }
    }
}
