internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Passes the probe's connection to a ``Session``, as a proxy does: its records go to the logs, its timeline and
/// diagnosis to the report.
///
/// Used on one event loop.
final class ProbeWatch {
    private let runner: SessionRunner
    private let clock: RunClock
    private let records: RecordDispatcher.Producer
    private(set) var steps: [Record] = []
    private(set) var diagnosis: LoginDiagnosis?

    init(
        run: Run,
        clock: RunClock,
        dispatcher: RecordDispatcher,
        redaction: RedactionPolicy,
        advice: Advice?,
        upstream: String
    ) {
        self.clock = clock
        records = RecordDispatcher.Producer(dispatcher)
        // The report needs the timeline, which is recorded from level verbose on, whatever the level of the logs is.
        var options = SessionOptions(level: max(dispatcher.level.current, .verbose), redaction: redaction)
        options.holdsProceed = true
        options.isOwnClient = true
        options.advice = advice
        runner = SessionRunner(
            Session(
                run: run,
                options: options,
                tools: SessionTools(run: run, redaction: redaction),
                remote: nil,
                upstream: upstream,
                beginning: Record.Beginning.ownClient,
                at: clock.now()
            )
        )
        drain()
    }

    var now: Run.Instant { clock.now() }

    func made(_ step: DiscoveryStep) {
        handle(.attempted(step))
    }

    func connected(_ address: String, since: Run.Instant?) {
        handle(.connected(address, since: since))
    }

    func failed(_ reason: String, _ fault: ConnectionFault) {
        runner.session.handle(.connectionFailed(reason, fault), at: now)
        blame(fault.cause, at: fault.isAboutNames ? .nameLookup : .connect, reason)
        drain()
    }

    func passes(_ direction: Direction, _ bytes: Span<UInt8>) {
        _ = runner.session.receive(direction, bytes, at: now)
        drain()
    }

    func tlsBegins(directly: Bool) {
        handle(.tls(.server, .started(directly: directly)))
    }

    func tlsOpened(_ parameters: TLSParameters) {
        handle(.tls(.server, .opened(TLSAgreement(parameters, .server))))
    }

    func tlsFailed(_ fault: TLSFault) {
        var failure = TLSFailure(code: fault.name, fault.explanation(peer: "the server"))
        failure.peerAlert = fault.alertReceived?.name
        handle(.tls(.server, .failed(failure)))
    }

    /// Reports why the probe stopped, if the streams do not show it.
    func blame(_ cause: LoginCause, at loginStep: LoginStep.Name, _ finding: String, side: LoginCause.Side? = nil) {
        runner.session.handle(.blamed(LoginDiagnosis(cause, at: loginStep, Prose(finding), side: side)), at: now)
    }

    /// Marks the session as ended by the probe before the login, which is not a failure.
    func leave() {
        handle(.stop)
    }

    /// Handles the end of the connection, which completes the session's records.
    func end(by leg: Leg) {
        handle(.ended(leg, .finished))
        handle(.ended(leg.other, .finished))
        handle(.closed)
    }

    private func handle(_ input: SessionInput) {
        runner.session.handle(input, at: now)
        drain()
    }

    private func drain() {
        runner.drain { redacted, content in
            records.write(redacted, content: content)
            let record = redacted.record
            switch record.code {
            case LoginStep.code: steps.append(record)
            case Record.Code.loginFailed: diagnosis = LoginDiagnosis(record)
            default: break
            }
        }
    }
}

extension ConnectionFault {
    /// Whether no usable address was found.
    fileprivate var isAboutNames: Bool {
        switch self {
        case .nameNotFound, .notOffered, .lookupFailed: true
        case .refused, .timeout, .unreachable: false
        }
    }
}
