public import TapDiagnosis
public import TapRecord
public import TapSecurity

internal import Glibc

/// Reads JSON logs and captures: the records of one file, or of several parts of a run, in the order in which they
/// were written. Records of several logs are merged by time; whenever the log changes, its header is returned first.
/// Packet captures and logs of clients that show sent and received items are also read: their records are those that
/// their sessions would have had (see ``PacketSource``, ``ClientLogSource``).
///
/// The only fatal content of a file is a schema that is newer than this program's. An incomplete last line, and any
/// other line that is not a record, is reported as a ``DamagedLine`` and skipped.
public final class RecordReader {
    /// An entry of a file.
    public enum Entry: Sendable {
        /// A header, which is written whenever a log is opened.
        case header(RecordHeader)
        /// A record with its texts.
        case record(RecordLine)
        /// A line that was skipped.
        case damage(DamagedLine)
        /// Records that are missing before the next header: their file was not named, or does not exist.
        case gap(MissingRecords)
    }

    /// The maximum length of a line in bytes, many times that of the largest item. Longer lines are skipped.
    static let maximumLineLength = 64 << 20

    /// The header of the first file.
    package let firstHeader: RecordHeader
    /// Whether any of the files is a packet capture or a client's log, from which records are made while it is read.
    package let isForeign: Bool
    /// The path of the first file with stored records, which are returned unchanged; nil if there is none.
    package let storedPath: String?
    /// Whether the entry returned last is from a packet capture or a client's log.
    var isForeignPart: Bool { current?.isForeign == true }
    /// Whether everything read so far is complete: all headers say so, no records were dropped or are missing, and no
    /// line was damaged. False from the start if the first file is not the first part of its run.
    package private(set) var isComplete = true
    /// Provides the advice for failed logins in packets and clients' logs; nil omits it.
    let advice: Advice?
    /// Returns whether a line of a JSON log or capture is skipped without being parsed. Headers at the beginning of a
    /// file are never skipped. Skipped lines count as read. Nil, the default, skips none.
    package var skipsLine: ((RawSpan) -> Bool)? {
        didSet { for file in files { file.skipsLine = skipsLine } }
    }
    /// Texts of which a line of a JSON log or capture must contain at least one to be parsed; see
    /// ``RecordFilter/literals``. Headers are always parsed. Other lines, also damaged ones, are skipped and count as
    /// read. Nil parses all lines.
    package var requiredLiterals: [[UInt8]]? {
        didSet { for file in files { file.sieve = requiredLiterals.map(LineSieve.init) } }
    }
    /// Whether files may grow, or be replaced by others of the same name, as by log rotation. ``next()`` then returns
    /// nil at the current end; call it again later. The value does not affect packet captures and pipes.
    package var follows = false {
        didSet { for file in files { file.follows = follows } }
    }
    /// The path of the file of the entry returned last.
    package private(set) var path = ""
    private let files: [Part]
    private var tracks: [Track] = []
    /// The track of the entry returned last.
    private var current: Track?
    private var continuity = Continuity()
    /// An entry that was already read, to be returned by the next call; nil if there is none.
    private var held: Entry?
    private var isStopping = false
    /// The packets of the only file, after its header was returned; only their records follow. Nil if there are other
    /// entries.
    private var onlyPackets: PacketPart?

    /// Opens files and reads their first headers.
    ///
    /// Parts of a log (`x.log.2`, `x.log.1`, `x.log`) may come in any order: they are read one after the other in the
    /// order in which they were written, and merged with other logs by time. `-` is standard input.
    /// - Parameters:
    ///   - paths: The files; a folder is replaced by its captures. An empty array is an error of the caller.
    ///   - advice: Provides the advice for failed logins in packets and clients' logs; nil omits it.
    ///   - keys: The TLS secrets for decrypting packets.
    ///   - redaction: The redaction of packets and clients' logs; default secrets. Stored records are not redacted
    ///     again.
    ///   - zone: The time zone of clients' logs that do not name one; default UTC.
    /// - Throws: ``ReaderFault`` if a file cannot be read, is not a supported log, or was written by a newer
    ///   program.
    public convenience init(
        _ paths: [String],
        advice: Advice? = nil,
        keys: KeyLog = KeyLog(),
        redaction: RedactionPolicy = .secrets,
        zone: LocalZone = .utc
    ) throws(ReaderFault) {
        let decoding = Decoding(advice: advice, redaction: redaction, zone: zone)
        let paths = try CaptureFolder.files(of: paths)
        var opened: [Part] = []
        for path in paths { opened.append(try Part(path: path, decoding, keys)) }
        // A client's log without dates is assumed to be of the day of the other files, and one without years of their
        // year, so that they can be merged by time.
        if let began = opened.map(\.header.time).filter({ !ClientLogClock.lacksDay($0) }).min() {
            for (place, part) in opened.enumerated() where part.lacksDay {
                guard let midnight = part.midnight(near: began) else { continue }
                opened[place] = try Part(path: paths[place], decoding, keys, midnight: midnight)
            }
        }
        try self.init(opened, advice)
    }

    /// Captures packets of a network interface. ``next()`` returns nil if no more packets are available yet, and must
    /// be called again until ``stop()`` returns false.
    ///
    /// - Parameters:
    ///   - capture: The interface.
    ///   - advice: Provides the advice for failed logins; nil omits it.
    ///   - redaction: The redaction policy; default secrets.
    package convenience init(
        _ capture: LiveCapture,
        advice: Advice? = nil,
        redaction: RedactionPolicy = .secrets
    ) throws(ReaderFault) {
        try self.init([Part(capture, Decoding(advice: advice, redaction: redaction, zone: .utc))], advice)
    }

    private init(_ opened: [Part], _ advice: Advice?) throws(ReaderFault) {
        self.advice = advice
        // The sort is stable: files whose headers have the same time keep the order of `paths`.
        let ordered = opened.map(\.header).readingOrder.map { opened[$0] }
        guard let first = ordered.first else { throw ReaderFault(code: .empty, path: "-") }
        firstHeader = first.header
        isForeign = opened.contains(where: \.isForeign)
        storedPath = opened.first { !$0.isForeign }?.path
        isComplete = (first.header.recordsBefore ?? 0) == 0
        files = opened
        var places: [LogIdentity: Int] = [:]
        for part in ordered {
            let log = LogIdentity(part.header)
            if !part.isForeign, let place = places[log] {
                tracks[place].append(part)
            } else {
                places[log] = tracks.count
                tracks.append(Track(part))
            }
        }
    }

    /// Returns the next entry; nil at the end of the last file.
    public func next() throws(ReaderFault) -> Entry? {
        // A fast path for packets: each step of the general path moves the record.
        if let onlyPackets, let line = onlyPackets.next() {
            continuity.countLines()
            return .record(line)
        }
        if let entry = held {
            held = nil
            return entry
        }
        while let track = try earliestTrack() {
            guard let found = try track.take() else {
                guard !track.hasEnded else {
                    tracks.removeAll { $0 === track }
                    continue
                }
                return nil
            }
            let isOther = current !== track
            current = track
            path = found.part.path
            if isOther, let header = track.header { continuity.select(LogIdentity(header)) }
            continuity.countLines(found.skipped)
            switch found.entry {
            case .header(let header):
                track.header = header
                let missing = continuity.missing(before: header)
                isComplete = isComplete && header.isComplete && missing == 0
                if files.count == 1, missing == 0 { onlyPackets = found.part.packets }
                if missing > 0 {
                    held = found.entry
                    return .gap(MissingRecords(count: missing, path: found.part.path, line: found.part.number))
                }
                return found.entry
            case .record(let line):
                continuity.countLines()
                isComplete = isComplete && line.record.code != Self.droppedCode
            case .damage:
                continuity.countLines()
                isComplete = false
            case .gap: break
            }
            guard isOther, var header = track.header else { return found.entry }
            // The next records belong to a different log than the previous ones: return its header first.
            if header.recordsBefore != nil { header.recordsBefore = continuity.before }
            held = found.entry
            return .header(header)
        }
        return nil
    }

    /// Formats lines on other threads if that is faster: ``nextLines()`` then returns all later records, and
    /// ``next()`` the entries after them. Must be called after the first header was returned.
    ///
    /// - Returns: Whether ``nextLines()`` must be called.
    package func formLines(_ makers: LineMaker.Factory?) -> Bool {
        // Lines are formatted in batches, but packets from a pipe may arrive one by one and must be shown at once.
        guard let makers, held == nil, progress != nil else { return false }
        return onlyPackets?.formLines(makers) ?? false
    }

    /// Returns the next lines, in order; nil at the end of the records.
    package func nextLines() -> MergedLines? { onlyPackets?.nextLines() }

    /// Returns the track with the earliest next entry; nil if none has a next entry. If times are equal, the current
    /// track continues.
    private func earliestTrack() throws(ReaderFault) -> Track? {
        guard tracks.count > 1 else { return tracks.first }
        for track in tracks { try track.peek() }
        tracks.removeAll(where: \.hasEnded)
        let ready = tracks.filter(\.isReady)
        guard var earliest = ready.first else { return nil }
        for track in ready
        where track.time < earliest.time || track.time == earliest.time && track === current && earliest !== track {
            earliest = track
        }
        return earliest
    }

    /// Whether a network interface is being captured and more packets may arrive.
    package var isLive: Bool { files.first?.livePackets != nil }

    /// The descriptor to poll before the next call of ``next()`` if an interface is captured; -1 for files.
    package var descriptor: Int32 { files.first?.livePackets?.descriptor ?? -1 }

    /// Stops capturing an interface; packets that were already captured can still be read.
    ///
    /// - Returns: Whether such packets may remain; false for files.
    package func stop() -> Bool {
        guard let packets = files.first?.livePackets else { return false }
        if !isStopping { packets.stop() }
        isStopping = true
        return true
    }

    /// The number of bytes read of all files, and their total size; nil if one of them is not a regular file.
    package var progress: (read: UInt64, size: UInt64)? {
        var sum: (read: UInt64, size: UInt64) = (0, 0)
        for file in files {
            guard let progress = file.progress else { return nil }
            sum.read += progress.read
            sum.size += progress.size
        }
        return sum
    }

    /// The code of the note that reports dropped records.
    package static let droppedCode = "records-dropped"
}

/// The files that one log consists of, in the order in which they were written.
private final class Track {
    struct Found {
        let entry: RecordReader.Entry
        let part: Part
        /// The number of lines that were skipped before the entry.
        let skipped: UInt64
    }

    /// The header whose records are being read.
    var header: RecordHeader?
    let isForeign: Bool
    /// The latest time of the entries read so far. It never decreases, so a clock that is set back does not change
    /// the order.
    private(set) var time = Timestamp(nanoseconds: .min)
    /// Whether no entries are left.
    var hasEnded: Bool { next == nil && parts.isEmpty }
    /// Whether the next entry has been read by ``peek()``.
    var isReady: Bool { next != nil }
    private var parts: ArraySlice<Part>
    private var next: Found?

    init(_ part: Part) {
        isForeign = part.isForeign
        parts = [part]
    }

    func append(_ part: Part) { parts.append(part) }

    /// Reads the next entry without removing it.
    func peek() throws(ReaderFault) {
        guard next == nil, let found = try read() else { return }
        next = found
        switch found.entry {
        case .header(let header): time = max(time, header.time)
        case .record(let line): time = max(time, line.record.time)
        case .damage, .gap: break
        }
    }

    /// Removes and returns the next entry; nil at the end.
    func take() throws(ReaderFault) -> Found? {
        guard let found = next else { return try read() }
        next = nil
        return found
    }

    private func read() throws(ReaderFault) -> Found? {
        var skipped: UInt64 = 0
        while let part = parts.first {
            let entry = try part.next()
            skipped += part.takeSkipped()
            if let entry { return Found(entry: entry, part: part, skipped: skipped) }
            // Only the last of several files of a log can grow.
            guard parts.count > 1 || !part.mayGrow else { return nil }
            parts.removeFirst()
        }
        return nil
    }
}

private final class Part {
    let path: String
    private var descriptor: Int32
    private let size: UInt64?
    var follows = false {
        didSet { lines.follows = mayGrow }
    }
    /// Whether entries may be added after the current end.
    var mayGrow: Bool {
        if case .packets(let packets) = content { return packets.isLive }
        return follows && size != nil
    }
    /// The packets of the file; nil if it is not a packet capture.
    var packets: PacketPart? {
        if case .packets(let packets) = content { packets } else { nil }
    }
    /// The packets of an interface that is still being captured; nil for files.
    var livePackets: PacketPart? { packets.flatMap { $0.isLive ? $0 : nil } }
    private var lines: LineReader
    /// The number of the line read last.
    private(set) var number = 1
    /// The first header, until it is returned.
    private var first: RecordHeader?
    var skipsLine: ((RawSpan) -> Bool)?
    var sieve: LineSieve?
    /// The number of lines skipped since the last call of ``takeSkipped()``.
    private var skipped: UInt64 = 0
    let header: RecordHeader
    private var content: Content
    /// Whether the file is a client's log without dates that can be read again from the beginning.
    var lacksDay: Bool {
        guard case .clientLog = content, size != nil else { return false }
        return ClientLogClock.lacksDay(header.time) && header.time.nanoseconds > 0
    }
    /// Returns the midnight before the first line of a client's log that lacks the day; nil if it is not evident.
    func midnight(near other: Timestamp) -> Timestamp? {
        if case .clientLog(let log) = content { log.midnight(near: other) } else { nil }
    }
    var isForeign: Bool { if case .records = content { false } else { true } }

    /// The content of a file.
    private enum Content {
        case records
        case clientLog(ClientLogPart)
        /// A class, so that it is not moved for each record.
        case packets(PacketPart)
    }

    /// Creates a part from a file.
    ///
    /// - Parameter midnight: The midnight before the first line, for a client's log without dates.
    init(path: String, _ decoding: Decoding, _ keys: KeyLog, midnight: Timestamp? = nil) throws(ReaderFault) {
        let name = path == "-" ? "standard input" : path
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw ReaderFault(code: .cannotOpen(errno: errno), path: name) }
        var lines = LineReader(descriptor: descriptor, owned: path != "-", longestLine: RecordReader.maximumLineLength)
        (header, content) = try Self.beginning(&lines, name, decoding, keys, midnight)
        first = header
        self.lines = lines
        self.path = name
        self.descriptor = descriptor
        size = FileStatus(descriptor: descriptor).flatMap { $0.isRegular ? $0.size : nil }
    }

    init(_ capture: LiveCapture, _ decoding: Decoding) {
        let packets = PacketPart(capture, decoding)
        header = packets.header
        first = header
        content = .packets(packets)
        path = capture.interface
        descriptor = -1
        lines = LineReader(descriptor: -1, owned: false, longestLine: RecordReader.maximumLineLength)
        size = nil
    }

    /// The number of bytes read of the file, and its size; nil if it is not a regular file.
    var progress: (read: UInt64, size: UInt64)? {
        size.map { (UInt64(clamping: lseek(descriptor, 0, SEEK_CUR)), $0) }
    }

    /// The number of bytes at the beginning of a file from which its format is recognised.
    private static let signature = 64 << 10

    /// Returns the header of the file, or a header made for a file of another format, and the kind of content.
    private static func beginning(
        _ lines: inout LineReader,
        _ path: String,
        _ decoding: Decoding,
        _ keys: KeyLog,
        _ midnight: Timestamp?
    ) throws(ReaderFault) -> (RecordHeader, Content) {
        let signature = lines.beginning(Self.signature)
        if let format = PacketFormat(signature) {
            do throws(PacketFault) {
                let packets = try PacketPart(format, lines.bytes(), path, decoding, keys)
                return (packets.header, .packets(packets))
            } catch {
                throw ReaderFault(code: .packets(error), path: path)
            }
        }
        if let format = FileFormat.ofBytes(signature) { throw ReaderFault(code: .otherFormat(format), path: path) }
        do throws(ReaderFault) {
            return try log(&lines, path, decoding, midnight)
        } catch {
            guard error.code == .notOurs, let format = FileFormat.ofText(signature) else { throw error }
            throw ReaderFault(code: .otherFormat(format), path: path)
        }
    }

    private static func log(
        _ lines: inout LineReader,
        _ path: String,
        _ decoding: Decoding,
        _ midnight: Timestamp?
    ) throws(ReaderFault) -> (RecordHeader, Content) {
        switch lines.next(skipsTooLong: false) {
        case .whole(let range):
            let isOurs = lines.withBytes(of: range) { RecordHeader.isHeader($0) }
            guard !isOurs else {
                return (try lines.withBytes(of: range) { line throws(ReaderFault) in try header(line, path) }, .records)
            }
            let client = try ClientLogPart(first: range, &lines, path, decoding, midnight)
            return (client.header, .clientLog(client))
        case .incomplete(let range):
            // An incomplete header: the program was killed while it wrote the file's first line.
            let isOurs = lines.withBytes(of: range) { RecordHeader.beginsAsHeader($0) }
            guard !isOurs else { throw ReaderFault(code: .empty, path: path) }
            let client = try ClientLogPart(first: range, &lines, path, decoding, midnight)
            return (client.header, .clientLog(client))
        case .end: throw ReaderFault(code: .empty, path: path)
        case .tooLong: throw ReaderFault(code: .notOurs, path: path)
        case .failed(let cause): throw ReaderFault(code: .cannotRead(errno: cause), path: path)
        case .damaged(let fault): throw ReaderFault(code: .compressed(fault), path: path)
        }
    }

    /// Returns the next entry; nil at the end. If ``mayGrow`` is true, later calls may return more.
    func next() throws(ReaderFault) -> RecordReader.Entry? {
        if let entry = try read() { return entry }
        guard mayGrow, let cut = reopenIfReplacedOrTruncated() else { return nil }
        return cut ? damage(.incomplete) : try read()
    }

    /// Continues with the new file of the same name if the file was replaced, or at the beginning if it was
    /// truncated.
    ///
    /// - Returns: Whether the old content ended within a line; nil if the file was neither replaced nor truncated.
    private func reopenIfReplacedOrTruncated() -> Bool? {
        guard let open = FileStatus(descriptor: descriptor), let named = FileStatus(path: path) else { return nil }
        let isCut = lines.endsWithinLine
        if named.identity != open.identity {
            let other = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            guard other >= 0 else { return nil }
            descriptor = other
            lines = LineReader(descriptor: other, owned: true, longestLine: RecordReader.maximumLineLength)
        } else {
            guard named.size < UInt64(clamping: lseek(descriptor, 0, SEEK_CUR)) else { return nil }
            lseek(descriptor, 0, SEEK_SET)
            let same = dup(descriptor)
            guard same >= 0 else { return nil }
            descriptor = same
            lines = LineReader(descriptor: same, owned: true, longestLine: RecordReader.maximumLineLength)
        }
        lines.follows = true
        number = 0
        return isCut
    }

    private func read() throws(ReaderFault) -> RecordReader.Entry? {
        if let header = first {
            first = nil
            return .header(header)
        }
        switch content {
        case .records: break
        case .clientLog(var client):
            // Removing the log from the enumeration before changing it avoids a copy.
            content = .records
            defer { content = .clientLog(client) }
            if let record = try client.next(&lines, path) { return .record(record) }
            return client.takeFault().map { damage(.compressed($0)) }
        case .packets(let packets):
            if let record = packets.next() { return .record(record) }
            return packets.takeFault().map { damage(.packets($0)) }
        }
        while true {
            if let sieve {
                let passed = lines.pass(sieve)
                number += passed
                skipped += UInt64(passed)
            }
            number += 1
            switch lines.next() {
            case .end:
                number -= 1
                return nil
            case .failed(let cause): throw ReaderFault(code: .cannotRead(errno: cause), path: path)
            case .tooLong: return damage(.tooLong)
            case .incomplete: return damage(lines.takeTruncation().map { .compressed($0) } ?? .incomplete)
            case .damaged(let fault): return damage(.compressed(fault))
            case .whole(let range):
                guard !range.isEmpty else { continue }
                if let skipsLine, lines.withBytes(of: range, skipsLine) {
                    skipped += 1
                    continue
                }
                return try lines.withBytes(of: range) { line throws(ReaderFault) in try entry(line) }
            }
        }
    }

    /// Returns the number of lines skipped since the last call.
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

    /// Returns the kind of damage. If writing was interrupted within a line and more was appended later, the line
    /// ends too early: within a JSON value or a UTF-8 character.
    private static func reason(_ error: RecordLineError, length: Int) -> DamagedLine.Reason {
        guard case .notJSON(let fault) = error.code else { return .other(error) }
        let isCut = fault.code == .unexpectedEnd || fault.code == .notUTF8 && fault.offset + 3 >= length
        return isCut ? .incomplete : .other(error)
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
