internal import TapRecord

/// The format of a file that is not a JSON log, capture or client's log, recognised by its first bytes.
package enum FileFormat: Sendable, Hashable, CaseIterable {
    case textLog
    /// JSON records of xmpptap without a header before them.
    case headerless
    /// A file compressed by the program of this name.
    case gzip, bzip2, xz, zstd
    case zip
    case image
    /// An SVG drawing, for example one that `explain` has made.
    case svg
    /// A web page, for example one that `explain` has made.
    case html
    case pdf
    case sqlite

    /// The signatures of binary formats, which cannot be logs.
    private static let signatures: [([UInt8], FileFormat)] = [
        (Compression.gzip.signature, .gzip), (Array("BZh".utf8), .bzip2), ([0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00], .xz),
        (Compression.zstd.signature, .zstd), ([0x50, 0x4B, 0x03, 0x04], .zip),
        ([0x89, 0x50, 0x4E, 0x47], .image), ([0xFF, 0xD8, 0xFF], .image), (Array("GIF8".utf8), .image),
        (Array("RIFF".utf8), .image), (Array("%PDF-".utf8), .pdf), (Array("SQLite format 3".utf8), .sqlite),
    ]

    /// Returns the format of a binary file, which cannot be a log; nil if the file may be a log.
    static func ofBytes(_ beginning: [UInt8]) -> FileFormat? {
        signatures.first { beginning.starts(with: $0.0) }?.1
    }

    /// Returns the format of a text file that is not a supported log; nil if it is unknown.
    static func ofText(_ beginning: [UInt8]) -> FileFormat? {
        let lines = beginning.split(separator: 0x0A, maxSplits: maximumLines)
        if lines.prefix(maximumLines).contains(where: isTextLog) { return .textLog }
        if let first = lines.first, (try? RecordLine(json: Array(first).span.bytes)) != nil { return .headerless }
        let head = String(decoding: beginning, as: UTF8.self).drop(while: \.isWhitespace)
        if head.hasPrefix("<svg") || head.hasPrefix("<?xml") && head.contains("<svg") { return .svg }
        let isPage = ["<!doctype html", "<html"].contains { head.prefix($0.count).lowercased() == $0 }
        return isPage ? .html : nil
    }

    /// The number of lines at the beginning that are examined.
    private static let maximumLines = 5

    /// Returns whether a line is a line of a text log of xmpptap, or the comment at its beginning.
    private static func isTextLog(_ line: ArraySlice<UInt8>) -> Bool {
        // `# 2026-11-21T17:22:42.102Z xmpptap 0.4.0 log info`
        let words = line.prefix(200).split(separator: 0x20)
        if words.count >= 5, words[0].elementsEqual("#".utf8), words[2].elementsEqual("xmpptap".utf8) { return true }
        // `2026-11-21T17:22:42.102Z [3 juliet@example.org/balcony] SEND:`, `17:22:42.102 info [3] net:`
        let time = line.prefix { $0 != 0x20 }
        guard isStamp(time) else { return false }
        var rest = line[time.endIndex...].dropFirst()
        let word = rest.prefix { $0 != 0x20 }
        if Level.allCases.contains(where: { word.elementsEqual($0.name.utf8) }) {
            rest = rest[word.endIndex...].dropFirst()
        }
        let number = rest.dropFirst().prefix(while: isDigit)
        guard rest.first == 0x5B, !number.isEmpty else { return false }
        let end = rest[number.endIndex...]
        return end.first == 0x20 || end.starts(with: "] ".utf8)
    }

    /// Returns whether a word is a time in a format of text logs.
    static func isStamp(_ word: ArraySlice<UInt8>) -> Bool {
        let shape = word.map { $0 >= 0x30 && $0 <= 0x39 ? 0x30 : $0 == 0x2D ? 0x2B : $0 }
        return ["00:00:00.000", "0000+00+00T00:00:00.000Z", "0000+00+00T00:00:00.000+00:00"].contains {
            shape.elementsEqual($0.utf8)
        }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }
}

extension FileFormat {
    /// A description of the file: the end of a sentence that begins with the file's name.
    var phrase: String {
        switch self {
        case .textLog: "is a text log without the XML of items"
        case .headerless: "begins with a record, not with the header of a JSON log"
        case .gzip, .bzip2, .xz, .zstd, .zip: "is compressed (\(self))"
        case .image: "is an image"
        case .svg: "is a drawing (SVG)"
        case .html: "is a web page (HTML)"
        case .pdf: "is a PDF document"
        case .sqlite: "is an SQLite database"
        }
    }
}
