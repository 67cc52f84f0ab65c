internal import TapCore
internal import TapDiagnosis
internal import TapRecord

/// A file that is the log of a client or a server, read line by line.
struct ClientLogPart {
    /// What stands for the header that such a file does not have.
    let header: RecordHeader
    private var source: ClientLogSource
    private var runner: SourceRunner
    private var records: ArraySlice<RecordLine> = []
    private var hasEnded = false
    private var fault: CompressionFault?

    /// Reads as much as the format is learned from: up to ``ClientLogSource/learningLines`` lines, less if the file ends, or if a
    /// pipe has shown items and pauses.
    ///
    /// - Parameter midnight: That before the first line, for a log without days.
    /// - Throws: ``ReaderFault`` if none of these lines shows an item, or reading fails.
    init(
        first: Range<Int>,
        _ lines: inout LineReader,
        _ path: String,
        _ decoding: Decoding,
        _ midnight: Timestamp?
    ) throws(ReaderFault) {
        let run = Run()
        var source = ClientLogSource(run.secrets, decoding.redaction, zone: decoding.zone, midnight: midnight)
        runner = SourceRunner(run: run, options: decoding.applied(to: ClientLogSource.options))
        let beginning = Self.copy(first, lines)
        var line = beginning
        var (count, bytes) = (0, 0)
        reading: while true {
            source.take(line)
            count += 1
            bytes += line.count
            guard count < ClientLogSource.learningLines, bytes < ClientLogSource.learningBytes else { break }
            if source.hasItems, !lines.hasMore() { break }
            switch lines.next() {
            case .whole(let range), .torn(let range): line = Self.copy(range, lines)
            case .tooLong where source.hasItems: line = []
            case .damaged(let damage) where source.hasItems:
                fault = damage
                break reading
            case .end: break reading
            case .tooLong: throw ReaderFault(code: .notOurs, path: path)
            case .failed(let cause): throw ReaderFault(code: .cannotRead(errno: cause), path: path)
            case .damaged(let fault): throw ReaderFault(code: .compressed(fault), path: path)
            }
        }
        guard source.hasItems || source.pause() else { throw ReaderFault(code: .notOurs, path: path) }
        source.learn()
        self.source = source
        header = RecordHeader(
            tool: source.writer.log,
            time: source.began,
            level: "verbose",
            isComplete: false,
            redaction: decoding.redaction,
            run: Self.word(path, beginning)
        )
    }

    /// What stands for the word of a run, which a client's log does not have: of each file its own, since each counts its
    /// sessions from 1, and of the same file the same (FNV-1a).
    private static func word(_ path: String, _ line: [UInt8]) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in [Array(path.utf8), line].joined(separator: [0]) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return "client-log-" + String(hash, radix: 16)
    }

    /// The next record; nil at the end of the file, or where ``takeFault()`` says what is wrong.
    mutating func next(_ lines: inout LineReader, _ path: String) throws(ReaderFault) -> RecordLine? {
        while true {
            if let record = records.popFirst() { return record }
            // One by one: the lines from which the format was learned are up to 8 MiB, and their records are larger.
            if let input = source.next() {
                runner.take(input) { records.append($0) }
                continue
            }
            guard !hasEnded else { return nil }
            switch lines.next() {
            case .whole(let range), .torn(let range): source.take(Self.copy(range, lines))
            case .tooLong: continue
            case .end where lines.follows:
                guard source.pause() else { return nil }
            case .end:
                hasEnded = true
                source.finish()
            case .failed(let cause): throw ReaderFault(code: .cannotRead(errno: cause), path: path)
            case .damaged(let damage):
                fault = damage
                return nil
            }
        }
    }

    /// What is wrong with the compressed file behind the record given out last; once.
    mutating func takeFault() -> CompressionFault? {
        defer { fault = nil }
        return fault
    }

    private static func copy(_ range: Range<Int>, _ lines: borrowing LineReader) -> [UInt8] {
        lines.withBytes(of: range) { bytes in bytes.withUnsafeBytes { Array($0) } }
    }
}
