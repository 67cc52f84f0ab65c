public import TapRecord

/// A session that relays nothing: of what it commands only the records count.
///
/// A class, since a ``Session`` is not to be copied. After each call on ``session`` comes ``drain(_:)``.
public final class SessionRunner {
    /// The session.
    public var session: Session

    /// Runs a session.
    public init(_ session: consuming Session) { self.session = session }

    /// Hands on the records that what happened last has brought.
    public func drain(_ tell: (RedactedRecord, Span<UInt8>) -> Void) {
        while let command = session.next() {
            guard case .record(let record) = command else { continue }
            session.withContent { tell(record, $0) }
        }
    }
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

    /// Has sessions made of all that a source has at the moment, and gives out the records that come of it.
    public mutating func take(_ source: inout some Source, _ tell: (RecordLine) -> Void) {
        while let input = source.next() { take(input, tell) }
    }

    /// Gives what the sessions of a recording hold back, since nothing more of them comes.
    public func release(_ tell: (RecordLine) -> Void) {
        for number in sessions.keys.sorted() { sessions[number]?.recorded?.release(tell) }
    }

    private mutating func take(_ input: SourceInput, _ tell: (RecordLine) -> Void) {
        if case .began(let words, let remote) = input.kind {
            let runner = begin(words, remote, input)
            sessions[input.session] = (runner, options.isRecorded ? RecordedSession(runner, run) : nil)
        }
        if case .recorded(let line) = input.kind { return take(line, input, tell) }
        guard let runner = sessions[input.session]?.runner else { return }
        var inferred: String?
        switch input.kind {
        case .began, .recorded: break
        case .received(let direction, let bytes, let why):
            inferred = why
            _ = runner.session.receive(direction, bytes.span, at: input.at)
        case .input(let kind):
            runner.session.handle(kind, at: input.at)
            if case .closed = kind { sessions[input.session] = nil }
        }
        runner.drain { record, content in
            let line = RecordLine(record, content: content)
            if let inferred, line.record.kind == .streamOpen { tell(line.inferred(inferred)) } else { tell(line) }
        }
    }

    private mutating func take(_ line: RecordLine, _ input: SourceInput, _ tell: (RecordLine) -> Void) {
        guard let recorded = sessions[input.session]?.recorded else { return tell(line.numbered(run.nextSequence())) }
        if recorded.take(line, at: input.at, tell) == .ended { sessions[input.session] = nil }
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
