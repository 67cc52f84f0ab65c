import TapCapture
import TapCore
import TapRecord
import TapRules
import XMPPCore

/// A session with all kinds of events; its records are then read again as a capture.
///
/// An input is a byte of options, then events: 0xFF, which UTF-8 does not contain, the event's letter, and its
/// parameters.
enum SessionTarget {
    static func run(_ input: [UInt8]) -> String? {
        guard let mode = input.first else { return nil }
        var subject = SessionSubject(mode)
        for part in input.dropFirst().split(separator: 0xFF) {
            guard let letter = part.first else { continue }
            subject.happen(letter, Array(part.dropFirst()))
            if let contradiction = subject.contradiction { return contradiction }
        }
        subject.end()
        return subject.contradiction ?? contradictionWhenReadAgain(subject.records)
    }

    /// Returns the records of the session that an input describes.
    static func records(of input: [UInt8]) -> [RecordLine] {
        var subject = SessionSubject(input.first ?? 0)
        for part in input.dropFirst().split(separator: 0xFF) {
            subject.happen(part.first ?? 0, Array(part.dropFirst()))
        }
        subject.end()
        return subject.records
    }

    /// Reads the records as those of a capture; returns the contradiction, if any.
    private static func contradictionWhenReadAgain(_ records: [RecordLine]) -> String? {
        var source = RecordedSource(waiting: records[...])
        var runner = SourceRunner(run: Run(), options: CaptureSource.options)
        var check = RecordCheck()
        var contradiction: String?
        runner.process(&source) { contradiction = contradiction ?? check.contradiction($0) }
        runner.release { contradiction = contradiction ?? check.contradiction($0) }
        return contradiction
    }
}

/// The session, and the data that it has forwarded.
private struct SessionSubject: ~Copyable {
    private var session: Session
    private var shared: SharedState
    private let passes: Bool
    private let isObserved: Bool
    private var now = Run.Instant(time: Timestamp(nanoseconds: 1_700_000_000_000_000_000), monotonic: 0)
    private var came: [Direction: [UInt8]] = [.send: [], .recv: []]
    private var forwarded: [Direction: Int] = [.send: 0, .recv: 0]
    private var check = RecordCheck()
    private var number: UInt64 = 0
    private var ended: Set<Direction> = []
    private var isConnected = false
    /// Whether the session has closed the connections, or has sent an item of xmpptap, which is its last output unless
    /// items are edited.
    private var isOver = false
    private(set) var records: [RecordLine] = []
    private(set) var contradiction: String?

    static let rules = """
        %RATE calm: 1 (burst 2)
        %LIST seen: memory (limit: 3)
        %PATTERN word: %S+
        %SEARCH body: body#
        ::handshake

        ELEMENT: {urn:ietf:params:xml:ns:xmpp-bind}bind
        LOG=binds

        ::both

        KIND: message
        INSPECT: body#/=drop
        DROP.

        KIND: message
        INSPECT: body#/=bounce
        BOUNCE=policy-violation (No)

        KIND: message
        INSPECT: body#/=reply
        REPLY=Busy $<@from|node>

        KIND: message
        INSPECT: body#/=wait
        DELAY=2s (jitter 500ms)

        KIND: message
        INSPECT: body#/=hold
        PAUSE.

        KIND: message
        INSPECT: body#/=twice
        DUPLICATE=2

        KIND: message
        INSPECT: body#/=copy
        COPY=log@example.net
        FORWARD=admin@example.net

        KIND: message
        INSPECT: body#/=edit
        SET=body# ~word=[%0]
        REMOVE=thread
        INJECT=<note xmlns='urn:x'>$<@to></note>

        KIND: message
        INSPECT: body#/=slice
        SLICE=3 (every 7ms)

        KIND: message
        COUNT: word in body > 4
        CHECK LIST: seen contains $<@from|bare>
        ADD TO=seen $<@to|bare>

        KIND: presence
        NOT IN ROSTER?
        LIMIT: calm on $<@from|bare>
        DROP.

        KIND: iq
        NTH: 3
        STALL=3s

        ELEMENT: {urn:xmpp:sm:3}a
        EVERY: 3
        LOSE ACK.

        REDACT=body#
        """

    init(_ mode: UInt8) {
        var options = SessionOptions(level: mode & 1 == 0 ? .trace : .verbose)
        if mode & 2 != 0 { options.onUnparsable = .close }
        if mode & 4 != 0 {
            do throws(RuleSet.LoadError) {
                let rules = try RuleSet([RuleSource(name: "fuzz.pfw", text: Self.rules)])
                options.rules = LiveRules(rules) { _ in RuleLocalTime() }
            } catch {
                fatalError("\(error.faults)")
            }
        }
        if mode & 8 != 0 { options.ping = PingOptions(interval: 5_000_000_000, method: mode & 1 == 0 ? .sm : .iq) }
        if mode & 16 != 0 { options.holdsProceed = true }
        if mode & 32 != 0 {
            let limits = StreamLimits(
                itemBytes: 600,
                tagBytes: 300,
                depth: 5,
                attributes: 6,
                nameBytes: 40,
                namespaces: 6
            )
            (options.unauthenticatedLimits, options.limits) = (limits, limits)
        }
        if mode & 64 != 0 { options.isObserved = true }
        if mode & 128 != 0 { options.framing = .messages }
        isObserved = options.isObserved
        // Whether the options neither alter nor inject items.
        passes = mode & (2 | 4 | 8 | 16 | 64) == 0
        let run = Run()
        shared = SharedState(run)
        session = Session(
            run: run,
            options: options,
            tools: SessionTools(run: run, redaction: options.redaction),
            remote: "192.0.2.1:40000",
            upstream: "192.0.2.2:5222",
            at: now
        )
        drain()
    }

    mutating func happen(_ letter: UInt8, _ text: [UInt8]) {
        now = now.advanced(by: 1_000_000)
        switch letter {
        case UInt8(ascii: "c"): receive(.send, text)
        case UInt8(ascii: "s"): receive(.recv, text)
        case UInt8(ascii: "C"): receive(.send, Self.frame(text, from: .send))
        case UInt8(ascii: "S"): receive(.recv, Self.frame(text, from: .recv))
        case UInt8(ascii: "o"):
            isConnected = true
            handle(.connected("192.0.2.2:5222"))
        case UInt8(ascii: "x"): handle(.connectionFailed("refused"))
        case UInt8(ascii: "t"):
            now = now.advanced(by: Int64(text.first ?? 1) * 1_000_000_000)
            handle(.tick)
        case UInt8(ascii: "d"):
            guard let deadline = session.nextDeadline, deadline > now.monotonic else { return handle(.tick) }
            now = now.advanced(by: deadline - now.monotonic)
            handle(.tick)
        case UInt8(ascii: "e"): finish(text.first == 1 ? .recv : .send)
        case UInt8(ascii: "r"):
            let leg: Leg = text.first == 1 ? .server : .client
            ended.insert(leg == .client ? .send : .recv)
            handle(.ended(leg, .reset))
        case UInt8(ascii: "i") where !passes:
            number += 1
            let leg: Leg = text.first == UInt8(ascii: "C") ? .client : .server
            let swallows = text.count & 1 == 0
            handle(.inject(Injection(Array(text.dropFirst()), to: leg, number: number, swallowsAnswer: swallows)))
        case UInt8(ascii: "p") where !passes: handle(.pause(try? StanzaPause(nil, count: Int(text.first ?? 1))))
        case UInt8(ascii: "l") where !passes:
            guard let item = session.heldItems.first else { return }
            handle(.release(item.number, text.isEmpty ? .pass : .drop))
        case UInt8(ascii: "T") where !passes:
            let leg: Leg = text.first == 1 ? .server : .client
            handle(.tls(leg, text.count > 1 ? .truncated : .started(directly: false)))
        case UInt8(ascii: "m") where isObserved:
            handle(.missed(text.first == 1 ? .recv : .send, bytes: UInt64(text.count)))
        case UInt8(ascii: "a"): handle(.abort(.policyViolation, "enough"))
        case UInt8(ascii: "q"): handle(.stop)
        default: break
        }
    }

    /// Returns a WebSocket frame; the first byte determines its kind, and whether it is the last of its message.
    private static func frame(_ text: [UInt8], from direction: Direction) -> [UInt8] {
        let kind = text.first ?? 0
        let payload = text.dropFirst()
        let opcode = WebSocketOpcode.allCases[Int(kind >> 1) % WebSocketOpcode.allCases.count]
        let role: WebSocketFrameWriter.Role = direction == .send ? .client(maskKey: 0x5A00_C3FF) : .server
        var bytes: [UInt8] = []
        WebSocketFrameWriter.appendHeader(
            opcode,
            payloadLength: payload.count,
            isFinal: kind & 1 == 0,
            as: role,
            to: &bytes
        )
        let start = bytes.count
        bytes += payload
        if case .client(let key) = role { WebSocketMask.apply(key, at: 0, to: &bytes, from: start) }
        return bytes
    }

    mutating func end() {
        handle(.closed)
    }

    private mutating func receive(_ direction: Direction, _ bytes: [UInt8]) {
        guard !ended.contains(direction) else { return }
        came[direction]? += bytes
        if session.receive(direction, bytes.span, at: now) == .relay { pass(direction, bytes) }
        drain()
    }

    /// Ends a peer's connection: all its data must be forwarded, unless the session has ended before.
    private mutating func finish(_ direction: Direction) {
        ended.insert(direction)
        handle(.ended(direction == .send ? .client : .server, .finished))
        guard passes, isConnected, !isOver, forwarded[direction] != came[direction]?.count else { return }
        contradiction = "\(direction.name): ended at \(came.mapValues(\.count)), of which went on \(forwarded)"
    }

    private mutating func handle(_ input: SessionInput) {
        session.handle(input, at: now)
        drain()
    }

    private mutating func drain() {
        while let command = session.next() {
            switch command {
            case .forward(let direction):
                var bytes: [UInt8] = []
                bytes.append(session.content)
                pass(direction, bytes)
            // The rest of a received item, or an item of xmpptap.
            case .send(let leg, let bytes):
                let direction: Direction = leg == .server ? .send : .recv
                if isNext(direction, bytes) { pass(direction, bytes) } else { isOver = true }
            case .record(let record):
                let line = session.withContent { RecordLine(record, content: $0) }
                contradiction = contradiction ?? check.contradiction(line)
                records.append(line)
            case .compute(var step):
                step.perform()
                session.handle(.computed(step), at: now)
            case .close: isOver = true
            case .shared(let request):
                if let answer = shared.perform(request) { session.handle(answer) }
            case .searchJournal(let marks): session.handle(.searchedJournal(marks, isFound: false), at: now)
            case .addToJournal, .tls, .injected, .displace, .read, .shape, .finish: break
            }
        }
    }

    private func isNext(_ direction: Direction, _ bytes: [UInt8]) -> Bool {
        guard let came = came[direction], let place = forwarded[direction] else { return false }
        return place + bytes.count <= came.count && came[place..<place + bytes.count].elementsEqual(bytes)
    }

    /// Checks forwarded bytes: without edits, they are unchanged and in order.
    private mutating func pass(_ direction: Direction, _ bytes: [UInt8]) {
        guard passes else { return }
        if !isNext(direction, bytes) {
            contradiction = "\(direction.name): \(bytes.count) bytes go on that are not next behind \(forwarded)"
        }
        forwarded[direction, default: 0] += bytes.count
    }
}

/// A source with the records of one session, as from a capture.
private struct RecordedSource: Source {
    var waiting: ArraySlice<RecordLine>
    private var capture = CaptureSource()

    init(waiting: ArraySlice<RecordLine>) { self.waiting = waiting }

    mutating func next() -> SourceInput? {
        while true {
            if let input = capture.next() { return input }
            guard let record = waiting.popFirst() else { return nil }
            capture.add(record)
        }
    }
}
