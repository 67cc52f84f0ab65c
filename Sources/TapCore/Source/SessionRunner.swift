public import TapRecord

/// Runs a session: has what it commands carried out, in order. Live sessions, the probe's, and those made of client logs,
/// packets and captures are all run by one of these.
///
/// A class, since a ``Session`` is not to be copied. After each call on ``session`` comes ``run(by:)`` or ``drain(_:)``.
package final class SessionRunner {
    /// The current user of the session's memory.
    private enum Use { case nobody, caller, performer }

    /// Every access is made within this file after a check of ``use``.
    private var storage: Session
    private var shared: SharedState
    private var use = Use.nobody

    /// Runs a session.
    package init(_ session: consuming Session) {
        shared = SharedState(session.run)
        storage = session
    }

    /// The session.
    ///
    /// Accesses must not overlap a change, and a ``CommandPerformer`` must not change the session while it reads the session's
    /// memory: both are programming errors that end the program.
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

    /// Leaves the state of an ended session, even while the performer is paused.
    private func storeEndState() { if let request = storage.takeEnding() { _ = shared.perform(request) } }

    /// Calls `body` with the bytes of the command that is next, which nothing may change meanwhile.
    @inline(__always)
    private func lendContent(_ body: (Span<UInt8>) -> Void) {
        use = .performer
        defer { use = .nobody }
        storage.withContent(body)
    }

    /// Passes bytes to the session that are not kept, while ``SourceInput/Kind/received(_:_:inferred:)`` passes a copy.
    package func receive(
        _ direction: Direction,
        _ bytes: Span<UInt8>,
        at now: Run.Instant,
        to consumer: inout some RecordConsumer
    ) {
        _ = session.receive(direction, bytes, at: now)
        run(by: &consumer)
    }

    /// Hands the session what a source has, one after the other, and has carried out what it commands, until there is neither.
    package func run(_ source: inout some Source, by performer: inout some CommandPerformer) {
        run(by: &performer)
        while !performer.isPaused, let input = source.next() {
            if take(input) == .relay, case .received(let direction, let bytes, _) = input.kind {
                performer.forward(direction, bytes.span)
            }
            run(by: &performer)
        }
    }

    /// Passes an event to the session. The session must have begun; not for stored records.
    @discardableResult
    package func take(_ input: SourceInput) -> Disposition {
        switch input.kind {
        case .received(let direction, let bytes, _): return session.receive(direction, bytes.span, at: input.at)
        case .input(let kind): session.handle(kind, at: input.at)
        case .began, .recorded: break
        }
        return .keep
    }

    /// Carries out what the session has commanded since the last input.
    ///
    /// Only ``CommandPerformer/perform(_:)`` may pass the session another input meanwhile; its commands follow. The
    /// other two get the session's memory. They end the program if they pass one.
    @inline(__always)
    package func run(by performer: inout some CommandPerformer) {
        precondition(use == .nobody, "commands are carried out while the session's memory is in use")
        if let inherited = shared.takeInheritance() { storage.handle(inherited) }
        defer { storeEndState() }
        while let kind = storage.advance() {
            switch kind {
            case .record:
                var next = storage.takeRecord()
                lendContent { if let record = next.take() { performer.receive(record, content: $0) } }
            case .send: lendContent { performer.forward(.send, $0) }
            case .recv: lendContent { performer.forward(.recv, $0) }
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

    /// Passes the records of the last event to `tell`. Other commands are discarded: for sessions that relay nothing.
    package func drain(_ tell: (consuming RedactedRecord, Span<UInt8>) -> Void) {
        withoutActuallyEscaping(tell) { tell in
            var teller = RecordForwarder(tell: tell)
            run(by: &teller)
        }
    }

    private struct RecordForwarder: CommandPerformer {
        let tell: (consuming RedactedRecord, Span<UInt8>) -> Void

        func receive(_ record: consuming RedactedRecord, content: Span<UInt8>) { tell(record, content) }
        func forward(_ direction: Direction, _ content: Span<UInt8>) {}
        func perform(_ command: consuming Command) {}
    }
}

/// Who carries out what a session commands.
package protocol CommandPerformer {
    /// Receives a record. Its texts are gone when this returns.
    mutating func receive(_ record: consuming RedactedRecord, content: Span<UInt8>)
    /// Writes bytes, which are gone when this returns, to the leg on which the direction leaves.
    mutating func forward(_ direction: Direction, _ content: Span<UInt8>)
    /// Carries out another command.
    mutating func perform(_ command: consuming Command)
    /// Whether later commands have to wait, after ``perform(_:)``. The performer calls ``SessionRunner/run(_:by:)`` again when they
    /// need not.
    var isPaused: Bool { get }
}

extension CommandPerformer {
    /// Never paused.
    package var isPaused: Bool { false }
}

/// The receiver of the records of sessions that relay nothing, in order: of their commands, only the records matter.
package protocol RecordConsumer: CommandPerformer {
    /// Takes a record with its texts.
    mutating func take(_ line: consuming RecordLine)
}

extension RecordConsumer {
    /// Does nothing.
    package func forward(_ direction: Direction, _ content: Span<UInt8>) {}
    /// Does nothing.
    package func perform(_ command: consuming Command) {}
}

/// Hands each record on with a copy of its texts.
private struct LineConsumer: RecordConsumer {
    let tell: (consuming RecordLine) -> Void

    func receive(_ record: consuming RedactedRecord, content: Span<UInt8>) {
        tell(RecordLine(record, content: content))
    }

    func take(_ line: consuming RecordLine) { tell(line) }
}

/// Runs the sessions of a source, and gives out their records.
public struct SourceRunner {
    private let run: Run
    private let options: SessionOptions
    private let tools: SessionTools
    private var sessions: [UInt64: (runner: SessionRunner, recorded: RecordedSession?)] = [:]

    /// A runner for the sessions of a run.
    public init(run: Run, options: SessionOptions) {
        self.run = run
        self.options = options
        tools = SessionTools(run: run, redaction: options.redaction)
    }

    /// Passes all pending inputs of a source to sessions, and returns the resulting records.
    package mutating func take(_ source: inout some Source, _ tell: (consuming RecordLine) -> Void) {
        while let input = source.next() { take(input, tell) }
    }

    /// Gives what the sessions of a recording hold back, since nothing more of them comes.
    package func release(_ tell: (consuming RecordLine) -> Void) {
        for number in sessions.keys.sorted() { sessions[number]?.recorded?.release(tell) }
    }

    /// Passes one input of a source to its session.
    public mutating func take(_ input: SourceInput, _ tell: (consuming RecordLine) -> Void) {
        withoutActuallyEscaping(tell) { tell in
            var consumer = LineConsumer(tell: tell)
            take(input, to: &consumer)
        }
    }

    /// What runs a session that has begun and not ended.
    package func runner(of session: UInt64) -> SessionRunner? { sessions[session]?.runner }

    /// Passes one input of a source to its session, and each record to `consumer` when it is made.
    package mutating func take(_ input: SourceInput, to consumer: inout some RecordConsumer) {
        var inferred: String?
        let runner: SessionRunner
        switch input.kind {
        case .recorded(let line): return take(line, input, to: &consumer)
        case .began(let words, let remote):
            runner = begin(words, remote, input)
            sessions[input.session] = (runner, options.isRecorded ? RecordedSession(runner, run) : nil)
        case .received, .input:
            guard let known = sessions[input.session]?.runner else { return }
            runner = known
            runner.take(input)
            if case .received(_, _, let why) = input.kind { inferred = why }
            if case .input(.closed) = input.kind { sessions[input.session] = nil }
        }
        guard let inferred else { return runner.run(by: &consumer) }
        runner.drain { record, content in
            let line = RecordLine(record, content: content)
            consumer.take(line.record.kind == .streamOpen ? line.inferred(inferred) : line)
        }
    }

    private mutating func take(_ line: RecordLine, _ input: SourceInput, to consumer: inout some RecordConsumer) {
        guard let recorded = sessions[input.session]?.recorded else {
            return consumer.take(line.numbered(run.nextSequence()))
        }
        if recorded.take(line, at: input.at, { consumer.take($0) }) == .ended { sessions[input.session] = nil }
    }

    private func begin(_ beginning: Record.Beginning, _ remote: String?, _ input: SourceInput) -> SessionRunner {
        SessionRunner(
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

/// Where sessions come from: it yields what happens to them, with the times.
///
/// Sans-IO: whoever owns the file or the socket hands the source what was read, and asks then. Bytes, a recording's records
/// and the ends come out in the order in which they happened; a ``SourceRunner`` has sessions made of them. A relay is the source
/// of its one session, which a ``SessionRunner`` runs: urgent input is passed without a copy, the rest is read from
/// here.
package protocol Source {
    /// Returns the next event; nil until more has been read.
    mutating func next() -> SourceInput?
}

/// Something that happened to one of a source's sessions.
public struct SourceInput: Sendable {
    /// The kind of input.
    package enum Kind: Sendable {
        /// A session begins: the contents of its first record, and the client's address if it is known.
        case began(Record.Beginning, remote: String? = nil)
        /// Bytes came. `inferred` says why a stream header is among them that was not read: a clause that follows
        /// "inferred:".
        case received(Direction, [UInt8], inferred: String? = nil)
        /// A record of a recording comes next, of an item or of anything else: see ``RecordedSession``.
        ///
        /// Indirect: a record is ten times as large as all else, and inputs are moved often.
        indirect case recorded(RecordLine)
        /// What else happened to the session.
        case input(SessionInput)
    }

    /// The number of the session, from 1, as the source counts; 0 if the input belongs to none.
    package var session: UInt64
    /// When it happened.
    package var at: Run.Instant
    /// The kind of input.
    package var kind: Kind

    /// Puts the parts together.
    package init(session: UInt64, at: Run.Instant, _ kind: Kind) {
        self.session = session
        self.at = at
        self.kind = kind
    }
}
