internal import TapCore
internal import TapRecord
internal import XMPPCore

/// Reads the log of a client or a server, and turns its XML into inputs of sessions.
///
/// The log's format is learned from its beginning, see ``LogFormat``. Each item goes through the same ``Session`` as an
/// item that the proxy relays, so that the records, the timeline and the diagnosis are made the same way. If the log
/// lacks a stream header, one is inferred, because a stream cannot be read without a header; the record of the header
/// says that it is inferred. XML that cannot be read is reported in a note about the log and never reaches a session.
/// Any other line becomes a note, which is hidden if it may hold a secret.
struct ClientLogSource: Source {
    /// The program that wrote the log.
    enum Writer {
        case client, server
        /// xmpptap itself.
        case tap
    }

    /// The maximum numbers of lines and bytes that are read to learn the format.
    static let learningLines = 50_000
    static let learningBytes = 8 << 20

    private let redactor: Redactor
    private var clock: ClientLogClock
    private var fragmenter = LogFragmenter()
    private let check = LogItemCheck()
    /// Entries read before the format was learned; nil afterwards.
    private var backlog: [LogFragmenter.Entry]? = []
    private var format = LogFormat()
    /// The open sessions, by the value that identifies each session in the log.
    private var open: [[UInt8]: Open] = [:]
    /// The keys of the open sessions whose streams both sides have closed.
    private var closed: [[UInt8]] = []
    /// The number of the session of the last item; 0 if there is none.
    private var latest: UInt64 = 0
    private(set) var writer = Writer.client
    private var hasMixedSessions = false
    /// The number of sessions so far.
    private var count: UInt64 = 0
    /// The number of items so far, and how many of these items could not be read.
    private var items: UInt64 = 0
    private var unread: UInt64 = 0
    /// Whether items are missing: some could not be read, or a filter left them out.
    private var lacksItems = false
    /// Why the first unreadable item could not be read; nil if all items could be read.
    private var firstUnread: String?
    /// The number of lines so far.
    private var lines = 0
    /// Whether an item was found.
    private(set) var hasItems = false
    /// Entries that wait until the effect of a stream header among them is known.
    private var queue = LogQueue()
    /// The directions of the log's items so far.
    private var sides: Set<Direction> = []
    /// Finds the session of items whose lines do not name one.
    private var attribution = LogAttribution()
    /// The previous fragment; nil if it was the second copy of a fragment that the log shows twice.
    private var previous: LogFragment?
    /// The current item of a text log of xmpptap, which may continue on the next line.
    private var pending: (session: [UInt8], direction: Direction, at: Run.Instant, bytes: [UInt8])?
    private var found: ArraySlice<SourceInput> = []
    private var now = Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)

    private struct Open {
        let number: UInt64
        /// The number of items in the log up to the last item of this session.
        var latest: UInt64 = 0
        /// The time of the last item.
        var at: Run.Instant
        var streams = ClientLogStreams()
    }

    /// The maximum number of open sessions. At this limit, the sessions that have been idle longest are ended.
    private static let maximumSessions = 16_384
    /// The time in nanoseconds for which a session stays open after both sides have closed their streams: the log may
    /// show items after the stream ends.
    private static let closingGracePeriod: Int64 = 1_000_000_000

    static var options: SessionOptions {
        var options = SessionOptions(level: .verbose)
        options.isDecoded = true
        options.isObserved = true
        return options
    }

    /// Creates a source that shares the numbering of secrets with the other sources of its run.
    ///
    /// - Parameters:
    ///   - zone: The zone of times that do not name one.
    ///   - midnight: Midnight before the first line, for a log whose times have no date.
    init(_ secrets: SecretRegistry, _ redaction: RedactionPolicy, zone: LocalZone, midnight: Timestamp? = nil) {
        redactor = Redactor(policy: redaction, registry: secrets)
        clock = ClientLogClock(zone: zone)
        if let midnight { clock.begin(midnight: midnight) }
    }

    /// The time of the first line that has one; 1970 if there is none yet.
    var began: Timestamp { clock.began }

    /// Returns the midnight before the first line, see ``ClientLogClock/midnight(near:)``.
    func midnight(near other: Timestamp) -> Timestamp? { clock.midnight(near: other) }

    mutating func next() -> SourceInput? { found.popFirst() }

    /// Processes a line, without its newline.
    mutating func process(_ bytes: [UInt8]) {
        lines += 1
        if writer == .tap || !hasItems, processOwnLine(bytes) { return }
        fragmenter.process(bytes, number: lines)
        processEntries()
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
            hasMixedSessions = format.isEntangled
        }
        for entry in entries { process(entry) }
    }

    /// Handles a pause of the input: if the open item looks complete, it is read as a whole item.
    ///
    /// - Returns: Whether inputs are available.
    mutating func pause() -> Bool {
        fragmenter.pause()
        processEntries()
        advance(isAll: true)
        if pending?.bytes.last == 0x3E { flush() }
        return !found.isEmpty
    }

    /// Handles the end of the log: reads what is left, and ends all sessions.
    mutating func finish() {
        fragmenter.finish()
        processEntries()
        learn()
        advance(isAll: true)
        flush()
        closed = []
        for session in open.keys.sorted(by: { (open[$0]?.number ?? 0) < (open[$1]?.number ?? 0) }) { end(session) }
        summarise()
    }

    private mutating func processEntries() {
        hasItems = hasItems || fragmenter.hasItems
        for entry in fragmenter.takeEntries() {
            if backlog != nil { backlog?.append(entry) } else { process(entry) }
        }
    }

    // MARK: This program's log

    /// Processes a line of a text log of xmpptap; returns false for any other line.
    private mutating func processOwnLine(_ bytes: [UInt8]) -> Bool {
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
            if !line.isEmpty { process(.text(line, stamp)) }
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
            process(LogFragment.Item(bytes: bytes, line: lines), item.direction, item.session, at: item.at)
        }
        if scanner.isWithinItem { reject("line \(lines) cannot be read as XML: it is cut", in: item.session) }
    }

    // MARK: Entries

    private mutating func process(_ entry: LogFragmenter.Entry) {
        if queue.first == nil, restart(entry) != .unknown { return read(entry, reconnects: false) }
        queue.append(entry)
        advance()
    }

    /// Reads the entries in the queue up to the first stream header with an unknown effect; reads this header too if
    /// `isAll` is true or the queue is full.
    private mutating func advance(isAll: Bool = false) {
        while let entry = queue.first {
            let answer = restart(entry)
            if answer == .unknown, !isAll, !queue.isFull { return }
            _ = queue.popFirst()
            read(entry, reconnects: answer == .reconnects)
        }
    }

    /// Returns the effect of the stream header in an entry; nil if the entry shows no header that may restart a stream.
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
            reportForeignLine(line)
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
            process(fragment)
        }
    }

    private mutating func process(_ fragment: LogFragment) {
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
        if attribution.ambiguities > 0 { markSessionsMixed() }
        for item in fragment.items {
            switch item.state {
            case .endOnly: reject("line \(item.line) shows the end of an item and not its beginning", in: session)
            case .startTagOnly: reject("line \(item.line) shows a start tag and not the rest of the item", in: session)
            case .cut:
                let fault = LogItemCheck.fault(item.bytes, after: InferredHeader.bytes(.send))
                reject(
                    "line \(item.line) cannot be read as XML: \(fault?.message ?? "the item has no end")",
                    in: session
                )
            case .whole:
                guard let direction else {
                    // A stream end looks the same in both directions; nothing is lost if it is left out.
                    if LogTag(item.bytes[...]).isStreamEnd { continue }
                    reject(
                        "nothing says whether the client or the server sent the item of line \(item.line)",
                        in: session
                    )
                    continue
                }
                process(item, direction, session, at: now)
            }
        }
    }

    /// Handles sessions that can no longer be distinguished: logins in progress are not diagnosed.
    private mutating func markSessionsMixed() {
        guard !hasMixedSessions else { return }
        hasMixedSessions = true
        for session in open.values { emit(.input(.joined()), session.number, at: now) }
    }

    /// Adds a note for a line that shows no item.
    private mutating func reportForeignLine(_ bytes: [UInt8]) {
        guard !bytes.isEmpty else { return }
        report(.verbose, "foreign-line", Prose(redactor.disclose(line: bytes.span)), latest)
    }

    /// Adds a note for XML that cannot be read: this is a fault of the log, not of a peer.
    private mutating func reject(_ why: String, in session: [UInt8]) {
        items += 1
        unread += 1
        firstUnread = firstUnread ?? why
        lacksItems = true
        report(.warn, "unreadable-item", Prose(why), open[session]?.number ?? 0)
        for number in open[session].map({ [$0.number] }) ?? open.values.map(\.number).sorted() {
            emit(.input(.incomplete), number, at: now)
        }
    }

    private mutating func report(_ level: Level, _ code: String, _ message: Prose, _ session: UInt64) {
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
        emit(.recorded(RecordLine(redactor.redact(record), content: nothing.span)), session, at: now)
    }

    private mutating func emit(_ kind: SourceInput.Kind, _ session: UInt64, at now: Run.Instant) {
        found.append(SourceInput(session: session, at: now, kind))
    }

    /// Adds notes about the parts of the log that were not understood.
    private mutating func summarise() {
        if hasMixedSessions {
            report(
                .warn,
                Record.Code.logUnderstoodInPart,
                "sessions overlap in this log, and nothing in its lines tells them apart: no verdict on logins",
                0
            )
        }
        if let side = sides.first, sides.count == 1, unread * 10 <= items {
            let (shown, silent) = side == .send ? ("client", "server") : ("server", "client")
            report(
                .warn,
                Record.Code.logUnderstoodInPart,
                "this log shows only what the \(shown) sent: no verdict on the \(silent)'s side",
                0
            )
        }
        guard let firstUnread, unread * 10 > items else { return }
        report(
            .warn,
            Record.Code.logUnderstoodInPart,
            "this log is understood in part: \(items - unread) of \(items) fragments; \(firstUnread)",
            0
        )
    }

    // MARK: Items

    private mutating func process(
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
        // The log shows no other item of this stream, or shows the stream end twice.
        if open[session] == nil, LogTag(item[...]).isStreamEnd { return }
        var streams = open[session]?.streams ?? ClientLogStreams()
        let inputs: [SourceInput.Kind]
        switch streams.process(direction, item, check) {
        case .read(let read): inputs = read
        case .unreadable(let why):
            items -= 1
            return reject("line \(logged.line) cannot be read as XML: \(why)", in: session)
        }
        if open[session] == nil {
            if open.count >= Self.maximumSessions { endSilent() }
            count += 1
            open[session] = Open(number: count, at: at)
            emit(.began(writer.beginning), count, at: at)
            if lacksItems { emit(.input(.incomplete), count, at: at) }
            if hasMixedSessions {
                // It is not known which answer belongs to which request.
                emit(.input(.joined()), count, at: at)
            } else {
                emit(.input(.finishedStep(.connect, .skipped("not in a \(writer.log)"))), count, at: at)
            }
        }
        guard let number = open[session]?.number else { return }
        open[session]?.streams = streams
        open[session]?.latest = items
        open[session]?.at = at
        latest = number
        for input in inputs { emit(input, number, at: at) }
        if streams.isClosedByBoth, !closed.contains(session) { closed.append(session) }
    }

    /// Ends the sessions that have been idle longest. It ends many at once, because searching for one session at a time
    /// would dominate the run time.
    private mutating func endSilent() {
        let bySilence = open.sorted { $0.value.latest < $1.value.latest }.map(\.key)
        for session in bySilence.prefix(Self.maximumSessions / 16) { end(session) }
    }

    /// Ends the sessions whose streams both sides closed more than a second ago: later items belong to other sessions.
    private mutating func endClosed() {
        while let session = closed.first,
            open[session].map({ now.monotonic - $0.at.monotonic > Self.closingGracePeriod }) ?? true
        { end(session) }
    }

    private mutating func end(_ session: [UInt8]) {
        if closed.first == session { closed.removeFirst() } else { closed.removeAll { $0 == session } }
        guard let ended = open.removeValue(forKey: session) else { return }
        // Lines without items count as lines of the latest session: it ends now, unless both of its streams are closed.
        // Otherwise, a session ends at the time of its last item.
        let end = ended.number == latest && !ended.streams.isClosedByBoth ? now : ended.at
        if ended.streams.isOneSided { emit(.input(.incomplete), ended.number, at: end) }
        emit(.input(.unrecorded), ended.number, at: end)
        emit(.input(.closed), ended.number, at: end)
        if latest == ended.number { latest = 0 }
    }
}

extension ClientLogSource.Writer {
    /// The name of this kind of log.
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
