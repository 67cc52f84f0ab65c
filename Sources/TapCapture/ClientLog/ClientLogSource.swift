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
    /// The sessions that are open, by what tells them apart in the log.
    private var open: [[UInt8]: Open] = [:]
    /// Those whose streams both sides have closed.
    private var closed: [[UInt8]] = []
    /// The session of the item that was read last; 0 is none.
    private var latest: UInt64 = 0
    /// Whose log it is, once its header or the first item was seen.
    private var known: ClientLogLine.Writer?
    var writer: ClientLogLine.Writer { known ?? .client }
    /// Sessions so far.
    private var count: UInt64 = 0
    /// Items so far.
    private var items: UInt64 = 0
    /// How the log's own lines begin.
    private var shape: [UInt8]?
    private var hasLevels = false
    /// The item whose lines are being joined.
    private var pending: Pending?
    private var found: ArraySlice<SourceInput> = []
    private var now = Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)

    private struct Open {
        let number: UInt64
        /// Items of the log up to its last one.
        var latest: UInt64 = 0
        /// When its last item was written.
        var at: Run.Instant
        var streams = ClientLogStreams()
    }

    /// Sessions that are followed: beyond them those longest silent are given up.
    private static let mostSessions = 16_384
    /// Time after both ends of a session's streams in which what it has sent behind them may follow, in nanoseconds.
    private static let farewell: Int64 = 1_000_000_000
    /// Bytes of an item: what is longer is none.
    private static let mostBytes = 64 << 20

    private struct Pending {
        var session: [UInt8]
        var direction: Direction
        var at: Run.Instant
        var bytes: [UInt8]

        /// Whether an element, but for a stream, has begun and not ended.
        var endsWithinElement: Bool {
            var reader = ItemReader()
            reader.begin()
            var depth = 0
            while let token = reader.next(bytes.span) {
                switch token {
                case .start where depth == 0 && bytes.span.slice(reader.name).equals("stream"): return false
                case .start: depth += 1
                case .end: depth -= 1
                case .text, .section: break
                case .fault: return depth > 0 || !bytes.contains(0x3E)
                }
            }
            return depth > 0
        }
    }

    static var options: SessionOptions {
        var options = SessionOptions(level: .verbose)
        options.isInsideTLS = true
        options.isObserved = true
        return options
    }

    /// A source whose secrets are numbered with others of its run; `day` is that of the first line of a log without days.
    init(_ secrets: SecretRegistry, _ redaction: RedactionPolicy, day: Timestamp? = nil) {
        redactor = Redactor(policy: redaction, registry: secrets)
        if let day { clock.begin(day) }
    }

    /// When the first line was written that names a time.
    var began: Timestamp { clock.began }

    mutating func next() -> SourceInput? { found.popFirst() }

    /// Takes a line, without its newline.
    mutating func take(_ bytes: [UInt8]) {
        let bytes = bytes.last == 0x0D ? Array(bytes.dropLast()) : bytes
        if writer == .tap || known == nil, let time = ClientLogLine.ownHeader(bytes) {
            flush()
            known = .tap
            return clock.begin(time)
        }
        let line = ClientLogLine(bytes)
        if let direction = line.direction, !isWithin(line) {
            flush()
            if shape == nil { shape = line.stamp?.shape ?? [] }
            hasLevels = hasLevels || line.hasLevel
            now = clock.instant(of: line.stamp)
            endClosed()
            known = line.writer
            pending = Pending(session: line.session, direction: direction, at: now, bytes: Array(line.item))
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
            if let count = pending?.bytes.count, count > Self.mostBytes { pending = nil }
            return
        }
        flush()
        now = clock.instant(of: line.stamp)
        endClosed()
        note(bytes)
    }

    /// There are no more lines for now: an item that looks whole is one.
    ///
    /// - Returns: Whether there was such an item.
    mutating func pause() -> Bool {
        guard pending?.bytes.last == 0x3E else { return false }
        flush()
        return true
    }

    /// There are no more lines.
    mutating func finish() {
        flush()
        closed = []
        for session in open.keys.sorted(by: { (open[$0]?.number ?? 0) < (open[$1]?.number ?? 0) }) { end(session) }
    }

    /// Whether what looks like an item is a text in the log: that of a message, or of what somebody has said. A log is of one
    /// writer; and a line within an element is one of the log's own only where it begins like them.
    private func isWithin(_ line: ClientLogLine) -> Bool {
        guard line.writer == known ?? line.writer else { return true }
        guard let pending, shape?.isEmpty == false || hasLevels, !isOwn(line) else { return false }
        return pending.endsWithinElement
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
        record.session = latest
        record.code = "foreign-line"
        record.message = Prose(redactor.disclose(line: bytes.span))
        let nothing: [UInt8] = []
        tell(.recorded(RecordLine(redactor.redact(record), content: nothing.span)), latest, at: now)
    }

    private mutating func tell(_ kind: SourceInput.Kind, _ session: UInt64, at now: Run.Instant) {
        found.append(SourceInput(session: session, at: now, kind))
    }

    // MARK: Items

    private mutating func flush() {
        guard let item = pending else { return }
        pending = nil
        let text = item.bytes.drop { $0 == 0x20 || $0 == 0x0A || $0 == 0x09 }
        guard text.first == 0x3C || writer == .smack && open[item.session] != nil else { return note(item.bytes) }
        if let current = open[item.session], current.streams.isOver(before: text, item.direction) { end(item.session) }
        items += 1
        if open[item.session] == nil {
            if open.count >= Self.mostSessions { endSilent() }
            count += 1
            open[item.session] = Open(number: count, at: item.at)
            tell(.began(writer.beginning), count, at: item.at)
            tell(.input(.took(.connect, .skipped("not in a \(writer.log)"))), count, at: item.at)
        }
        guard let number = open[item.session]?.number else { return }
        open[item.session]?.latest = items
        open[item.session]?.at = item.at
        latest = number
        for input in open[item.session]?.streams.take(item.direction, item.bytes) ?? [] {
            tell(input, number, at: item.at)
        }
        if open[item.session]?.streams.isClosedByBoth == true, !closed.contains(item.session) {
            closed.append(item.session)
        }
    }

    /// Ends many at once: to look for one among all each time would take longer than all else.
    private mutating func endSilent() {
        let bySilence = open.sorted { $0.value.latest < $1.value.latest }.map(\.key)
        for session in bySilence.prefix(Self.mostSessions / 16) { end(session) }
    }

    /// Ends the sessions whose streams both sides have closed a while ago: their log goes on with others.
    private mutating func endClosed() {
        while let session = closed.first,
            open[session].map({ now.monotonic - $0.at.monotonic > Self.farewell }) ?? true
        { end(session) }
    }

    private mutating func end(_ session: [UInt8]) {
        if closed.first == session { closed.removeFirst() } else { closed.removeAll { $0 == session } }
        guard let ended = open.removeValue(forKey: session) else { return }
        // Lines that show no item are of the latest session, as far as anybody can tell; of another one nothing came later.
        let end = ended.number == latest && !ended.streams.isClosedByBoth ? now : ended.at
        tell(.input(.unrecorded), ended.number, at: end)
        tell(.input(.closed), ended.number, at: end)
        if latest == ended.number { latest = 0 }
    }
}

extension ClientLogLine.Writer {
    /// What such a log is called.
    var log: String {
        switch self {
        case .client, .smack: "client log"
        case .tap: "text log"
        case .server: "server log"
        }
    }

    fileprivate var beginning: Record.Beginning {
        switch self {
        case .client, .smack: .ownLog
        case .tap: .textLog
        case .server: .serverLog
        }
    }
}
