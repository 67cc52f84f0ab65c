/// The place of the level in a log's own lines, by which these are recognised in logs without times.
///
/// Python's `logging` module prints the level first: `DEBUG    SEND: <…>`. Prosody prints it second, after a padded
/// name: `c2s55d0a2b7c8e0          debug<tab>SEND: <…>`. Container tools put words in front of both.
struct LogLevelColumn: Hashable {
    /// The number of words before the level.
    private let index: Int
    private let isLowerCase: Bool
    /// The byte after the level: a blank or a colon.
    private let mark: UInt8

    /// Python's levels, and Prosody's.
    private static let upper = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"].map { Array($0.utf8) }
    private static let lower = ["debug", "info", "warn", "error"].map { Array($0.utf8) }
    /// The number of words in which the level must be.
    private static let reach = 5

    /// Creates the place of the level in a line; nil if the line has none.
    init?(_ line: [UInt8]) {
        guard let found = Self.level(in: line) else { return nil }
        self = found.column
    }

    /// Returns whether Prosody has written a line: tabs separate its fields.
    static func isProsodys(_ line: [UInt8]) -> Bool {
        guard let found = level(in: line, reach: line.count) else { return false }
        return found.column.isLowerCase && found.column.mark == 0x09
    }

    /// Returns whether one of the words of a text is a level of Python's `logging` module.
    static func hasPythonLevel(_ text: ArraySlice<UInt8>) -> Bool {
        text.split { isBlank($0) || [0x3A, 0x5B, 0x5D, 0x28, 0x29, 0x7C].contains($0) }.contains { word in
            upper.contains { word.elementsEqual($0) }
        }
    }

    /// Returns the index at which the log's own text begins in a line with this column: text before it comes from a
    /// container tool.
    static func start(in line: [UInt8]) -> Int? {
        guard let found = level(in: line) else { return nil }
        return found.column.isLowerCase ? found.before : found.start
    }

    private static func level(
        in line: [UInt8],
        reach: Int = Self.reach
    ) -> (column: LogLevelColumn, start: Int, before: Int)? {
        var (position, before) = (0, 0)
        for index in 0..<reach {
            let start = line[position...].firstIndex { !isBlank($0) } ?? line.count
            let word = line[start...].prefix { !isBlank($0) }
            guard !word.isEmpty, word.first != 0x3C else { return nil }
            let name = word.prefix { $0 != 0x3A }
            let mark = name.endIndex < line.count ? line[name.endIndex] : 0x20
            if upper.contains(where: { name.elementsEqual($0) }), index == 0 || mark != 0x3A {
                return (LogLevelColumn(index, isLowerCase: false, mark), start, before)
            }
            // A word of a text is not padded.
            let isPadded = mark == 0x09 || start - position > 1
            if index > 0, isPadded, isBlank(mark), lower.contains(where: { name.elementsEqual($0) }) {
                return (LogLevelColumn(index, isLowerCase: true, mark), start, before)
            }
            position = word.endIndex
            before = start
        }
        return nil
    }

    private init(_ index: Int, isLowerCase: Bool, _ mark: UInt8) {
        (self.index, self.isLowerCase, self.mark) = (index, isLowerCase, mark)
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
