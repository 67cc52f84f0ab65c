import TapCore
import TapRecord
import TapRules
import XMPPCore

/// A session without a driver; its records are passed to a closure.
struct DrivenSession: ~Copyable {
    private var session: Session
    private var shared: SharedState
    private var now: Run.Instant
    private(set) var recordCount = 0

    init(_ level: Level, _ run: Run, _ tools: SessionTools, rules: String? = nil) {
        now = Run.Instant(time: Timestamp(nanoseconds: 1_700_000_000_000_000_000), monotonic: 0)
        var options = SessionOptions(level: level)
        if let rules {
            let set = try? RuleSet([RuleSource(name: "sample.pfw", text: rules)])
            precondition(set != nil, "a sample rule is invalid")
            options.rules = LiveRules(set) { _ in RuleLocalTime() }
        }
        shared = SharedState(run)
        session = Session(
            run: run,
            options: options,
            tools: tools,
            remote: "192.0.2.7:50000",
            upstream: "192.0.2.1:5222",
            at: now
        )
        session.handle(.connected("192.0.2.1:5222"), at: now)
        drain { _, _ in }
    }

    mutating func receive(
        _ direction: Direction,
        _ bytes: Span<UInt8>,
        _ write: (borrowing Record, Span<UInt8>) -> Void = { _, _ in }
    ) {
        now = now.advanced(by: 1_000)
        _ = session.receive(direction, bytes, at: now)
        drain(write)
    }

    /// Passes stanzas to the session, one in each read; returns their number.
    @discardableResult
    mutating func receive(_ direction: Direction, _ stanzas: [[UInt8]]) -> Int {
        for stanza in stanzas { receive(direction, stanza.span) }
        return stanzas.count
    }

    private mutating func drain(_ write: (borrowing Record, Span<UInt8>) -> Void) {
        while let command = session.next() {
            switch consume command {
            case .record(let record):
                recordCount += 1
                write(record.record, session.content)
            case .shared(let request):
                if let answer = shared.perform(request) { session.handle(answer) }
            default: break
            }
        }
    }

    /// Logs in, from the first byte to the bound resource.
    mutating func logIn(_ write: (borrowing Record, Span<UInt8>) -> Void = { _, _ in }) {
        for (direction, bytes) in Self.login { receive(direction, bytes.span, write) }
    }

    mutating func close() {
        session.handle(.closed, at: now)
        drain { _, _ in }
    }

    private static let login: [(Direction, [UInt8])] = {
        let header = "xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
        let client = "<?xml version='1.0'?><stream:stream to='garden.example' \(header)"
        let server = "<?xml version='1.0'?><stream:stream from='garden.example' id='s1' \(header)"
        let lines: [(Direction, String)] = [
            (.send, client),
            (
                .recv,
                server + "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>"
                    + "<mechanism>PLAIN</mechanism></mechanisms></stream:features>"
            ),
            (.send, "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AGFzaAByb290cw==</auth>"),
            (.recv, "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"),
            (.send, client),
            (
                .recv,
                server + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
                    + "<sm xmlns='urn:xmpp:sm:3'/></stream:features>"
            ),
            (.send, "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>"),
            (
                .recv,
                "<iq type='result' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                    + "<jid>ash@garden.example/shed</jid></bind></iq>"
            ),
        ]
        return lines.map { ($0.0, Array($0.1.utf8)) }
    }()
}
