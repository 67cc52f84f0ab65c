internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Reads the XMPP sessions in a capture file or on an interface, as if xmpptap had relayed them.
///
/// The lines of a text log can be formed by several threads: see ``PacketLines``.
final class PacketPart {
    /// A header like that of a JSON log, which captures do not have.
    let header: RecordHeader
    private let input: PacketInput
    private var decoder: PacketDecoder
    private var sessions: PacketSessions
    private let keys: KeyLog
    /// The interface; nil for a file.
    private let live: LiveCapture?
    private let options: SessionOptions
    /// Number of reads from an interface since the last ``checkState(of:)`` that checked its state.
    private var readsSinceCheck = 0
    private var isRecording = true
    /// Forms the lines of all records; nil if ``next()`` returns them.
    private var lines: PacketLines?
    private var records = RecordBatch()
    private var isFaultReported = false
    /// Whether the last records were made: no more follow those in the batch.
    private var isDrained = false

    /// Number of packets of a busy interface after which its state is checked.
    private static let readsBetweenChecks = 1_024

    /// Opens a capture file and reads up to its first packet, whose time becomes that of the header.
    init(
        _ format: PacketFormat,
        _ bytes: InputBytes,
        _ path: String,
        _ decoding: Decoding,
        _ keys: KeyLog
    ) throws(PacketFault) {
        let reader: any PacketReader = format == .pcapng ? PcapngFile(bytes) : try PcapFile(bytes)
        input = PacketInput(reader, bytes)
        decoder = PacketDecoder()
        self.keys = keys
        live = nil
        options = decoding.applied(to: PacketSource.options)
        sessions = PacketSessions(PacketSource(keys: keys), Run(), options)
        header = Self.header(path, input.peek() ?? Timestamp(nanoseconds: 0), decoding.redaction)
    }

    /// Creates a reader of an interface.
    init(_ live: LiveCapture, _ decoding: Decoding) {
        let began = LiveCapture.now
        decoder = PacketDecoder(began: began)
        keys = live.keys?.log ?? KeyLog()
        input = PacketInput(live, nil)
        self.live = live
        options = decoding.applied(to: PacketSource.options)
        sessions = PacketSessions(
            PacketSource(keys: keys, waits: live.keys != nil, ports: live.ports),
            Run(),
            options
        )
        header = Self.header(live.interface, began, decoding.redaction)
    }

    private static func header(_ name: String, _ time: Timestamp, _ redaction: RedactionPolicy) -> RecordHeader {
        RecordHeader(
            tool: "packets",
            time: time,
            level: "verbose",
            isComplete: false,
            redaction: redaction,
            run: "packets-" + name
        )
    }

    /// Whether this is an interface from which more packets may come.
    var isLive: Bool { live != nil && !input.hasEnded }

    /// The file descriptor to poll for more packets; -1 if there is none.
    var descriptor: Int32 { isLive ? live?.descriptor ?? -1 : -1 }

    /// Stops the capture from an interface. Packets captured until now are still read.
    func stop() { live?.stop() }

    /// Forms the lines of all records on several threads: ``nextLines()`` then returns the lines, and ``next()``
    /// returns nil. The key log must not be used elsewhere meanwhile.
    ///
    /// - Parameter workers: Number of worker threads; nil uses one for each processor, at most 4.
    /// - Returns: False if this is an interface, packets were already read, redaction uses pseudonyms, or several
    ///   threads cannot be used.
    func formLines(workers: Int? = nil, _ makers: @escaping LineMaker.Factory) -> Bool {
        // Pseudonyms are numbered in the order in which records use them, so the records must be made by one thread.
        guard live == nil, decoder.counts.packets == 0, !input.hasEnded, options.redaction != .metadata else {
            return false
        }
        lines = PacketLines(input, keys, options, workers: workers ?? PacketLines.usualWorkers, makers: makers)
        return lines != nil
    }

    /// Returns the next lines, in the order of their records; nil at the end.
    func nextLines() -> MergedLines? { lines?.nextLines() }

    /// Returns the next record; nil at the end of the file, or if the rest cannot be read: then ``takeFault()`` returns
    /// the reason. If ``isLive``, nil means that nothing more is available yet.
    func next() -> RecordLine? {
        guard lines == nil else { return nil }
        while true {
            if let record = records.next() { return record }
            records.clear()
            guard !isDrained else { return nil }
            if input.hasEnded { finish() } else { readOn() }
            if input.isIdle, !input.hasEnded, records.count == 0 { return nil }
        }
    }

    /// Returns why the rest could not be read; nil if reading has not failed, or if the reason was returned before.
    func takeFault() -> PacketFault? {
        guard !isFaultReported else { return nil }
        isFaultReported = true
        return input.fault
    }

    private func readOn() {
        input.readOn { entry, bytes in
            switch entry {
            case .keys(let lines): sessions.add(keys: lines)
            case .packet(let packet): process(packet, bytes)
            }
        }
        if let live { checkState(of: live) }
        guard let live, input.isIdle, input.fault != nil || live.isDrained else { return }
        live.finish()
        input.finish()
    }

    private func process(_ packet: CapturedPacket, _ bytes: Span<UInt8>) {
        guard let (segment, payload) = decoder.decode(packet, bytes) else { return }
        let (at, number) = (decoder.now, decoder.counts.packets)
        switch payload {
        case .range(let range): sessions.process(segment, bytes.extracting(range), at: at, as: number, to: &records)
        case .joined(let bytes): sessions.process(segment, bytes.span, at: at, as: number, to: &records)
        }
    }

    private func finish() {
        sessions.finish(to: &records)
        sessions.summarise(decoder.counts, at: decoder.now, to: &records)
        isDrained = true
    }

    private func report(_ code: String, _ level: Level, _ message: Prose, details: Attributes? = nil) {
        sessions.process(CaptureNote.makeInput(code, level, message, details: details, at: decoder.now), to: &records)
    }

    /// Reads new secrets, reports packets that the kernel has dropped, and writes captured packets to the file. It does
    /// so if no packet is available, and after every ``readsBetweenChecks`` packets otherwise.
    private func checkState(of live: LiveCapture) {
        readsSinceCheck += 1
        guard input.isIdle || readsSinceCheck >= Self.readsBetweenChecks else { return }
        readsSinceCheck = 0
        if live.readKeys() { sessions.retrySecrets(to: &records) }
        let dropped = live.takeDropped()
        if dropped > 0 {
            report(
                "packets-dropped",
                .warn,
                "\(dropped) packet\(dropped == 1 ? "" : "s") dropped by the kernel: they came faster than they were read",
                details: ["dropped": .integer(Int64(dropped))]
            )
        }
        live.flush()
        guard isRecording, let fault = live.recordingFault else { return }
        isRecording = false
        report(
            "packets-not-written",
            .error,
            "\(Prose("\(fault)").clause); the packets before are in the file"
        )
    }
}

/// Reads the packets of a file or an interface. Used by one thread at a time.
final class PacketInput {
    private let reader: any PacketReader
    private let bytes: InputBytes?
    /// Entries read by ``peek()`` that were not passed on yet.
    private var ahead: [(entry: PacketEntry, bytes: [UInt8])] = []
    /// Whether nothing is left to read, apart from ``ahead``.
    private var isSpent = false
    /// Whether the last attempt to read found no entry: none is available yet, or the input has ended.
    private(set) var isIdle = false
    var hasEnded: Bool { isSpent && ahead.isEmpty }
    /// Why the rest could not be read.
    private(set) var fault: PacketFault?

    /// - Parameter bytes: The bytes of a file; nil for an interface, which has no end.
    init(_ reader: any PacketReader, _ bytes: InputBytes?) {
        self.reader = reader
        self.bytes = bytes
    }

    /// Reads ahead up to the first packet of a file, and returns the time of its capture; nil if the file has no
    /// packet. ``readOn(_:)`` still passes this packet on.
    func peek() -> Timestamp? {
        var time: Timestamp?
        while time == nil, !isSpent {
            read { entry, bytes in
                if case .packet(let packet) = entry { time = packet.time }
                var copy: [UInt8] = []
                copy.append(bytes)
                ahead.append((entry, copy))
            }
        }
        return time
    }

    /// Passes the next packet, or the next lines of a key log, to `take`.
    func readOn(_ take: (PacketEntry, Span<UInt8>) -> Void) {
        guard ahead.isEmpty else {
            let (entry, bytes) = ahead.removeFirst()
            return take(entry, bytes.span)
        }
        read(take)
    }

    private func read(_ take: (PacketEntry, Span<UInt8>) -> Void) {
        do throws(PacketFault) {
            let isThere = try reader.next(take)
            isIdle = !isThere
            guard !isThere, let bytes else { return }
            fault = bytes.takeTruncation().map { .compressed($0) }
        } catch {
            fault = error
            isIdle = true
            // The input of an interface is ended by ``finish()``, after the last reports about the interface.
            if bytes == nil { return }
        }
        isSpent = true
    }

    /// Ends the input: no more packets are read.
    func finish() { isSpent = true }
}
