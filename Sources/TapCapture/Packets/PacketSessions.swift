internal import TapCore
internal import TapSecurity
internal import XMPPCore

/// Makes the records of the sessions in TCP segments: reassembles TCP, decrypts TLS and runs the sessions. Used by one
/// thread at a time.
struct PacketSessions {
    private var source: PacketSource
    private var runner: SourceRunner

    init(_ source: PacketSource, _ run: Run, _ options: SessionOptions) {
        self.source = source
        runner = SourceRunner(run: run, options: options)
    }

    /// Processes a segment; see ``PacketSource/process(_:_:at:as:_:)``.
    mutating func process(
        _ segment: TCPSegment,
        _ bytes: Span<UInt8>,
        at time: Run.Instant,
        as number: TCPReassembler.Number,
        to consumer: inout some RecordConsumer
    ) {
        source.process(segment, bytes, at: time, as: number) { connection, direction, bytes in
            if connection.runner == nil { connection.runner = connection.session.flatMap { runner.runner(of: $0) } }
            connection.runner?.receive(direction, bytes, records: connection.records, at: time, to: &consumer)
        }
        run(to: &consumer)
    }

    /// Adds lines of a key log that the capture holds.
    mutating func add(keys lines: [UInt8]) { source.add(keys: lines) }

    /// Tries again to decrypt connections that wait for secrets, after the key log has grown.
    mutating func retrySecrets(to consumer: inout some RecordConsumer) {
        source.retrySecrets()
        run(to: &consumer)
    }

    /// Processes a note about the capture.
    mutating func process(_ note: SourceInput, to consumer: inout some RecordConsumer) {
        runner.process(note, to: &consumer)
    }

    /// Passes the inputs that the source has found to the sessions.
    mutating func run(to consumer: inout some RecordConsumer) {
        while let input = source.next() { runner.process(input, to: &consumer) }
    }

    /// Ends all connections, because there are no more packets.
    mutating func finish(to consumer: inout some RecordConsumer) {
        source.finish()
        run(to: &consumer)
    }

    /// Handles the next event of connections that end; ``run(to:)`` passes on the results. See
    /// ``PacketSource/finishNext()``.
    mutating func finishNext() -> TCPReassembler.Number? { source.finishNext() }

    /// Adds a note about the packets that are not XMPP, if there are any.
    mutating func summarise(
        _ counts: PacketDecoder.Counts,
        at time: Run.Instant,
        to consumer: inout some RecordConsumer
    ) {
        if let summary = CaptureNote.summary(counts, source.tally, at: time) { process(summary, to: &consumer) }
    }
}
