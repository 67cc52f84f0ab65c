internal import TapCore
internal import TapDiagnosis
internal import TapRecord

/// A file that is the log of a client or a server, read line by line.
struct ClientLogPart {
    /// The header of the file's records, made up because a log of a client or a server has none.
    let header: RecordHeader
    private var source: ClientLogSource
    private var runner: SourceRunner
    private var records: ArraySlice<RecordLine> = []
    private var hasEnded = false
    private var fault: CompressionFault?

    /// Reads the lines from which the format is learned: up to ``ClientLogSource/learningLines`` lines and
    /// ``ClientLogSource/learningBytes`` bytes; fewer if the file ends, if its compressed data is damaged, or if a pipe
    /// has shown items and has no more data for now.
    ///
    /// - Parameter midnight: Midnight before the first line, for a log whose times have no date.
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
            source.process(line)
            count += 1
            bytes += line.count
            guard count < ClientLogSource.learningLines, bytes < ClientLogSource.learningBytes else { break }
            if source.hasItems, !lines.hasMore() { break }
            switch lines.next() {
            case .whole(let range), .incomplete(let range): line = Self.copy(range, lines)
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

    /// Returns the midnight before the first line, see ``ClientLogClock/midnight(near:)``.
    func midnight(near other: Timestamp) -> Timestamp? { source.midnight(near: other) }

    /// Returns an identifier of the run, which a client's log does not have: a hash (FNV-1a) of the path and the first
    /// line. It differs between files, because each file numbers its sessions from 1, and is the same whenever the same
    /// file is read.
    private static func word(_ path: String, _ line: [UInt8]) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in [Array(path.utf8), line].joined(separator: [0]) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return "client-log-" + String(hash, radix: 16)
    }

    /// Returns the next record; nil at the end of the data so far, or if ``takeFault()`` has a fault to return.
    mutating func next(_ lines: inout LineReader, _ path: String) throws(ReaderFault) -> RecordLine? {
        while true {
            if let record = records.popFirst() { return record }
            // Take one input at a time: the format is learned from up to 8 MiB of lines, and their records are larger.
            if let input = source.next() {
                runner.process(input) { records.append($0) }
                continue
            }
            guard !hasEnded else { return nil }
            switch lines.next() {
            case .whole(let range), .incomplete(let range): source.process(Self.copy(range, lines))
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

    /// Returns the fault in the compressed data after the last record, once; nil if there is none.
    mutating func takeFault() -> CompressionFault? {
        defer { fault = nil }
        return fault
    }

    private static func copy(_ range: Range<Int>, _ lines: borrowing LineReader) -> [UInt8] {
        lines.withBytes(of: range) { bytes in bytes.withUnsafeBytes { Array($0) } }
    }
}
