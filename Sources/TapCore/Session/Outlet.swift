internal import TapRecord
import TapStreamManagement
import XMPPCore

/// The only output of a session: its commands in order, the bytes that it composes, and the counts of stream
/// management.
///
/// Bytes leave a session, and stanzas are counted (XEP-0198 §4), only by these functions and their variants:
/// ``pass(_:of:by:)``, ``replace(_:of:with:by:)``, ``drop(_:of:by:)``, ``answer(_:to:)``, ``inject(_:_:)`` and
/// ``end(_:)``.
struct Outlet: ~Copyable {
    /// The buffer that contains the texts of a record, or the bytes to forward.
    enum Source {
        case none, send, recv, composed

        init(_ direction: Direction) { self = direction == .send ? .send : .recv }
    }

    private var queue = CommandQueue()
    /// Whether both legs are WebSockets, so that each item is sent as a message of one frame.
    private let isFramed: Bool
    /// The buffer for the records of the current event.
    private(set) var source = Source.none
    /// The buffer for the last command that was taken.
    private(set) var shown = Source.none
    /// The texts of records that are not the received bytes of an item.
    private(set) var composed: [UInt8] = []
    /// The stanza counts of stream management; nil if it was not requested.
    private(set) var streamManagement: StreamManagement?
    /// Whether stream management is on, or may be, but stanzas can no longer be counted. The counts of both ends are
    /// equal, so nothing may be injected any more.
    private(set) var hasLostCounts = false
    /// Whether a stanza was dropped after the counts were lost, or the counts had diverged before.
    private var hasDroppedUncounted = false
    /// Whether ``detectDivergence()`` has reported ``hasDroppedUncounted``.
    private var isUncountedDropKnown = false

    /// - Parameter isFramed: Whether both legs are WebSockets.
    init(isFramed: Bool = false) { self.isFramed = isFramed }

    // MARK: Items of the peers

    /// Forwards an item, or the rest of a partly forwarded item, and counts it if it is a stanza.
    ///
    /// - Parameter rule: The results of the rules, if their decision must be repeated when the peer sends the stanza
    ///   again.
    mutating func pass(_ event: StreamEvent, of relay: inout DirectionRelay, by rule: UInt32? = nil) {
        switch relay.pass(event) {
        case .nothing: break
        case .item: queue.append(forwarding: relay.direction)
        case .rest(let bytes): queue.append(.send(relay.direction.destination, bytes))
        }
        guard let streamManagement, event.isStanza else { return }
        if let rule {
            streamManagement.pass(relay.direction, Self.mark(event, relay, rule))
        } else {
            streamManagement.pass(relay.direction)
        }
    }

    /// Counts a stanza that was forwarded on arrival.
    @inline(__always)
    func passedOnArrival(_ direction: Direction) { streamManagement?.pass(direction) }

    /// Forwards the received part of an incomplete item.
    mutating func passRest(of relay: inout DirectionRelay) {
        if let rest = relay.takeRest() { queue.append(.send(relay.direction.destination, rest)) }
    }

    /// Forwards the buffered items of a direction.
    mutating func passBuffered(of relay: inout DirectionRelay) {
        if let items = relay.takeBuffered() { queue.append(.send(relay.direction.destination, items)) }
    }

    /// Forwards bytes that were received before their direction began to relay.
    mutating func pass(_ bytes: [UInt8], _ direction: Direction) { queue.append(.send(direction.destination, bytes)) }

    /// Forwards these bytes instead of an item, and counts the item if it is a stanza.
    mutating func replace(
        _ event: StreamEvent,
        of relay: inout DirectionRelay,
        with bytes: [UInt8],
        by rule: UInt32
    ) {
        skip(event, of: &relay)
        send(bytes, to: relay.direction.destination)
        if let streamManagement, event.isStanza {
            streamManagement.pass(relay.direction, Self.mark(event, relay, rule))
        }
    }

    /// Drops an item, and counts it if it is a stanza.
    mutating func drop(_ event: StreamEvent, of relay: inout DirectionRelay, by rule: UInt32) {
        skip(event, of: &relay)
        guard event.isStanza else { return }
        if let streamManagement {
            streamManagement.drop(relay.direction, Self.mark(event, relay, rule))
        } else if hasLostCounts {
            hasDroppedUncounted = true
        }
    }

    private static func mark(
        _ event: StreamEvent,
        _ relay: borrowing DirectionRelay,
        _ rule: UInt32
    ) -> StreamManagementLedger.Mark {
        StreamManagementLedger.Mark(
            fingerprint: StreamManagementLedger.fingerprint(event.head, relay.decoder.bytes),
            rule: rule
        )
    }

    /// Forwards the first bytes of an item, after which the connection is broken.
    mutating func pass(first count: Int, of event: StreamEvent, of relay: inout DirectionRelay) {
        if isFramed { return pass(first: count, ofMessage: event, of: &relay) }
        var bytes: [UInt8] = []
        bytes.append(relay.decoder.bytes)
        relay.skip(event)
        queue.append(.send(relay.direction.destination, Array(bytes.prefix(count))))
    }

    /// The frame announces the whole message.
    private mutating func pass(first count: Int, ofMessage event: StreamEvent, of relay: inout DirectionRelay) {
        let length = relay.decoder.bytes.count
        var message: [UInt8] = []
        message.append(relay.decoder.bytes)
        skip(event, of: &relay)
        let frame = Self.frame(message, for: relay.direction.destination)
        queue.append(.send(relay.direction.destination, Array(frame.prefix(frame.count - length + count))))
    }

    /// Forwards nothing of an item but the control frames inside it.
    private mutating func skip(_ event: StreamEvent, of relay: inout DirectionRelay) {
        guard isFramed else { return relay.skip(event) }
        let controls = relay.skipMessage(event)
        if !controls.isEmpty { queue.append(.send(relay.direction.destination, controls)) }
    }

    /// Forwards the control frames that were decoded, unless they wait for the decision on a message.
    mutating func passControl(of relay: inout DirectionRelay) {
        if let frames = relay.passControl() { queue.append(.send(relay.direction.destination, frames)) }
    }

    // MARK: Items of xmpptap

    /// Sends an item that is not a stanza to a peer, in place of the other peer.
    mutating func answer(_ bytes: [UInt8], to leg: Leg) { send(bytes, to: leg) }

    /// Sends a ping frame to a WebSocket, between messages or the fragments of one.
    mutating func answer(ping payload: [UInt8], to leg: Leg) {
        var frame: [UInt8] = []
        if isFramed, WebSocketFrameWriter.append(ping: payload.span, as: Self.role(for: leg), to: &frame) {
            queue.append(.send(leg, frame))
        }
    }

    private mutating func send(_ item: [UInt8], to leg: Leg) {
        queue.append(.send(leg, isFramed ? Self.frame(item, for: leg) : item))
    }

    private static func frame(_ message: [UInt8], for leg: Leg) -> [UInt8] {
        var frame: [UInt8] = []
        frame.reserveCapacity(message.count + 14)
        WebSocketFrameWriter.append(message: message.span, as: role(for: leg), to: &frame)
        return frame
    }

    /// The peer of the leg's peer: xmpptap is the client of the server.
    private static func role(for leg: Leg) -> WebSocketFrameWriter.Role {
        leg == .client ? .server : .client(maskKey: .random(in: .min ... .max))
    }

    /// Sends an item between the items of the peer, and counts the stanzas in it.
    mutating func inject(_ item: InjectedItem, _ direction: Direction) {
        send(item.bytes, to: direction.destination)
        streamManagement?.inject(item, direction)
    }

    // MARK: Ends

    /// Closes the WebSocket of a leg, if it is one (RFC 6455 §7.1.2).
    mutating func end(_ leg: Leg, with code: WebSocketCloseCode) {
        guard isFramed else { return }
        var frame: [UInt8] = []
        if WebSocketFrameWriter.append(close: code, as: Self.role(for: leg), to: &frame) {
            queue.append(.send(leg, frame))
        }
    }

    /// Half-closes a leg after all earlier bytes.
    mutating func end(_ leg: Leg) { queue.append(.finish(leg)) }

    /// Closes both legs after all earlier bytes.
    mutating func end(reset: Bool) { queue.append(.close(reset: reset)) }

    // MARK: Stream management

    /// Starts, replaces or ends the counting of stanzas.
    mutating func count(in streamManagement: StreamManagement?) { self.streamManagement = streamManagement }

    /// Ends the counting of stanzas for the rest of the connection, because an item may contain stanzas that cannot be
    /// counted. Does nothing without stream management.
    ///
    /// - Parameter isOn: Whether stream management is known to be on, or requested, although it is not counted.
    mutating func stopCounting(isOn: Bool = false) {
        guard isOn || streamManagement?.isIdle == false else { return }
        hasLostCounts = true
        if streamManagement?.hasDiverged == true { (hasDroppedUncounted, isUncountedDropKnown) = (true, true) }
        // A request to resume that waits is still sent when its wait ends.
        if streamManagement?.isWaiting != true { streamManagement = nil }
    }

    /// Whether the stanza counts of both ends have ever differed. After that, items are forwarded only after they were
    /// decided on.
    var hasDiverged: Bool { streamManagement?.hasDiverged == true || hasDroppedUncounted }

    /// Returns whether the counts have diverged; true only once.
    mutating func detectDivergence() -> Bool {
        if let streamManagement { return streamManagement.detectDivergence() }
        guard hasDroppedUncounted, !isUncountedDropKnown else { return false }
        isUncountedDropKnown = true
        return true
    }

    // MARK: Commands that send nothing

    /// Requests an action of the driver that sends no bytes of a stream.
    mutating func request(_ request: DriverRequest) { queue.append(request.command) }

    /// Passes a record to the sinks, redacted.
    ///
    /// - Parameter domain: The domain that redaction assumes for user names without a domain.
    @inline(__always)
    mutating func record(_ record: consuming Record, by redactor: Redactor, at domain: String?) {
        queue.append(record, by: redactor, at: domain)
    }

    // MARK: The texts of records

    /// Selects the last item of a direction as the texts of the next records.
    @inline(__always)
    mutating func show(_ direction: Direction) { source = Source(direction) }

    /// Selects no texts for the next records.
    mutating func clearTexts() {
        source = .none
        // After the login, few items need this buffer, so an idle session does not keep a large one.
        if composed.capacity > 256 { composed = [] }
    }

    /// Removes and returns the composed texts, so that their memory can be reused.
    mutating func takeComposed() -> [UInt8] {
        defer { composed = [] }
        return composed
    }

    /// Stores composed texts.
    ///
    /// - Parameter isShown: Whether the next records show these texts.
    mutating func setComposed(_ texts: consuming [UInt8], isShown: Bool = true) {
        composed = texts
        if isShown { source = .composed }
    }

    /// Appends a text to the composed texts, after the texts of the pending records; returns its range.
    mutating func compose(_ text: Span<UInt8>, after directions: borrowing Directions) -> ByteRange {
        if source != .composed {
            composed.removeAll(keepingCapacity: true)
            if source == .send { composed.append(directions.bytes(.send)) }
            if source == .recv { composed.append(directions.bytes(.recv)) }
            source = .composed
        }
        let start = composed.count
        composed.append(text)
        return ByteRange(start, composed.count)
    }

    /// Returns the range of the name of the element at this range of the composed texts.
    func elementName(in range: ByteRange) -> ByteRange {
        let name = composed[Int(range.start)..<Int(range.end)].dropFirst().prefix { ![0x20, 0x2F, 0x3E].contains($0) }
        return ByteRange(name.startIndex, name.endIndex)
    }

    // MARK: Taking commands

    var isEmpty: Bool { queue.isEmpty }

    /// Advances to the next command; nil if there is none. The caller then removes the record or takes the command.
    @inline(__always)
    mutating func advance() -> CommandQueue.Kind? {
        guard let kind = queue.advance() else { return nil }
        // Forwarded bytes are the received ones, even if a record shows them redacted.
        shown =
            switch kind {
            case .send: .send
            case .recv: .recv
            case .record, .other: source
            }
        return kind
    }

    /// Calls `body` with the record that is next, in its place; does nothing if it was removed before.
    @inline(__always)
    func withRecord(_ body: (borrowing RedactedRecord) -> Void) { queue.withRecord(body) }

    /// Removes the record that is next.
    @inline(__always)
    mutating func removeRecord() { queue.removeRecord() }

    /// Removes and returns the record that is next; nil if it was removed before.
    mutating func takeRecord() -> RedactedRecord? { queue.takeRecord() }

    /// Removes and returns the command that is next; nil if it was taken before.
    mutating func takeCommand() -> Command? { queue.takeCommand() }
}

/// A request to the driver that sends no bytes of the session's streams.
enum DriverRequest {
    case tls(TLSCommand)
    case compute(SlowStep)
    case addToJournal([UInt8])
    case searchJournal([[UInt8]])
    case injected(UInt64, InjectionOutcome)
    case displace(UInt64)
    case shared(SharedRequest)
    case read(Leg, Bool)
    case shape(Leg, LinkShape?)

    fileprivate var command: Command {
        switch self {
        case .tls(let command): .tls(command)
        case .compute(let step): .compute(step)
        case .addToJournal(let mark): .addToJournal(mark)
        case .searchJournal(let marks): .searchJournal(marks)
        case .injected(let number, let outcome): .injected(number, outcome)
        case .displace(let session): .displace(session)
        case .shared(let request): .shared(request)
        case .read(let leg, let isRead): .read(leg, isRead)
        case .shape(let leg, let shape): .shape(leg, shape)
        }
    }
}

extension StreamEvent {
    /// Whether the item is a whole stanza of its stream.
    @inline(__always)
    var isStanza: Bool { item == .element && head.kind != .nonza }
}
