internal import Synchronization
internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Finds the XMPP sessions in captured packets.
///
/// A connection on any port is XMPP if its data show it: by a stream header, by the handshake of a WebSocket, by TLS on a port of XMPP or for the ALPN
/// protocol `xmpp-client`, or by stanzas if the connection began before the capture. Other connections are only
/// counted. Bytes that were not captured are reported at their position, and the stream continues with the next stanza.
struct PacketSource: Source {
    private var reassembler: TCPReassembler
    private var connections: [TCPReassembler.Number: PacketConnection] = [:]
    private var now = Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)
    private var found = Outputs<SourceInput>()
    /// Secrets of TLS, from a key log or the capture itself.
    private let keys: KeyLog
    /// Whether the key log grows during the capture.
    private let waits: Bool
    /// Connections whose TLS waits for secrets.
    private var waiting: Set<TCPReassembler.Number> = []
    /// Ports on which TLS is assumed to carry XMPP.
    private let ports: Set<UInt16>
    /// The numbers of sessions and of other connections so far.
    let tally: SessionTally
    private var isFinishing = false

    /// Maximum number of connections that wait for secrets. If one more waits, the oldest continues without secrets.
    static let maximumWaiting = 256

    /// Creates a source without packets.
    ///
    /// - Parameters:
    ///   - keys: Secrets of TLS.
    ///   - waits: Whether secrets may arrive after the packets. If so, call ``retrySecrets()`` when they have.
    ///   - ports: Ports of servers, in addition to the usual ports of XMPP.
    ///   - tally: Numbers the sessions, and counts the other connections.
    init(keys: KeyLog, waits: Bool = false, ports: [UInt16] = [], tally: SessionTally = SessionTally()) {
        self.keys = keys
        self.waits = waits
        self.ports = TCPReassembler.knownPorts.union(ports)
        self.tally = tally
        reassembler = TCPReassembler(serverPorts: self.ports)
    }

    /// Adds lines of a key log that the capture holds. They apply to the packets that follow.
    func add(keys lines: [UInt8]) {
        keys.append(lines.span)
        keys.finish()
    }

    /// The options for sessions in packets. The limits for authenticated peers apply from the beginning, because the
    /// server has already let the data pass.
    static var options: SessionOptions {
        var options = SessionOptions(level: .verbose, unauthenticatedLimits: .authenticated)
        options.isObserved = true
        return options
    }

    mutating func next() -> SourceInput? { found.next() }

    /// Processes a segment; ``next()`` returns the results.
    ///
    /// - Parameter number: The number of the connection, if the segment begins one. Later connections must have
    ///   larger numbers.
    mutating func process(
        _ segment: TCPSegment,
        _ bytes: Span<UInt8>,
        at time: Run.Instant,
        as number: TCPReassembler.Number
    ) {
        now = time
        reassembler.process(segment, bytes, at: time.time, as: number)
        while readConnection() != nil {}
    }

    /// Processes a segment. Bytes that only have to be passed to a session, as they are or decrypted, are passed to
    /// `receive` without a copy. All earlier results must be consumed by ``next()`` before the call.
    mutating func process(
        _ segment: TCPSegment,
        _ bytes: Span<UInt8>,
        at time: Run.Instant,
        as number: TCPReassembler.Number,
        _ receive: (PacketConnection, Direction, Span<UInt8>) -> Void
    ) {
        guard let (next, direction, connection) = reassembler.processNext(segment, bytes.count) else {
            return process(segment, bytes, at: time, as: number)
        }
        now = time
        if let direction = connection.passesOn(direction, bytes, at: time) {
            return receive(connection, direction, bytes)
        }
        if connection.decrypts(direction, bytes, at: time, &found, receive) { return updateTables(next, connection) }
        var copy: [UInt8] = []
        copy.append(bytes)
        connection.process(.data(direction, copy), at: time, &found)
        updateTables(next, connection)
    }

    /// Ends all connections, because there are no more packets.
    mutating func finish() {
        while finishNext() != nil {}
        resume(givingUp: true)
    }

    /// Handles the next event of the connections that end because there are no more packets, in the order in which the
    /// connections began. Call it until it returns nil, and take the results by ``next()`` each time.
    ///
    /// - Returns: The number of the event's connection; nil if no event is left.
    mutating func finishNext() -> TCPReassembler.Number? {
        if !isFinishing { reassembler.finish() }
        isFinishing = true
        return readConnection(atLast: true)
    }

    /// Tries again to decrypt the connections that wait for secrets, after the key log has grown.
    mutating func retrySecrets() { resume(givingUp: false) }

    private mutating func resume(givingUp: Bool) {
        for number in waiting.sorted() { resume(number, givingUp: givingUp) }
    }

    private mutating func resume(_ number: TCPReassembler.Number, givingUp: Bool) {
        guard let connection = connections[number] else { return }
        connection.resume(givingUp: givingUp, &found)
        updateTables(number, connection)
    }

    /// Handles the next event of a connection; returns the connection's number, or nil if no event is left.
    ///
    /// - Parameter atLast: Whether the event has the time of the connection's last event instead of the current time.
    private mutating func readConnection(atLast: Bool = false) -> TCPReassembler.Number? {
        guard let (number, event) = reassembler.next() else { return nil }
        if case .opened(let client, let server, let isWhole) = event {
            let connection = PacketConnection(
                client: client,
                server: server,
                isWhole: isWhole,
                hasKnownPort: ports.contains(server.port),
                tls: PacketTLS(keys, waits: waits, isWhole: isWhole),
                tally: tally
            )
            connections[number] = connection
            reassembler.attach(connection, to: number)
        } else if let connection = connections[number] {
            connection.process(event, at: atLast ? connection.lastSeen ?? now : now, &found)
            updateTables(number, connection)
        }
        return number
    }

    /// Removes a connection that is over or is not XMPP, and updates the connections that wait for secrets.
    private mutating func updateTables(_ number: TCPReassembler.Number, _ connection: PacketConnection) {
        switch connection.status {
        case .other:
            tally.countOther()
            connections[number] = nil
            reassembler.forget(number)
        case .over: connections[number] = nil
        case .open: break
        }
        guard waits else { return }
        guard connection.status == .open, connection.isWaitingForSecret else { return _ = waiting.remove(number) }
        guard waiting.insert(number).inserted, waiting.count > Self.maximumWaiting, let oldest = waiting.min() else {
            return
        }
        resume(oldest, givingUp: true)
    }
}

/// Numbers the sessions that are found in packets, and counts the connections that are not XMPP.
final class SessionTally: Sendable {
    private final class Counts: Sendable {
        let sessions = Atomic<UInt64>(0)
        let others = Atomic<UInt64>(0)
    }

    private let counts: Counts
    private let turn: (@Sendable () -> Void)?

    init() {
        counts = Counts()
        turn = nil
    }

    /// Creates a tally for one of several threads, which shares the counts of `whole`.
    ///
    /// - Parameter turn: Waits until the other threads have done everything that precedes the current work of this
    ///   thread.
    init(partOf whole: SessionTally, inTurn turn: @escaping @Sendable () -> Void) {
        counts = whole.counts
        self.turn = turn
    }

    /// Returns the number of a new session, from 1.
    func nextSession() -> UInt64 {
        turn?()
        return counts.sessions.add(1, ordering: .relaxed).newValue
    }

    func countOther() { counts.others.add(1, ordering: .relaxed) }

    /// Number of sessions so far.
    var sessions: UInt64 { counts.sessions.load(ordering: .relaxed) }
    /// Number of connections that were not XMPP.
    var others: UInt64 { counts.others.load(ordering: .relaxed) }
}

/// Creates records about the capture itself, which belong to no session.
enum CaptureNote {
    static func makeInput(
        _ code: String,
        _ level: Level,
        _ message: Prose,
        details: Attributes? = nil,
        at now: Run.Instant
    ) -> SourceInput {
        var record = Record(
            sequence: 0,
            time: now.time,
            monotonic: now.monotonic,
            kind: .note,
            level: level,
            part: .net
        )
        record.code = code
        record.message = message
        record.details = details
        let nothing: [UInt8] = []
        let line = RecordLine(Redactor(policy: .none, registry: SecretRegistry()).redact(record), content: nothing.span)
        return SourceInput(session: 0, at: now, .recorded(line))
    }

    /// Returns a summary of the packets that are not XMPP; nil if there is nothing to report.
    static func summary(_ counts: PacketDecoder.Counts, _ tally: SessionTally, at now: Run.Instant) -> SourceInput? {
        let (packets, cut, others) = (counts.packets, counts.cut, tally.others)
        var parts: [String] = []
        if tally.sessions == 0 { parts.append("no XMPP found") }
        if others > 0 { parts.append("\(others) TCP connection\(others == 1 ? "" : "s") without XMPP") }
        if counts.damaged > 0 { parts.append("\(counts.damaged) damaged packet\(counts.damaged == 1 ? "" : "s")") }
        for (link, packets) in counts.unknownLinks.sorted(by: { $0.key < $1.key }) {
            parts.append("\(packets) packet\(packets == 1 ? "" : "s") of link type \(link), which is not supported")
        }
        for (name, packets) in counts.unreadableTunnels.sorted(by: { $0.key < $1.key }) {
            parts.append("\(packets) packet\(packets == 1 ? "" : "s") in \(name) tunnels, which cannot be read")
        }
        if cut > 0 {
            parts.append("\(cut) packet\(cut == 1 ? "" : "s") cut short; capture whole packets, as tcpdump -s 0 does")
        }
        guard !parts.isEmpty else { return nil }
        let isLoss = tally.sessions == 0 || cut > 0 || !counts.unknownLinks.isEmpty
        return makeInput(
            "packets-read",
            isLoss ? .warn : .verbose,
            Prose("\(packets) packet\(packets == 1 ? "" : "s"): \(parts.joined(separator: ", "))"),
            at: now
        )
    }
}

/// A TCP connection that may be XMPP.
///
/// A class, so that it is modified in place instead of copied.
final class PacketConnection {
    /// The state of the connection: it is or may be XMPP (`open`), is not XMPP (`other`), or has ended (`over`).
    enum Status { case open, other, over }

    private enum State {
        /// It is not known yet whether the connection is XMPP.
        case undecided
        /// The connection is an XMPP session with this number.
        case session(UInt64)
        case other
        case over
    }

    private enum Occurrence {
        case stream(PacketTLS.Output)
        case ended(Direction)
        /// The connection was closed; if a direction is named, by a reset from its sender.
        case closed(Direction?)
        /// Nothing more is known of the connection.
        case lost
    }

    /// How the bytes of a direction are read.
    private enum Mode {
        case reads
        /// Bytes are missing, so bytes are skipped until an element begins. `skipped` is their number.
        case seeks(skipped: UInt64)
    }

    private var client: PacketEndpoint
    private var server: PacketEndpoint
    private let isWhole: Bool
    /// Whether client and server were swapped, because their ports had suggested the wrong roles.
    private var isTurned = false
    /// Whether the first data may still show that client and server have to be swapped.
    private var mayTurn: Bool
    private let hasKnownPort: Bool
    private var tls: PacketTLS
    private let tally: SessionTally
    /// Events that are held while TLS waits for its secrets.
    private var held: [(event: TCPReassembler.Event, at: Run.Instant)] = []
    private var heldBytes = 0
    /// The time of the event at which TLS began to wait for secrets.
    private var waitsSince = Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)
    private var state = State.undecided
    private var send = Mode.reads
    private var recv = Mode.reads
    /// Events received before it was known whether the connection is XMPP.
    private var waiting: [(occurrence: Occurrence, at: Run.Instant)] = []
    private var waitingBytes = 0
    /// The handshake of a WebSocket, until it is complete; nil for other connections.
    private var upgrade: PacketUpgrade?
    /// Whether the session is a WebSocket.
    private var isFramed = false
    /// Decompresses the messages of a WebSocket; nil if they are not compressed.
    private var inflation: PacketInflation?
    /// The time of the last event.
    private(set) var lastSeen: Run.Instant?
    /// Whether the bytes of each direction can be passed to the session without further processing.
    private var isOpen = (send: false, recv: false)
    /// The offsets at which further TLS records begin in bytes for the session: each TLS record is decrypted separately,
    /// so there are none. Nil without TLS.
    private(set) var records: [Int]?
    /// Runs the session, for the caller that passes bytes to it; nil until then.
    var runner: SessionRunner?
    /// The number of the session; nil if the connection is not known to be one.
    var session: UInt64? { if case .session(let number) = state { number } else { nil } }

    /// Maximum bytes held while TLS waits for its secrets: four records of maximum length, or hundreds of usual ones.
    private static let maximumHeld = 64 << 10
    /// Maximum bytes that are searched for signs of XMPP.
    private static let searchLimit = 4 << 10
    /// Maximum number of events before the decision. Events may have no bytes: if only headers were captured, none has
    /// any.
    private static let maximumWaiting = 1024
    private static let streams = Array("http://etherx.jabber.org/streams".utf8)
    /// The protocol that a client requests by ALPN (XEP-0368 §4).
    private static let protocolName = Array("xmpp-client".utf8)

    init(
        client: PacketEndpoint,
        server: PacketEndpoint,
        isWhole: Bool,
        hasKnownPort: Bool,
        tls: PacketTLS,
        tally: SessionTally
    ) {
        self.client = client
        self.server = server
        self.isWhole = isWhole
        mayTurn = !isWhole && !hasKnownPort
        self.hasKnownPort = hasKnownPort
        self.tls = tls
        self.tally = tally
    }

    /// Returns the direction of bytes that only have to be passed to the session; nil if they need further processing.
    ///
    /// - Parameter direction: The direction according to the reassembler, before client and server may be swapped.
    func passesOn(_ direction: Direction, _ bytes: Span<UInt8>, at now: Run.Instant) -> Direction? {
        let isSend = (direction == .send) != isTurned
        guard isSend ? isOpen.send : isOpen.recv, !bytes.isEmpty else { return nil }
        // TLS may begin here if the server's `<proceed/>` was not captured.
        guard !isSend || bytes[0] != 0x16 || tls.isOver else { return nil }
        lastSeen = now
        return isSend ? .send : .recv
    }

    /// Decrypts bytes of a session and passes the plaintext to `receive`. Other results, which follow the plaintext,
    /// are added to `found`.
    ///
    /// - Parameter direction: The direction according to the reassembler, before client and server may be swapped.
    /// - Returns: False if nothing was done, because the session is not decrypted or the bytes need further
    ///   processing.
    func decrypts(
        _ direction: Direction,
        _ bytes: Span<UInt8>,
        at now: Run.Instant,
        _ found: inout Outputs<SourceInput>,
        _ receive: (PacketConnection, Direction, Span<UInt8>) -> Void
    ) -> Bool {
        guard case .session = state, case .reads = send, case .reads = recv, upgrade == nil, inflation == nil,
            !tls.isWaitingForSecret
        else { return false }
        let direction = isTurned ? direction.opposite : direction
        let isDecrypted = tls.decrypt(direction, bytes) { direction, content in
            lastSeen = now
            receive(self, direction, content)
        }
        guard isDecrypted else { return false }
        readTLS(now, &found)
        updatePassthrough()
        return true
    }

    /// Updates which directions pass bytes to the session without further processing.
    private func updatePassthrough() {
        guard case .session = state, upgrade == nil, inflation == nil else { return isOpen = (false, false) }
        func reads(_ direction: Direction, _ mode: Mode) -> Bool {
            if case .reads = mode { tls.passesOn(direction) } else { false }
        }
        isOpen = (reads(.send, send), reads(.recv, recv))
    }

    /// Whether TLS waits for secrets. Later events are held meanwhile.
    var isWaitingForSecret: Bool { tls.isWaitingForSecret }

    var status: Status {
        switch state {
        case .undecided, .session: .open
        case .other: .other
        case .over: .over
        }
    }

    /// Processes an event, and adds the resulting inputs of a session to `found`.
    func process(
        _ event: TCPReassembler.Event,
        at now: Run.Instant,
        _ found: inout Outputs<SourceInput>
    ) {
        defer { updatePassthrough() }
        let event = turned(event)
        if tls.isWaitingForSecret { hold(event, now, &found) } else { read(event, at: now, &found) }
    }

    private func hold(_ event: TCPReassembler.Event, _ now: Run.Instant, _ found: inout Outputs<SourceInput>) {
        if case .data(_, let bytes) = event { heldBytes += bytes.count }
        held.append((event, now))
        if heldBytes > Self.maximumHeld { resume(givingUp: true, &found) }
    }

    /// Returns the event, with its direction reversed if client and server were swapped. The first data decide whether
    /// to swap them.
    private func turned(_ event: TCPReassembler.Event) -> TCPReassembler.Event {
        if mayTurn, case .data(let direction, let bytes) = event {
            mayTurn = false
            if let isOfClient = StreamPlace.isOfClient(bytes.span), isOfClient != (direction == .send) {
                isTurned = true
                swap(&client, &server)
            }
        }
        guard isTurned else { return event }
        return switch event {
        case .opened, .lost, .closed(nil): event
        case .data(let direction, let bytes): .data(direction.opposite, bytes)
        case .hole(let direction, let count): .hole(direction.opposite, count)
        case .ended(let direction): .ended(direction.opposite)
        case .closed(let direction?): .closed(byReset: direction.opposite)
        }
    }

    /// Continues with the held events: after the key log has grown, or without secrets if `givingUp`.
    func resume(givingUp: Bool, _ found: inout Outputs<SourceInput>) {
        defer { updatePassthrough() }
        let events = held
        held = []
        heldBytes = 0
        if !givingUp { tls.retry() }
        giveUpSecrets(givingUp, &found)
        for (event, at) in events {
            if tls.isWaitingForSecret { hold(event, at, &found) } else { read(event, at: at, &found) }
            giveUpSecrets(givingUp, &found)
        }
    }

    /// Reads the available output of TLS; if `givingUp`, without the secrets for which TLS waits.
    private func giveUpSecrets(_ givingUp: Bool, _ found: inout Outputs<SourceInput>) {
        if givingUp { tls.giveUpSecrets() }
        readTLS(waitsSince, &found)
    }

    private func readTLS(_ now: Run.Instant, _ found: inout Outputs<SourceInput>) {
        while let output = tls.next() { process(.stream(output), now, &found) }
        if tls.isWaitingForSecret { waitsSince = now }
    }

    private func read(
        _ event: TCPReassembler.Event,
        at now: Run.Instant,
        _ found: inout Outputs<SourceInput>
    ) {
        switch event {
        case .opened: return
        case .data(let direction, let bytes): tls.receive(direction, bytes)
        case .hole(let direction, let bytes): tls.hole(direction, bytes)
        case .ended(let direction): tls.finish(direction)
        case .closed, .lost:
            for direction in [Direction.send, .recv] { tls.finish(direction) }
        }
        readTLS(now, &found)
        switch event {
        case .opened, .data, .hole: break
        case .ended(let direction): process(.ended(direction), now, &found)
        case .closed(let direction): process(.closed(direction), now, &found)
        case .lost: process(.lost, now, &found)
        }
    }

    private func process(
        _ occurrence: Occurrence,
        _ now: Run.Instant,
        _ found: inout Outputs<SourceInput>
    ) {
        switch state {
        case .session(let number): return pass(occurrence, now, number, &found)
        case .other, .over: return
        case .undecided: break
        }
        waiting.append((occurrence, now))
        var isFinal = waiting.count >= Self.maximumWaiting
        switch occurrence {
        case .stream(.bytes(_, let bytes)):
            waitingBytes += bytes.count
            isFinal = isFinal || waitingBytes >= (mayBeUpgrade ? PacketUpgrade.maximumHead : Self.searchLimit)
        // Events without bytes do not change the decision.
        case .stream where !isFinal: return
        case .stream: break
        case .ended, .closed, .lost: isFinal = true
        }
        switch decide(isFinal) {
        case nil: return
        case false?: state = .other
        case true?: begin(&found)
        }
        waiting = []
    }

    // MARK: Classification

    /// Returns the bytes of a direction that were captured before the decision.
    private func beginning(_ direction: Direction) -> [UInt8] {
        var bytes: [UInt8] = []
        for entry in waiting {
            if case .stream(.bytes(direction, let part)) = entry.occurrence { bytes += part }
        }
        return bytes
    }

    /// Whether the bytes so far may be the beginning of a request for a WebSocket.
    private var mayBeUpgrade: Bool { isWhole && PacketUpgrade.isRequest(beginning(.send)) != false }

    /// Returns whether bytes begin with a TLS record: one of a handshake, or of any type if the beginning of the
    /// connection was not captured.
    private static func isTLS(_ bytes: [UInt8], isWhole: Bool) -> Bool {
        guard let first = bytes.first, first == 0x16 || !isWhole && 0x14...0x17 ~= first else { return false }
        return bytes.count < 3 || bytes[1] == 3
    }

    /// Returns whether the connection is XMPP; nil if more data are needed.
    private func decide(_ isFinal: Bool) -> Bool? {
        var isText = false
        switch isWhole ? PacketUpgrade.isRequest(beginning(.send)) : false {
        case true?: return true
        case nil: return isFinal ? false : nil
        case false?: break
        }
        for direction in [Direction.send, .recv] {
            let bytes = beginning(direction)
            guard let first = bytes.first(where: { $0 != 0x20 && $0 != 0x0A && $0 != 0x0D && $0 != 0x09 }) else {
                continue
            }
            if Self.isTLS(bytes, isWhole: isWhole) {
                if hasKnownPort || bytes.span.contains(Self.protocolName.span) { return true }
                continue
            }
            guard first == 0x3C || !isWhole else { continue }
            isText = true
            if bytes.span.contains(Self.streams.span) { return true }
            if !isWhole, StreamPlace.first(in: bytes.span) != nil { return true }
        }
        if isText, !isFinal { return nil }
        return isFinal || !waiting.isEmpty && waitingBytes > 0 && !isText ? false : nil
    }

    // MARK: A session

    private func begin(_ found: inout Outputs<SourceInput>) {
        let number = tally.nextSession()
        state = .session(number)
        let at = waiting.first?.at ?? Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: 0)
        func emit(_ kind: SourceInput.Kind) { found.append(SourceInput(session: number, at: at, kind)) }
        var beginning = Record.Beginning.packets
        if isWhole, PacketUpgrade.isRequest(self.beginning(.send)) == true {
            upgrade = PacketUpgrade()
            isFramed = true
            beginning.framing = .messages
        }
        emit(.began(beginning, remote: client.description))
        if isWhole {
            emit(.input(.connected(server.description)))
        } else if isUndecryptedTLS {
            emit(.input(.joined(inTLS: true)))
            if !hasRemark {
                let failure = TLSDecryptionFailure.noHandshake
                emit(.input(.remark(.send, code: failure.name, "not decrypted: \(failure.explanation.clause)")))
            }
        } else {
            // If the client's stream header was captured, the login is followed as in any other session.
            let isBeginning = StreamPlace.first(in: self.beginning(.send).span)?.isHeader == true
            emit(.input(isBeginning ? .connected(server.description) : .joined()))
            for direction in [Direction.send, .recv] { set(direction, .seeks(skipped: 0)) }
        }
        for entry in waiting { pass(entry.occurrence, entry.at, number, &found) }
    }

    /// Whether a connection that began before the capture uses TLS that is not decrypted.
    private var isUndecryptedTLS: Bool {
        let isTLS = [Direction.send, .recv].contains { Self.isTLS(beginning($0), isWhole: false) }
        return isTLS && !waiting.contains { if case .stream(.decrypts) = $0.occurrence { true } else { false } }
    }

    /// Whether TLS has reported why it is not decrypted.
    private var hasRemark: Bool {
        waiting.contains { if case .stream(.remark) = $0.occurrence { true } else { false } }
    }

    private func set(_ direction: Direction, _ mode: Mode) {
        if direction == .send { send = mode } else { recv = mode }
    }

    private func pass(
        _ occurrence: Occurrence,
        _ at: Run.Instant,
        _ number: UInt64,
        _ found: inout Outputs<SourceInput>
    ) {
        func emit(_ kind: SourceInput.Kind) { found.append(SourceInput(session: number, at: at, kind)) }
        if case .lost = occurrence {} else { lastSeen = at }
        switch occurrence {
        case .stream(.bytes(let direction, let bytes)): data(direction, bytes, at, number, &found)
        case .stream(.missed(let direction, let count)):
            emit(.input(.missed(direction, bytes: count)))
            if inflation != nil {
                let isFirst = if case .reads = direction == .send ? send : recv { true } else { false }
                if isFirst {
                    emit(.input(.remark(direction, code: PacketInflation.code, PacketInflation.lost)))
                    set(direction, .seeks(skipped: 0))
                }
            }
            // After lost frames, the session finds the next one.
            if !isFramed { set(direction, .seeks(skipped: 0)) }
        case .stream(.decrypts(let details, let consent)):
            emit(.input(.decrypts(details, consentFollows: consent != nil)))
            if let consent { data(.recv, consent, at, number, &found) }
            records = []
            // Streams begin anew inside TLS, so both directions can be read without a search for the next item.
            for direction in [Direction.send, .recv] {
                reportSkipped(direction, at, number, &found)
                set(direction, .reads)
            }
        case .stream(.remark(let direction, let code, let text)):
            emit(.input(.remark(direction, code: code, text)))
        case .ended(let direction):
            reportSkipped(direction, at, number, &found)
            emit(.input(.ended(direction.source, .finished)))
        case .closed(let direction):
            for direction in [Direction.send, .recv] { reportSkipped(direction, at, number, &found) }
            if let direction { emit(.input(.ended(direction.source, .reset))) }
            end(at, number, &found)
        case .lost:
            // The session ends at the time of its last event.
            let last = lastSeen ?? at
            for direction in [Direction.send, .recv] { reportSkipped(direction, last, number, &found) }
            found.append(SourceInput(session: number, at: last, .input(.unrecorded)))
            end(last, number, &found)
        }
    }

    /// Reports the bytes that were skipped in a direction because no stanza began in them.
    private func reportSkipped(
        _ direction: Direction,
        _ at: Run.Instant,
        _ number: UInt64,
        _ found: inout Outputs<SourceInput>
    ) {
        guard case .seeks(let skipped) = direction == .send ? send : recv, skipped > 0 else { return }
        found.append(SourceInput(session: number, at: at, .input(.missed(direction, bytes: skipped, isSkipped: true))))
        set(direction, .seeks(skipped: 0))
    }

    private func end(_ at: Run.Instant, _ number: UInt64, _ found: inout Outputs<SourceInput>) {
        for direction in [Direction.send, .recv] { reportSkipped(direction, at, number, &found) }
        found.append(SourceInput(session: number, at: at, .input(.closed)))
        state = .over
    }

    private func data(
        _ direction: Direction,
        _ bytes: [UInt8],
        _ at: Run.Instant,
        _ number: UInt64,
        _ found: inout Outputs<SourceInput>
    ) {
        func emit(_ kind: SourceInput.Kind) { found.append(SourceInput(session: number, at: at, kind)) }
        switch upgrade?.receive(direction, bytes) {
        case nil: break
        case .incomplete: return
        case .failed(let code, let message): return emit(.input(.remark(.recv, code: code, message)))
        case .opened(let facts, let compression, let rest):
            upgrade = nil
            inflation = compression.map(PacketInflation.init)
            emit(.input(.upgraded(facts)))
            if !rest.send.isEmpty { data(.send, rest.send, at, number, &found) }
            if !rest.recv.isEmpty { data(.recv, rest.recv, at, number, &found) }
            return
        }
        if let inflation { return inflate(inflation, direction, bytes, at, number, &found) }
        guard case .seeks(let skipped) = direction == .send ? send : recv else {
            return emit(.received(direction, bytes, records: records))
        }
        guard let place = StreamPlace.first(in: bytes.span) else {
            return set(direction, .seeks(skipped: skipped + UInt64(bytes.count)))
        }
        let passed = skipped + UInt64(place.offset)
        if passed > 0 { emit(.input(.missed(direction, bytes: passed, isSkipped: true))) }
        set(direction, .reads)
        if !place.isHeader {
            emit(.received(direction, InferredHeader.bytes(direction), inferred: "the header was not captured"))
        }
        emit(.received(direction, Array(bytes.dropFirst(place.offset)), records: records))
    }

    /// Passes the frames of a WebSocket to the session without their compression. After a fault, the bytes of the
    /// direction are only counted.
    private func inflate(
        _ inflation: PacketInflation,
        _ direction: Direction,
        _ bytes: [UInt8],
        _ at: Run.Instant,
        _ number: UInt64,
        _ found: inout Outputs<SourceInput>
    ) {
        func emit(_ kind: SourceInput.Kind) { found.append(SourceInput(session: number, at: at, kind)) }
        if case .seeks(let skipped) = direction == .send ? send : recv {
            return set(direction, .seeks(skipped: skipped + UInt64(bytes.count)))
        }
        let (frames, failure) = inflation.receive(direction, bytes)
        if !frames.isEmpty { emit(.received(direction, frames)) }
        guard let failure else { return }
        emit(.input(.remark(direction, code: PacketInflation.code, failure.text)))
        set(direction, .seeks(skipped: UInt64(failure.undecoded)))
    }
}
