internal import TapCapture

/// Reports the lines of files that were skipped: of each file the first ones, and at the end how many more there were.
struct DamageReport {
    /// More lines of one file would hide all else that is said.
    private static let mostNamed = 16
    /// How many lines of each file were skipped.
    private var lines: [String: Int] = [:]
    /// Whether every line was read, but those where writing was interrupted.
    private(set) var isWhole = true

    /// Reports a line.
    mutating func note(_ line: DamagedLine, isReported: Bool = true) {
        isWhole = isWhole && line.isInterruption
        guard isReported else { return }
        let count = lines[line.path, default: 0] + 1
        lines[line.path] = count
        if count <= Self.mostNamed { Console.complain("\(line)") }
    }

    /// Reports how many lines were not named.
    func end() {
        for (path, count) in lines.sorted(by: { $0.key < $1.key }) {
            Self.complain(of: path, skipped: count, named: Self.mostNamed)
        }
    }

    /// Reports how many lines of a file were skipped beside those that were named.
    static func complain(of path: String, skipped: Int, named: Int) {
        guard skipped > named else { return }
        let count = skipped - named
        Console.complain("\(count) more line\(count == 1 ? "" : "s") of \(path) skipped")
    }
}
