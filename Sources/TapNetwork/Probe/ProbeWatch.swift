internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// The probe's session as the tap sees every session: its records go to the logs, its timeline and diagnosis to the report.
///
/// A class, since a ``Session`` is not to be copied. On one event loop.
final class ProbeWatch {
    private var session: Session
    private let clock: RunClock
    private let records: RecordDispatcher.Producer
    /// Records of the timeline.
    private(set) var steps: [Record] = []
    private(set) var diagnosis: LoginDiagnosis?

    init(run: Run, clock: RunClock, dispatcher: RecordDispatcher, redaction: RedactionPolicy, upstream: String) {
        self.clock = clock
        records = RecordDispatcher.Producer(dispatcher)
        // The report needs the steps at verbose, whatever the logs' levels.
        var options = SessionOptions(level: max(dispatcher.level.current, .verbose), redaction: redaction)
        options.holdsProceed = true
        options.isOwnClient = true
        session = Session(
            run: run,
            options: options,
            tools: SessionTools(run: run, redaction: redaction),
            remote: nil,
            upstream: upstream,
            beginning: Record.Beginning.ownClient,
            at: clock.now()
        )
        drain()
    }

    var now: Run.Instant { clock.now() }

    func made(_ step: DiscoveryStep) {
        session.made(step, at: now)
        drain()
    }

    func connected(_ address: String, since: Run.Instant?) {
        session.serverConnected(address, since: since, at: now)
        drain()
    }

    func failed(_ words: String, _ fault: ConnectionFault) {
        session.serverFailed(words, fault, at: now)
        session.blame(fault.cause, at: fault.isAboutNames ? .nameLookup : .connect, words)
        drain()
    }

    func passes(_ direction: Direction, _ bytes: Span<UInt8>) {
        _ = session.receive(direction, bytes, at: now)
        drain()
    }

    func tlsBegins(directly: Bool) {
        // What came too early is refused by the client itself.
        if !directly { _ = session.mayBeginTLS(at: now) }
        session.tlsBegins(.server, directly: directly, at: now)
        drain()
    }

    func tlsOpened(_ parameters: TLSParameters) {
        session.tlsOpened(
            .server,
            parameters.details,
            parameters.words(peer: "the server"),
            overlooked: parameters.overlookedWords,
            at: now
        )
        drain()
    }

    func tlsFailed(_ fault: TLSFault) {
        session.tlsFailed(.server, TLSFailure(code: fault.name, fault.words(peer: "the server")), at: now)
        drain()
    }

    /// Why the probe stopped, if the streams do not show it.
    func blame(_ cause: LoginCause, at loginStep: LoginStep.Name, _ finding: String, side: LoginCause.Side? = nil) {
        session.blame(cause, at: loginStep, finding, side: side)
    }

    /// The probe has seen all that it wanted; that it goes no further is no failure.
    func leave() {
        session.stop(at: now)
        drain()
    }

    /// The connection is over; the session's last records are made.
    func end(by leg: Leg) {
        session.ended(leg, .finished, at: now)
        drain()
        session.ended(leg.other, .finished, at: now)
        drain()
        session.closed(at: now)
        drain()
    }

    private func drain() {
        while let command = session.next() {
            guard case .record(let record) = command else { continue }
            session.withContent { records.write(record, content: $0) }
            switch record.code {
            case LoginStep.code: steps.append(record)
            case Record.Code.loginFailed: diagnosis = LoginDiagnosis(record)
            default: break
            }
        }
    }
}

extension ConnectionFault {
    /// Whether no address was found at all.
    fileprivate var isAboutNames: Bool {
        switch self {
        case .nameNotFound, .notOffered, .lookupFailed: true
        case .refused, .timeout, .unreachable: false
        }
    }
}
