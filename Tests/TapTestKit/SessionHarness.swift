package import TapCore
package import TapDiagnosis
package import TapRecord
package import XMPPCore

/// A session that a test controls: bytes and events in, forwarded bytes and records out. The clock advances 1 ms with
/// each received piece of data, otherwise only on request.
package struct SessionHarness: ~Copyable {
    /// A record with its content.
    package struct Told {
        /// The record.
        package var record: Record
        /// The content that belongs to the record.
        package var content: [UInt8]

        /// Returns a text of the record; nil if the record does not have it.
        package func text(_ range: ByteRange?) -> String? {
            range.map { content.span.slice($0).string() }
        }

        /// The item's XML as recorded; nil if the record has none.
        package var xml: String? { text(record.xml) }
    }

    /// The session.
    package var session: Session
    /// Bytes forwarded to the server.
    package private(set) var toServer: [UInt8] = []
    /// Bytes forwarded to the client.
    package private(set) var toClient: [UInt8] = []
    /// All records so far.
    package private(set) var told: [Told] = []
    /// Whether the test decides when the certificate for the client is found; otherwise it is found at once.
    package var keepsIdentity = false
    /// Legs whose handshake was started.
    package private(set) var handshakes: [Leg] = []
    /// How often the session let the driver answer a server that requests a certificate.
    package private(set) var presented = 0
    /// The outcomes of injected stanzas.
    package private(set) var injected: [(number: UInt64, outcome: InjectionOutcome)] = []
    /// The traffic shapes that were set for legs.
    package private(set) var shapes: [(leg: Leg, shape: LinkShape?)] = []
    /// Legs for which reading is paused.
    package private(set) var unread: Set<Leg> = []
    /// Legs to which a FIN was sent.
    package private(set) var finished: [Leg] = []
    /// Sessions that the session has displaced.
    package private(set) var displaced: [UInt64] = []
    /// Whether the session closes both legs with a reset; nil if it has not closed them.
    package private(set) var closed: Bool?
    /// Whether slow steps of a login wait in ``slowSteps`` for ``compute()``.
    package var keepsSlowSteps = false
    /// The slow steps that wait.
    package private(set) var slowSteps: [SlowStep] = []
    /// Whether searches in the journal wait in ``searches`` for ``answerSearch()``.
    package var keepsSearches = false
    /// The marks of the searches in the journal that wait.
    package private(set) var searches: [[[UInt8]]] = []
    /// Marks that the session has added to the journal, each with the number of bytes forwarded to the client by then.
    package private(set) var added: [(mark: [UInt8], toClient: Int)] = []
    private let journal: (any ResumptionJournal)?
    private var shared: SharedState
    /// The time of the next event.
    package var now = Run.Instant(time: Timestamp(nanoseconds: 1_700_000_000_000_000_000), monotonic: 0)

    /// Advice that consists of the remedy's name, instead of the command line's text for it.
    package static let advice: Advice = { "\($0)" }

    /// Creates a session, with a connected server by default. Its advice is ``advice``.
    package init(
        options: SessionOptions = SessionOptions(level: .trace),
        run: Run = Run(),
        connected: Bool = true,
        remote: String = "127.0.0.1:50000"
    ) {
        var options = options
        options.advice = Self.advice
        journal = run.journal
        shared = SharedState(run)
        session = Session(
            run: run,
            options: options,
            tools: SessionTools(run: run, redaction: options.redaction),
            remote: remote,
            upstream: "127.0.0.1:5222",
            at: now
        )
        if connected { connect() } else { drain() }
    }

    /// Passes bytes of a direction to the session, 1 ms after the last event.
    package mutating func receive(_ direction: Direction, _ bytes: [UInt8], records: [Int]? = nil) {
        now = now.advanced(by: 1_000_000)
        if session.receive(direction, bytes.span, records: records, at: now) == .relay { pass(direction, bytes) }
        drain()
    }

    /// Passes text from the client to the session.
    package mutating func send(_ text: String) { receive(.send, Array(text.utf8)) }

    /// Passes text from the server to the session.
    package mutating func recv(_ text: String) { receive(.recv, Array(text.utf8)) }

    /// Passes an input to the session.
    package mutating func handle(_ input: SessionInput) {
        session.handle(input, at: now)
        drain()
    }

    /// Ends the input of a leg.
    package mutating func end(_ leg: Leg, _ end: LegEnd = .finished) {
        handle(.ended(leg, end))
    }

    /// Reports that the connection to the server is established.
    package mutating func connect() {
        handle(.connected("127.0.0.1:5222"))
    }

    /// Reports that the connection to the server failed.
    package mutating func failServer(_ reason: String, _ fault: ConnectionFault = .unreachable) {
        handle(.connectionFailed(reason, fault))
    }

    /// Aborts the session from outside.
    package mutating func abort(_ condition: StreamErrorCondition, _ text: String) {
        handle(.abort(condition, text))
    }

    /// Injects a stanza into a stream.
    package mutating func inject(_ injection: Injection) {
        handle(.inject(injection))
    }

    /// Advances the clock by nanoseconds.
    package mutating func wait(_ nanoseconds: Int64) {
        now = now.advanced(by: nanoseconds)
        handle(.tick)
    }

    /// Reports that both legs are closed.
    package mutating func close() {
        handle(.closed)
    }

    /// Performs the first slow step that waits.
    package mutating func compute() {
        var step = slowSteps.removeFirst()
        step.perform()
        handle(.computed(step))
    }

    /// Answers the first search in the journal that waits.
    package mutating func answerSearch() {
        let marks = searches.removeFirst()
        handle(.searchedJournal(marks, isFound: journal?.found(of: marks).isEmpty == false))
    }

    private mutating func pass(_ direction: Direction, _ bytes: [UInt8]) {
        switch direction {
        case .send: toServer += bytes
        case .recv: toClient += bytes
        }
    }

    private mutating func drain() {
        defer { storeEndState() }
        storeEndState()
        if let inherited = shared.takeTransferred() { session.handle(inherited) }
        while let command = session.next() {
            switch command {
            case .shared(let request):
                if let answer = shared.perform(request) { session.handle(answer) }
            case .forward(let direction):
                var bytes: [UInt8] = []
                bytes.append(session.content)
                pass(direction, bytes)
            case .send(let leg, let bytes): pass(leg == .server ? .send : .recv, bytes)
            case .record(let record):
                var content: [UInt8] = []
                content.append(session.content)
                told.append(Told(record: record.record, content: content))
            case .tls(let command): perform(command)
            case .compute(var step):
                guard !keepsSlowSteps else {
                    slowSteps.append(step)
                    continue
                }
                step.perform()
                session.handle(.computed(step), at: now)
            case .read(let leg, true): unread.remove(leg)
            case .read(let leg, false): unread.insert(leg)
            case .injected(let number, let outcome): injected.append((number, outcome))
            case .shape(let leg, let shape): shapes.append((leg, shape))
            case .addToJournal(let mark):
                added.append((mark, toClient.count))
                journal?.add([mark])
            case .searchJournal(let marks):
                searches.append(marks)
                if !keepsSearches { answerSearch() }
            case .displace(let session): displaced.append(session)
            case .finish(let leg): finished.append(leg)
            case .close(let reset): closed = reset
            }
        }
    }

    private mutating func storeEndState() { if let request = session.takeEnding() { _ = shared.perform(request) } }

    private mutating func perform(_ command: TLSCommand) {
        switch command {
        case .startServer(_, _, _, let isDirect):
            handshakes.append(.server)
            session.handle(.tls(.server, .started(directly: isDirect)), at: now)
        case .findIdentity: if !keepsIdentity { session.handle(.identityFound(isServersOwn: false), at: now) }
        case .startClient(_, _, let isDirect, let first):
            handshakes.append(.client)
            if !isDirect { pass(.recv, first) }
            session.handle(.tls(.client, .started(directly: isDirect)), at: now)
        case .presentIdentity: presented += 1
        }
    }

    /// Completes the TLS handshake on a leg.
    package mutating func openTLS(_ leg: Leg) {
        let agreement = TLSAgreement(
            version: 0x0304,
            details: ["version": "TLS 1.3"],
            summary: "TLS 1.3 with the \(leg.name)"
        )
        handle(.tls(leg, .opened(agreement)))
    }

    /// Returns the records with this stable code.
    package func told(code: String) -> [Told] { told.filter { $0.record.code == code } }
}

extension SessionHarness {
    /// Returns the output of sinks for the session's records: JSON as in captures, and text at level trace.
    package func written() throws -> String {
        let filter = LogFilter(try LogSpec("trace"))
        var json = JSONForm()
        var text = TextForm()
        var line = LineBuffer()
        for told in told {
            json.append(told.record, content: told.content.span, [.content, .chunks], to: &line)
            text.append(told.record, content: told.content.span, filter.shown(of: told.record), to: &line)
        }
        return String(decoding: line.bytes, as: UTF8.self)
    }
}
