public import TapRecord
internal import XMPPCore

/// Runs a session: passes the session's commands to a performer, in order. Used for live sessions, for the probe's
/// session, and for sessions from client logs, packets and captures.
///
/// A class, because a ``Session`` cannot be copied. After each call on ``session``, call ``run(by:)`` or ``drain(_:)``.
package final class SessionRunner {
    /// The current user of the session's memory.
    private enum Use { case nobody, caller, performer }

    /// The session. Only this file accesses it, after checking ``use``.
    private var storage: Session
    private var shared: SharedState
    private var use = Use.nobody

    /// Creates a runner for a session.
    package init(_ session: consuming Session) {
        shared = SharedState(session.run)
        storage = session
    }

    /// The session.
    ///
    /// Accesses must not overlap a change, and a ``CommandPerformer`` must not change the session while it reads the
    /// session's memory. Both errors trap.
    package var session: Session {
        _read {
            precondition(use != .caller, "the session is read while it is being changed")
            yield storage
        }
        _modify {
            precondition(use == .nobody, "the session is changed while its memory is in use")
            use = .caller
            defer {
                use = .nobody
                storeEndState()
            }
            yield &storage
        }
    }

    /// Stores the state of an ended session for a session that resumes it, even while the performer is paused.
    private func storeEndState() { if let request = storage.takeEnding() { _ = shared.perform(request) } }

    /// Calls `body`, which passes memory of the session to a performer. Nothing may change the session during the call.
    @inline(__always)
    private func lend(_ body: () -> Void) {
        use = .performer
        defer { use = .nobody }
        body()
    }

    /// Passes bytes to the session without a copy, unlike ``SourceInput/Kind/received(_:_:inferred:records:)``, and runs its
    /// commands.
    package func receive(
        _ direction: Direction,
        _ bytes: Span<UInt8>,
        records: [Int]? = nil,
        at now: Run.Instant,
        to consumer: inout some RecordConsumer
    ) {
        _ = session.receive(direction, bytes, records: records, at: now)
        run(by: &consumer)
    }

    /// Passes the inputs of a source to the session, one at a time, and runs the resulting commands. Returns when the
    /// source has no more inputs, or the performer is paused.
    package func run(_ source: inout some Source, by performer: inout some CommandPerformer) {
        run(by: &performer)
        while !performer.isPaused, let input = source.next() {
            if process(input) == .relay, case .received(let direction, let bytes, _, _) = input.kind {
                performer.forward(direction, bytes.span)
            }
            run(by: &performer)
        }
    }

    /// Passes an input to the session, which must have begun. Does nothing for the records of a recording.
    @discardableResult
    package func process(_ input: SourceInput) -> Disposition {
        switch input.kind {
        case .received(let direction, let bytes, _, let records):
            return session.receive(direction, bytes.span, records: records, at: input.at)
        case .input(let kind): session.handle(kind, at: input.at)
        case .began, .recorded: break
        }
        return .keep
    }

    /// Passes the session's pending commands to the performer.
    ///
    /// Only ``CommandPerformer/perform(_:)`` may pass another input to the session during this call; the commands of
    /// that input follow. The two other functions of the performer read the session's memory, so an input from them
    /// traps.
    @inline(__always)
    package func run(by performer: inout some CommandPerformer) {
        precondition(use == .nobody, "commands are carried out while the session's memory is in use")
        if let inherited = shared.takeTransferred() { storage.handle(inherited) }
        defer { storeEndState() }
        while let kind = storage.advance() {
            switch kind {
            case .record:
                lend { storage.withRecord { performer.receive($0, content: $1) } }
                storage.removeRecord()
            case .send: lend { storage.withContent { performer.forward(.send, $0) } }
            case .recv: lend { storage.withContent { performer.forward(.recv, $0) } }
            case .other:
                guard let command = storage.takeCommand() else { continue }
                if case .shared(let request) = command {
                    let answer = shared.perform(request)
                    if let answer { storage.handle(answer) }
                } else {
                    performer.perform(command)
                    if performer.isPaused { return }
                }
            }
        }
    }

    /// Passes the records of the last event to `handler`, and discards all other commands. For sessions that relay
    /// nothing.
    package func drain(_ handler: (borrowing RedactedRecord, Span<UInt8>) -> Void) {
        withoutActuallyEscaping(handler) { handler in
            var forwarder = RecordForwarder(handler: handler)
            run(by: &forwarder)
        }
    }

    private struct RecordForwarder: CommandPerformer {
        let handler: (borrowing RedactedRecord, Span<UInt8>) -> Void

        func receive(_ record: borrowing RedactedRecord, content: Span<UInt8>) { handler(record, content) }
        func forward(_ direction: Direction, _ content: Span<UInt8>) {}
        func perform(_ command: consuming Command) {}
    }
}

/// An object that performs the commands of a session.
package protocol CommandPerformer {
    /// Receives a record. Its texts are gone when this returns.
    mutating func receive(_ record: borrowing RedactedRecord, content: Span<UInt8>)
    /// Writes bytes, which are gone when this returns, to the leg on which the direction leaves.
    mutating func forward(_ direction: Direction, _ content: Span<UInt8>)
    /// Performs another command.
    mutating func perform(_ command: consuming Command)
    /// Whether later commands must wait after ``perform(_:)``. The performer calls ``SessionRunner/run(_:by:)`` again
    /// when they may continue.
    var isPaused: Bool { get }
}

extension CommandPerformer {
    /// False by default: the performer never pauses.
    package var isPaused: Bool { false }
}

/// A receiver of records, in order, for sessions that relay nothing. All other commands are ignored.
package protocol RecordConsumer: CommandPerformer {
    /// Receives a record with its texts.
    mutating func receive(_ line: consuming RecordLine)
}

extension RecordConsumer {
    /// Does nothing by default.
    package func forward(_ direction: Direction, _ content: Span<UInt8>) {}
    /// Does nothing by default.
    package func perform(_ command: consuming Command) {}
}

/// Passes each record on with a copy of its texts.
private struct LineConsumer: RecordConsumer {
    let handler: (consuming RecordLine) -> Void

    func receive(_ record: borrowing RedactedRecord, content: Span<UInt8>) {
        handler(RecordLine(record, content: content))
    }

    func receive(_ line: consuming RecordLine) { handler(line) }
}

/// Runs the sessions of a source, and outputs their records.
public struct SourceRunner {
    private let run: Run
    private let options: SessionOptions
    private let tools: SessionTools
    private var sessions: [UInt64: (runner: SessionRunner, recorded: RecordedSession?)] = [:]

    /// Creates a runner for the sessions of a run.
    public init(run: Run, options: SessionOptions) {
        self.run = run
        self.options = options
        tools = SessionTools(run: run, redaction: options.redaction)
    }

    /// Passes all available inputs of a source to its sessions, and the resulting records to `handler`.
    package mutating func process(_ source: inout some Source, _ handler: (consuming RecordLine) -> Void) {
        while let input = source.next() { process(input, handler) }
    }

    /// Outputs the records that recorded sessions hold, because no further input follows.
    package func release(_ handler: (consuming RecordLine) -> Void) {
        for number in sessions.keys.sorted() { sessions[number]?.recorded?.release(handler) }
    }

    /// Passes one input of a source to its session, and the resulting records to `handler`.
    public mutating func process(_ input: SourceInput, _ handler: (consuming RecordLine) -> Void) {
        withoutActuallyEscaping(handler) { handler in
            var consumer = LineConsumer(handler: handler)
            process(input, to: &consumer)
        }
    }

    /// Returns the runner of a session that has begun and not ended; nil for another number.
    package func runner(of session: UInt64) -> SessionRunner? { sessions[session]?.runner }

    /// Passes one input of a source to its session, and each resulting record to `consumer` as soon as it is created.
    package mutating func process(_ input: SourceInput, to consumer: inout some RecordConsumer) {
        var inferred: String?
        let runner: SessionRunner
        switch input.kind {
        case .recorded(let line): return process(line, input, to: &consumer)
        case .began(let beginning, let remote):
            runner = begin(beginning, remote, input)
            sessions[input.session] = (runner, options.isRecorded ? RecordedSession(runner, run) : nil)
        case .received, .input:
            guard let known = sessions[input.session]?.runner else { return }
            runner = known
            runner.process(input)
            if case .received(_, _, let why, _) = input.kind { inferred = why }
            if case .input(.closed) = input.kind { sessions[input.session] = nil }
        }
        guard let inferred else { return runner.run(by: &consumer) }
        runner.drain { record, content in
            let line = RecordLine(record, content: content)
            consumer.receive(line.record.kind == .streamOpen ? line.inferred(inferred) : line)
        }
    }

    private mutating func process(_ line: RecordLine, _ input: SourceInput, to consumer: inout some RecordConsumer) {
        guard let recorded = sessions[input.session]?.recorded else {
            return consumer.receive(line.numbered(run.nextSequence()))
        }
        if recorded.process(line, at: input.at, { consumer.receive($0) }) == .ended { sessions[input.session] = nil }
    }

    private func begin(_ beginning: Record.Beginning, _ remote: String?, _ input: SourceInput) -> SessionRunner {
        var options = options
        if beginning.framing != .stream { options.framing = beginning.framing }
        if beginning.isBOSH { options.isBOSH = true }
        return SessionRunner(
            Session(
                run: run,
                options: options,
                tools: tools,
                remote: remote,
                upstream: "",
                beginning: beginning,
                number: input.session,
                at: input.at
            )
        )
    }
}

/// A source of sessions: it returns their inputs, with the times.
///
/// Sans-IO: the owner of the file or socket passes the bytes that it has read to the source, and then calls ``next()``.
/// Inputs are returned in the order in which the events happened; a ``SourceRunner`` creates sessions from them. A
/// relay is the source of its one session, which a ``SessionRunner`` runs: it passes urgent inputs without a copy, and
/// returns all others from ``next()``.
package protocol Source {
    /// Returns the next input; nil if the source must read more first.
    mutating func next() -> SourceInput?
}

/// An input for one of a source's sessions.
public struct SourceInput: Sendable {
    /// The kind of input.
    package enum Kind: Sendable {
        /// A session begins; with the content of its first record, and the client's address if it is known.
        case began(Record.Beginning, remote: String? = nil)
        /// Bytes arrived. If they contain a stream header that was not captured, `inferred` is the reason for assuming
        /// it: a clause that follows "inferred:". `records` are the offsets in the bytes at which further TLS records
        /// begin; nil if the bytes did not arrive in TLS.
        case received(Direction, [UInt8], inferred: String? = nil, records: [Int]? = nil)
        /// The next record of a recording, of an item or of any other kind: see ``RecordedSession``.
        ///
        /// Indirect, because a record is ten times as large as the other cases, and inputs are moved often.
        indirect case recorded(RecordLine)
        /// Any other input of the session.
        case input(SessionInput)
    }

    /// The number of the session, from 1, as assigned by the source; 0 if the input belongs to no session.
    package var session: UInt64
    /// The time of the event.
    package var at: Run.Instant
    /// The kind of input.
    package var kind: Kind

    package init(session: UInt64, at: Run.Instant, _ kind: Kind) {
        self.session = session
        self.at = at
        self.kind = kind
    }
}
