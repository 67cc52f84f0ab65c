internal import TapCore
internal import TapRecord
internal import XMPPCore

/// Reads the XML that a client or a server has logged as the sessions it shows.
///
/// The log's format is learned from its beginning, see ``LogFormat``. Each item goes through the same ``Session`` as one that
/// a proxy relays, so the records, the timeline and the diagnosis are made the same way. Only stream headers are
/// added if the log lacks them: a stream cannot be read without one. Such a header is inferred, and its record says
/// so. XML that cannot be read is a note about the log and never reaches a session. Any other line is a note, hidden if it
/// may hold a secret.
struct ClientLogSource: Source {
    /// Whose log it is.
    enum Writer {
        case client, server
        /// This program.
        case tap
    }

    /// Lines and bytes from which the format is learned.
    static let learningLines = 50_000
    static let learningBytes = 8 << 20

    private let redactor: Redactor
    private var clock: ClientLogClock
    private var fragmenter = LogFragmenter()
    private let check = LogItemCheck()
    /// Entries read before the format was learned; nil afterwards.
    private var backlog: [LogFragmenter.Entry]? = []
    private var format = LogFormat()
    /// The sessions that are open, by what tells them apart in the log.
    private var open: [[UInt8]: Open] = [:]
    /// Those whose streams both sides have closed.
    private var closed: [[UInt8]] = []
    /// The session of the item that was read last; 0 is none.
    private var latest: UInt64 = 0
    private(set) var writer = Writer.client
    private var isEntangled = false
    /// Sessions so far.
    private var count: UInt64 = 0
    /// Items so far, and those that could not be read.
    private var items: UInt64 = 0
    private var unread: UInt64 = 0
    /// Items are missing: some could not be read, or a filter left them out.
    private var lacksItems = false
    /// Why the first of them could not be read.
    private var firstUnread: String?
    /// Lines so far.
    private var lines = 0
    /// Whether an item was found.
    private(set) var hasItems = false
    /// Entries that are read as soon as it is known what their stream headers do.
    private var queue = LogQueue()
    /// The directions of which the log shows items.
    private var sides: Set<Direction> = []
    /// Names the sessions of lines that do not.
    private var attribution = LogAttribution()
    /// The fragment before, unless it was shown twice.
    private var previous: LogFragment?
    /// The open item of a text log of xmpptap.
    private var pending: (session: [UInt8], direction: Direction, at: Run.Instant, bytes: [UInt8])?
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

    static var options: SessionOptions {
        var options = SessionOptions(level: .verbose)
        options.isDecoded = true
        options.isObserved = true
        return options
    }

    /// Creates a source that numbers its secrets together with others of its run.
    ///
    /// - Parameters:
    ///   - zone: That of times without a zone.
    ///   - midnight: That before the first line, for a log without days.
    init(_ secrets: SecretRegistry, _ redaction: RedactionPolicy, zone: LocalZone, midnight: Timestamp? = nil) {
        redactor = Redactor(policy: redaction, registry: secrets)
        clock = ClientLogClock(zone: zone)
        if let midnight { clock.begin(midnight: midnight) }
    }

    /// When the first line was written that names a time.
    var began: Timestamp { clock.began }

    mutating func next() -> SourceInput? { found.popFirst() }

    /// Takes a line, without its newline.
    mutating func take(_ bytes: [UInt8]) {
        lines += 1
        if writer == .tap || !hasItems, takeOwn(bytes) { return }
        fragmenter.take(bytes, number: lines)
        takeEntries()
    }

    /// Learns the format from the lines so far, and applies it to them.
    mutating func learn() {
        guard let entries = backlog else { return }
        backlog = nil
        if writer != .tap {
            let fragments = entries.compactMap { entry -> LogFragment? in
                if case .fragment(let fragment) = entry { fragment } else { nil }
            }
            format = LogFormat(learning: fragments)
            if format.isServers { writer = .server }
            isEntangled = format.isEntangled
        }
        for entry in entries { take(entry) }
    }

    /// There are no more lines for now: an item that looks whole is one.
    ///
    /// - Returns: Whether anything was found.
    mutating func pause() -> Bool {
        fragmenter.pause()
        takeEntries()
        advance(isAll: true)
        if pending?.bytes.last == 0x3E { flush() }
        return !found.isEmpty
    }

    /// There are no more lines.
    mutating func finish() {
        fragmenter.finish()
        takeEntries()
        learn()
        advance(isAll: true)
        flush()
        closed = []
        for session in open.keys.sorted(by: { (open[$0]?.number ?? 0) < (open[$1]?.number ?? 0) }) { end(session) }
        summarise()
    }

    private mutating func takeEntries() {
        hasItems = hasItems || fragmenter.hasItems
        for entry in fragmenter.takeEntries() {
            if backlog != nil { backlog?.append(entry) } else { take(entry) }
        }
    }

    // MARK: This program's log

    /// Takes a line of a text log of xmpptap; false for any other line.
    private mutating func takeOwn(_ bytes: [UInt8]) -> Bool {
        let line = bytes.last == 0x0D ? Array(bytes.dropLast()) : bytes
        if let time = TapLogLine.header(line) {
            flush()
            beginOwn()
            clock.begin(time)
            if line.firstRange(of: Array(" filter ".utf8)) != nil { lacksItems = true }
            return true
        }
        if let item = TapLogLine.item(line) {
            flush()
            beginOwn()
            hasItems = true
            now = clock.instant(of: ClientLogStamp(line))
            endClosed()
            pending = (item.session, item.direction, now, item.item)
            return true
        }
        guard writer == .tap else { return false }
        let stamp = ClientLogStamp(line)
        if pending != nil, stamp == nil, !line.isEmpty {
            pending?.bytes += [0x0A] + line
        } else {
            flush()
            if !line.isEmpty { take(.text(line, stamp)) }
        }
        return true
    }

    private mutating func beginOwn() {
        guard writer != .tap else { return }
        writer = .tap
        learn()
    }

    private mutating func flush() {
        guard let item = pending else { return }
        pending = nil
        var scanner = LogXMLScanner()
        var whole: [[UInt8]] = []
        _ = scanner.read(item.bytes[...], into: &whole)
        for bytes in whole {
            take(LogFragment.Item(bytes: bytes, line: lines), item.direction, item.session, at: item.at)
        }
        if scanner.isWithinItem { reject("line \(lines) cannot be read as XML: it is cut", in: item.session) }
    }

    // MARK: Entries

    private mutating func take(_ entry: LogFragmenter.Entry) {
        if queue.first == nil, restart(entry) != .unknown { return read(entry, reconnects: false) }
        queue.append(entry)
        advance()
    }

    /// Reads the entries in the queue up to a stream header of which it is not known what it does, or all.
    private mutating func advance(isAll: Bool = false) {
        while let entry = queue.first {
            let answer = restart(entry)
            if answer == .unknown, !isAll, !queue.isFull { return }
            _ = queue.popFirst()
            read(entry, reconnects: answer == .reconnects)
        }
    }

    /// Returns what an entry's stream header does if it may restart a stream; nil if the entry shows no such header.
    private func restart(_ entry: LogFragmenter.Entry) -> LogQueue.Answer? {
        guard case .fragment(let fragment) = entry, LogQueue.opensStream(fragment),
            let session = format.knownSession(of: fragment), let cause = open[session]?.streams.restartCause
        else { return nil }
        let isAlone = open.count == 1
        return queue.answer(after: cause) { fragment in
            format.knownSession(of: fragment).map { $0 == session } ?? isAlone
        }
    }

    private mutating func read(_ entry: LogFragmenter.Entry, reconnects: Bool) {
        switch entry {
        case .text(let line, let stamp):
            now = clock.instant(of: stamp)
            endClosed()
            note(line)
        case .fragment(let fragment):
            now = clock.instant(of: fragment.stamp)
            endClosed()
            guard !format.isEcho(fragment) else { return }
            let last = previous
            previous = fragment
            if format.isDoubled, let last, last.isSame(as: fragment) {
                previous = nil
                return
            }
            guard !fragment.repeats(last) else { return }
            if reconnects, let session = format.knownSession(of: fragment) { end(session) }
            take(fragment)
        }
    }

    private mutating func take(_ fragment: LogFragment) {
        let direction = format.direction(of: fragment)
        let named = format.session(of: fragment, direction)
        let session =
            format.sessionPlace == nil
            ? []
            : attribution.session(
                fragment.items.map { LogAttribution.Item($0.evidence, direction) },
                value: named,
                isUsual: format.namesSession(direction)
            )
        if attribution.ambiguities > 0 { entangle() }
        for item in fragment.items {
            switch item.state {
            case .endOnly: reject("line \(item.line) shows the end of an item and not its beginning", in: session)
            case .startTagOnly: reject("line \(item.line) shows a start tag and not the rest of the item", in: session)
            case .cut:
                let fault = LogItemCheck.fault(item.bytes, behind: InferredHeader.bytes(.send))
                reject("line \(item.line) cannot be read as XML: \(fault?.words ?? "the item has no end")", in: session)
            case .whole:
                guard let direction else {
                    // Both ends look alike: nothing is lost by it.
                    if LogTag(item.bytes[...]).isStreamEnd { continue }
                    reject(
                        "nothing says whether the client or the server sent the item of line \(item.line)",
                        in: session
                    )
                    continue
                }
                take(item, direction, session, at: now)
            }
        }
    }

    /// From here on nothing tells which session an item belongs to: the logins under way have no verdict.
    private mutating func entangle() {
        guard !isEntangled else { return }
        isEntangled = true
        for session in open.values { tell(.input(.joined()), session.number, at: now) }
    }

    /// A line that shows no item.
    private mutating func note(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        tell(.verbose, "foreign-line", Prose(redactor.disclose(line: bytes.span)), latest)
    }

    /// Notes XML that cannot be read: a fault of the log, not of a peer.
    private mutating func reject(_ why: String, in session: [UInt8]) {
        items += 1
        unread += 1
        firstUnread = firstUnread ?? why
        lacksItems = true
        tell(.warn, "unreadable-item", Prose(why), open[session]?.number ?? 0)
        for number in open[session].map({ [$0.number] }) ?? open.values.map(\.number).sorted() {
            tell(.input(.incomplete), number, at: now)
        }
    }

    private mutating func tell(_ level: Level, _ code: String, _ message: Prose, _ session: UInt64) {
        var record = Record(
            sequence: 0,
            time: now.time,
            monotonic: now.monotonic,
            kind: .note,
            level: level,
            part: .session
        )
        record.session = session
        record.code = code
        record.message = message
        let nothing: [UInt8] = []
        tell(.recorded(RecordLine(redactor.redact(record), content: nothing.span)), session, at: now)
    }

    private mutating func tell(_ kind: SourceInput.Kind, _ session: UInt64, at now: Run.Instant) {
        found.append(SourceInput(session: session, at: now, kind))
    }

    /// Says what of the log was not understood.
    private mutating func summarise() {
        if isEntangled {
            tell(
                .warn,
                Record.Code.logUnderstoodInPart,
                "sessions overlap in this log, and nothing in its lines tells them apart: no verdict on logins",
                0
            )
        }
        if let side = sides.first, sides.count == 1, unread * 10 <= items {
            let (shown, silent) = side == .send ? ("client", "server") : ("server", "client")
            tell(
                .warn,
                Record.Code.logUnderstoodInPart,
                "this log shows only what the \(shown) sent: no verdict on the \(silent)'s side",
                0
            )
        }
        guard let firstUnread, unread * 10 > items else { return }
        tell(
            .warn,
            Record.Code.logUnderstoodInPart,
            "this log is understood in part: \(items - unread) of \(items) fragments; \(firstUnread)",
            0
        )
    }

    // MARK: Items

    private mutating func take(
        _ logged: LogFragment.Item,
        _ direction: Direction,
        _ session: [UInt8],
        at: Run.Instant
    ) {
        let item = logged.bytes
        if let current = open[session], current.streams.isOver(before: item, direction, logged.evidence.role) {
            end(session)
        }
        items += 1
        sides.insert(direction)
        // The end of a stream that the log does not show, or shows twice.
        if open[session] == nil, LogTag(item[...]).isStreamEnd { return }
        var streams = open[session]?.streams ?? ClientLogStreams()
        let inputs: [SourceInput.Kind]
        switch streams.take(direction, item, check) {
        case .read(let read): inputs = read
        case .unreadable(let why):
            items -= 1
            return reject("line \(logged.line) cannot be read as XML: \(why)", in: session)
        }
        if open[session] == nil {
            if open.count >= Self.mostSessions { endSilent() }
            count += 1
            open[session] = Open(number: count, at: at)
            tell(.began(writer.beginning), count, at: at)
            if lacksItems { tell(.input(.incomplete), count, at: at) }
            if isEntangled {
                // Who has answered whom is not known.
                tell(.input(.joined()), count, at: at)
            } else {
                tell(.input(.took(.connect, .skipped("not in a \(writer.log)"))), count, at: at)
            }
        }
        guard let number = open[session]?.number else { return }
        open[session]?.streams = streams
        open[session]?.latest = items
        open[session]?.at = at
        latest = number
        for input in inputs { tell(input, number, at: at) }
        if streams.isClosedByBoth, !closed.contains(session) { closed.append(session) }
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
        if ended.streams.isOneSided { tell(.input(.incomplete), ended.number, at: end) }
        tell(.input(.unrecorded), ended.number, at: end)
        tell(.input(.closed), ended.number, at: end)
        if latest == ended.number { latest = 0 }
    }
}

extension ClientLogSource.Writer {
    /// What such a log is called.
    var log: String {
        switch self {
        case .client: "client log"
        case .tap: "text log"
        case .server: "server log"
        }
    }

    fileprivate var beginning: Record.Beginning {
        switch self {
        case .client: .ownLog
        case .tap: .textLog
        case .server: .serverLog
        }
    }
}
