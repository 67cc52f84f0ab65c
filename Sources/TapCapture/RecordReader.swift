public import TapDiagnosis
public import TapRecord

internal import Glibc

/// Reads JSON logs and captures back: records in the order they were written, from one file or several parts of a run.
/// A file that is none of these may be the log of a client that shows what it sent and received: then the records are
/// those that its sessions would have had (see ``ClientLogSource``).
///
/// Nothing in a file is fatal but a schema that is newer than ours. A torn last line, and any other line that is not a
/// record, is reported as a ``DamagedLine`` and skipped; everything around it is read.
public final class RecordReader {
    /// What a file consists of.
    public enum Entry: Sendable {
        /// A header: the file was opened here.
        case header(RecordHeader)
        case record(RecordLine)
        /// A line that was passed over.
        case damage(DamagedLine)
        /// Records that stood before the header that comes next, in parts that were not named or are gone.
        case gap(MissingRecords)
    }

    /// Longer lines are passed over: many times what the largest item can need.
    static let longestLine = 64 << 20

    /// The header of the first file.
    public let firstHeader: RecordHeader
    /// Whether any of the files is a client's own log.
    public let hasClientLog: Bool
    /// Whether the entry given out last is of a client's own log.
    var isClientLog: Bool { parts.last?.isClientLog == true }
    /// Whether everything read so far is complete: every header says so, nothing was dropped or is missing, no line was
    /// damaged. False from the start if the first file is not the first part of its run.
    public private(set) var isComplete = true
    /// The words for what to try, of logins that are read from their items.
    let advice: Advice?
    /// Which lines of JSON logs and captures are passed over unread, after the headers; none by default. They count as if they
    /// had been read.
    public var passesOver: ((RawSpan) -> Bool)? {
        didSet { for part in parts { part.passesOver = passesOver } }
    }
    private var parts: [Part]
    private var continuity = Continuity()
    /// A header before which records are missing, once that is reported.
    private var held: RecordHeader?

    /// Opens files and reads their first headers.
    ///
    /// Parts of a run (`x.log.2`, `x.log.1`, `x.log`) may come in any order: they are read in the order in which they
    /// were written, one after the other. `-` is standard input.
    /// - Parameters:
    ///   - paths: The files; none is a mistake of the caller and reads as an empty file.
    ///   - advice: The words for what to try, of logins that are read from their items; nil leaves them out.
    /// - Throws: ``ReaderFault`` if a file cannot be read, is not a supported log, or was written by a newer program.
    public init(_ paths: [String], advice: Advice? = nil) throws(ReaderFault) {
        self.advice = advice
        var opened: [Part] = []
        for path in paths { opened.append(try Part(path: path, advice)) }
        // The sort is stable: files of one moment keep the order they were named in.
        let ordered = opened.map(\.header).readingOrder.map { opened[$0] }
        guard let first = ordered.first else { throw ReaderFault(code: .empty, path: "-") }
        firstHeader = first.header
        hasClientLog = opened.contains(where: \.isClientLog)
        isComplete = (first.header.recordsBefore ?? 0) == 0
        // The last one is read first.
        parts = ordered.reversed()
    }

    /// The next entry, or `nil` at the end of the last file.
    public func next() throws(ReaderFault) -> Entry? {
        if let header = held {
            held = nil
            return .header(header)
        }
        while let part = parts.last {
            let entry = try part.next()
            continuity.note(part.takeSkipped())
            guard let entry else {
                parts.removeLast()
                continue
            }
            switch entry {
            case .header(let header):
                let missing = continuity.missing(before: header)
                isComplete = isComplete && header.isComplete && missing == 0
                if missing > 0 {
                    held = header
                    return .gap(MissingRecords(count: missing, path: part.path, line: part.number))
                }
            case .record(let line):
                continuity.note()
                isComplete = isComplete && line.record.code != Self.droppedCode
            case .damage:
                continuity.note()
                isComplete = false
            case .gap: break
            }
            return entry
        }
        return nil
    }

    /// The code of the note that tells a loss.
    public static let droppedCode = "records-dropped"
}

private final class Part {
    let path: String
    private var lines: LineReader
    /// The number of the line read last.
    private(set) var number = 1
    /// The first header, until it is given out.
    private var first: RecordHeader?
    var passesOver: ((RawSpan) -> Bool)?
    /// Lines passed over since they were asked for.
    private var skipped: UInt64 = 0
    let header: RecordHeader
    /// Where the file is a client's log.
    private var client: ClientLogPart?
    var isClientLog: Bool { client != nil }

    init(path: String, _ advice: Advice?) throws(ReaderFault) {
        let name = path == "-" ? "standard input" : path
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw ReaderFault(code: .cannotOpen(errno: errno), path: name) }
        var lines = LineReader(descriptor: descriptor, owned: path != "-", longestLine: RecordReader.longestLine)
        (header, client) = try Self.beginning(&lines, name, advice)
        first = header
        self.lines = lines
        self.path = name
    }

    /// Signatures of other file formats.
    private static let signature = 64 << 10

    /// The header of the file, or its replacement.
    private static func beginning(
        _ lines: inout LineReader,
        _ path: String,
        _ advice: Advice?
    ) throws(ReaderFault) -> (RecordHeader, ClientLogPart?) {
        let signature = lines.beginning(Self.signature)
        if let format = FileFormat.ofBytes(signature) { throw ReaderFault(code: .otherFormat(format), path: path) }
        do throws(ReaderFault) {
            return try log(&lines, path, advice)
        } catch {
            guard error.code == .notOurs, let format = FileFormat.ofText(signature) else { throw error }
            throw ReaderFault(code: .otherFormat(format), path: path)
        }
    }

    private static func log(
        _ lines: inout LineReader,
        _ path: String,
        _ advice: Advice?
    ) throws(ReaderFault) -> (RecordHeader, ClientLogPart?) {
        switch lines.next() {
        case .whole(let range):
            let isOurs = lines.withBytes(of: range) { RecordHeader.isHeader($0) }
            guard !isOurs else {
                return (try lines.withBytes(of: range) { line throws(ReaderFault) in try header(line, path) }, nil)
            }
            let client = try ClientLogPart(first: range, &lines, path, advice)
            return (client.header, client)
        case .torn(let range):
            // A header that was being written when the program was killed is ours, and there is nothing behind it.
            let isOurs = lines.withBytes(of: range) { RecordHeader.beginsAsHeader($0) }
            throw ReaderFault(code: isOurs ? .empty : .notOurs, path: path)
        case .end: throw ReaderFault(code: .empty, path: path)
        case .tooLong: throw ReaderFault(code: .notOurs, path: path)
        case .failed(let cause): throw ReaderFault(code: .cannotRead(errno: cause), path: path)
        }
    }

    func next() throws(ReaderFault) -> RecordReader.Entry? {
        if let header = first {
            first = nil
            return .header(header)
        }
        if client != nil { return try client?.next(&lines, path).map { .record($0) } }
        while true {
            number += 1
            switch lines.next() {
            case .end: return nil
            case .failed(let cause): throw ReaderFault(code: .cannotRead(errno: cause), path: path)
            case .tooLong: return damage(.tooLong)
            case .torn: return damage(.torn)
            case .whole(let range):
                guard !range.isEmpty else { continue }
                if let passesOver, lines.withBytes(of: range, passesOver) {
                    skipped += 1
                    continue
                }
                return try lines.withBytes(of: range) { line throws(ReaderFault) in try entry(line) }
            }
        }
    }

    /// How many lines were passed over since the last call.
    func takeSkipped() -> UInt64 {
        defer { skipped = 0 }
        return skipped
    }

    private func entry(_ line: RawSpan) throws(ReaderFault) -> RecordReader.Entry {
        if RecordHeader.isHeader(line) { return .header(try Self.header(line, path)) }
        do throws(RecordLineError) {
            return .record(try RecordLine(json: line))
        } catch {
            return damage(Self.reason(error, length: line.byteCount))
        }
    }

    /// A line that was torn, and ended by a newline when the file was added to, ends too early: within a value or a
    /// character.
    private static func reason(_ error: RecordLineError, length: Int) -> DamagedLine.Reason {
        guard case .notJSON(let fault) = error.code else { return .other(error) }
        let isCut = fault.code == .unexpectedEnd || fault.code == .notUTF8 && fault.offset + 3 >= length
        return isCut ? .torn : .other(error)
    }

    private func damage(_ reason: DamagedLine.Reason) -> RecordReader.Entry {
        .damage(DamagedLine(reason: reason, path: path, line: number))
    }

    private static func header(_ line: RawSpan, _ path: String) throws(ReaderFault) -> RecordHeader {
        guard RecordHeader.isHeader(line), let header = try? RecordHeader(json: line) else {
            throw ReaderFault(code: .notOurs, path: path)
        }
        guard header.version <= RecordHeader.currentVersion else {
            throw ReaderFault(code: .newerVersion(header.version), path: path)
        }
        return header
    }
}
