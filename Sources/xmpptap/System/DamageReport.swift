internal import TapCapture

/// Reports skipped lines of files: the first ones of each file, and at the end the number of others.
struct DamageReport {
    /// Maximum number of lines reported per file, so that they do not hide other messages.
    private static let maximumNamed = 16
    /// Number of skipped lines, by file.
    private var lines: [String: Int] = [:]
    /// Whether every line could be read, apart from lines cut by an interrupted write.
    private(set) var isWhole = true

    /// Reports a skipped line.
    mutating func record(_ line: DamagedLine, isReported: Bool = true) {
        isWhole = isWhole && line.isInterruption
        guard isReported else { return }
        let count = lines[line.path, default: 0] + 1
        lines[line.path] = count
        if count <= Self.maximumNamed { Console.printDiagnostic("\(line)") }
    }

    /// Reports how many other lines were skipped.
    func end() {
        for (path, count) in lines.sorted(by: { $0.key < $1.key }) {
            Self.printSkipped(of: path, skipped: count, named: Self.maximumNamed)
        }
    }

    /// Reports how many lines of a file were skipped in addition to the `named` ones.
    static func printSkipped(of path: String, skipped: Int, named: Int) {
        guard skipped > named else { return }
        let count = skipped - named
        Console.printDiagnostic("\(count) more line\(count == 1 ? "" : "s") of \(path) skipped")
    }
}
