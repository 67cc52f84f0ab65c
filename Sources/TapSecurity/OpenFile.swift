internal import Glibc

/// Reads whole files.
package enum OpenFile {
    /// Reads the rest of an open file, but stops as soon as more than `limit` bytes were read.
    ///
    /// - Returns: The bytes; nil if reading fails, with the reason in `errno`.
    package static func read(_ descriptor: Int32, limit: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16 << 10)
        while bytes.count <= limit {
            let count = chunk.withUnsafeMutableBytes { Glibc.read(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return nil }
            guard count > 0 else { break }
            bytes += chunk[..<count]
        }
        return bytes
    }
}

extension String {
    /// The lines of a text file with their numbers, from 1, without leading and trailing spaces and tabs.
    package var numberedRows: [(number: Int, row: Substring)] {
        // Some editors begin a file with a byte order mark.
        let text = unicodeScalars.first == "\u{FEFF}" ? String(unicodeScalars.dropFirst()) : self
        let rows = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        return rows.enumerated().map { (number: $0.offset + 1, row: $0.element.trimmed) }
    }
}

extension Substring {
    /// The text without leading and trailing spaces and tabs.
    package var trimmed: Substring {
        var text = drop { $0 == " " || $0 == "\t" }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }
}
