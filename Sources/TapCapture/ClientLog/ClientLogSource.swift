internal import TapCore
internal import TapRecord
internal import XMPPCore

/// Reads the SEND and RECV lines that a client has logged itself as the sessions they were.
///
/// Each item goes through the same ``Session`` as one that a proxy relays, so the records, the timeline and the diagnosis
/// are made the same way. What the client did not log is not made up, but for stream headers: a stream cannot be read
/// without one, so where it is missing one is inferred, and its record says so. Lines that continue an item are joined
/// to it; any other line is a note, hidden where it may hold a secret.
struct ClientLogSource: Source {
    /// Lines that are looked at before a file is taken for something else.
    static let patience = 5000

    private let redactor: Redactor
    private var clock = ClientLogClock()
    private var streams: ClientLogStreams?
    /// Sessions so far.
    private var count: UInt64 = 0
    /// How the log's own lines begin.
    private var shape: [UInt8]?
    private var hasLevels = false
    /// The item whose lines are being joined.
    private var pending: Pending?
    private var found: ArraySlice<SourceInput> = []
    private var now = Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)

    private struct Pending {
        var direction: Direction
        var at: Run.Instant
        var bytes: [UInt8]
    }

    static var options: SessionOptions {
        var options = SessionOptions(level: .verbose)
        options.isInsideTLS = true
        options.isClientLog = true
        return options
    }

    /// A source whose secrets are numbered with others of its run.
    init(_ secrets: SecretRegistry) { redactor = Redactor(policy: Self.options.redaction, registry: secrets) }

    /// When the first line was written that names a time.
    var began: Timestamp { clock.began }

    mutating func next() -> SourceInput? { found.popFirst() }

    /// Takes a line, without its newline.
    mutating func take(_ bytes: [UInt8]) {
        let bytes = bytes.last == 0x0D ? Array(bytes.dropLast()) : bytes
        let line = ClientLogLine(bytes)
        if let direction = line.direction {
            flush()
            if shape == nil { shape = line.stamp?.shape ?? [] }
            hasLevels = hasLevels || line.hasLevel
            now = clock.instant(of: line.stamp)
            pending = Pending(direction: direction, at: now, bytes: Array(line.item))
            return
        }
        if pending != nil, !isOwn(line) {
            // An empty line ends an item of several lines, and comes before it where its first line is empty.
            if bytes.allSatisfy({ $0 == 0x20 }) {
                if pending?.bytes.isEmpty == false { flush() }
                return
            }
            if pending?.bytes.isEmpty == false { pending?.bytes.append(0x0A) }
            pending?.bytes += bytes
            return
        }
        flush()
        now = clock.instant(of: line.stamp)
        note(bytes)
    }

    /// There are no more lines.
    mutating func finish() {
        flush()
        endSession()
    }

    /// Whether a line begins as those of the log do, and so continues none.
    private func isOwn(_ line: ClientLogLine) -> Bool {
        if let shape, !shape.isEmpty { return line.stamp?.shape == shape }
        return line.hasLevel && hasLevels
    }

    /// A line that shows no item.
    private mutating func note(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        var record = Record(
            sequence: 0,
            time: now.time,
            monotonic: now.monotonic,
            kind: .note,
            level: .verbose,
            part: .session
        )
        record.session = streams == nil ? 0 : count
        record.code = "foreign-line"
        record.message = Prose(redactor.disclose(line: bytes.span))
        let nothing: [UInt8] = []
        tell(.recorded(RecordLine(redactor.redact(record), content: nothing.span)), at: now)
    }

    private mutating func tell(_ kind: SourceInput.Kind, at now: Run.Instant) {
        found.append(SourceInput(session: streams == nil ? 0 : count, at: now, kind))
    }

    // MARK: Items

    private mutating func flush() {
        guard let item = pending else { return }
        pending = nil
        let text = item.bytes.drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x09 }
        guard text.first == 0x3C else { return note(item.bytes) }
        if let current = streams, current.isOver(before: text, item.direction) { endSession() }
        if streams == nil {
            count += 1
            streams = ClientLogStreams()
            tell(.began(Record.Beginning.ownLog), at: item.at)
            tell(.input(.took(.connect, .skipped("not in a client log"))), at: item.at)
        }
        for input in streams?.take(item.direction, item.bytes) ?? [] { tell(input, at: item.at) }
    }

    private mutating func endSession() {
        guard streams != nil else { return }
        tell(.input(.unrecorded), at: now)
        tell(.input(.closed), at: now)
        streams = nil
    }
}
