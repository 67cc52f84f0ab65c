internal import Glibc

/// Files that are read whole.
package enum OpenFile {
    /// The rest of an open file, up to its end or until there is more than `limit` bytes of it.
    ///
    /// - Returns: Nil if reading fails; `errno` says why.
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
    /// The lines of a text file, with their numbers from 1 and without the blanks around them.
    package var numberedRows: [(number: Int, row: Substring)] {
        // Some editors begin a file with a byte order mark.
        let text = unicodeScalars.first == "\u{FEFF}" ? String(unicodeScalars.dropFirst()) : self
        let rows = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
        return rows.enumerated().map { (number: $0.offset + 1, row: $0.element.trimmed) }
    }
}

extension Substring {
    /// Without the spaces and tabs at both ends.
    package var trimmed: Substring {
        var text = drop { $0 == " " || $0 == "\t" }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return text
    }
}
