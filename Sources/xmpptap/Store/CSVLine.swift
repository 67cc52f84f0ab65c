/// A line of comma-separated values (RFC 4180).
enum CSVLine {
    /// Returns the line of some values, without its end.
    static func text(_ values: [String]) -> String { values.map(quoted).joined(separator: ",") }

    /// Quotes a value (RFC 4180 §2). A value that a spreadsheet would take for a formula gets an apostrophe before it.
    private static func quoted(_ value: String) -> String {
        // Bytes, because a combining mark after a character makes it another one.
        let isFormula = value.utf8.first.map { "=+-@\t\r".utf8.contains($0) } ?? false
        guard isFormula || value.utf8.contains(where: { "\",\r\n".utf8.contains($0) }) else { return value }
        var bytes = Array("\"".utf8)
        if isFormula { bytes.append(0x27) }
        for byte in value.utf8 {
            if byte == 0x22 { bytes.append(byte) }
            bytes.append(byte)
        }
        bytes.append(0x22)
        return String(decoding: bytes, as: UTF8.self)
    }
}
