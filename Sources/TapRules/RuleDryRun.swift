package import TapRecord
internal import XMPPCore

/// Evaluates a rule set over a recording: which rules match each element, and which actions they would execute.
///
/// Elements are evaluated as recorded; edits do not affect later elements.
package struct RuleDryRun {
    /// The result for one element.
    package struct Outcome: Sendable {
        /// The record of the element.
        package var line: RecordLine
        /// The rules with true conditions, in order.
        package var hits: [RulePlace]
        /// The rule that decided; nil if the element passes because no rule decided.
        package var decidedBy: RulePlace?
        /// `passed`, `dropped`, `edited`, or the fault: `reset`, `cut after 120 bytes` and so on.
        package var action: String
        /// The edited element; nil if it is unedited.
        package var edited: [UInt8]?
        /// All other actions, and problems with actions, each with its rule.
        package var notes: [(place: RulePlace, text: String)]
    }

    /// The state of a session, derived from its records.
    private struct Seen: ~Copyable {
        var send = DirectionReader()
        var recv = DirectionReader()
        var roster = Roster()
        var phase = RulePhase.opening
        var transport = RuleTransport.tcp
        /// Maximum stanza sizes that the server and the client have advertised (XEP-0478), in bytes.
        var receiverBytes = (server: Int.max, client: Int.max)
    }

    private let rules: RuleSet
    private let localTime: (Timestamp) -> RuleLocalTime
    private var sessions: [Key: Box] = [:]
    /// The run that the next records belong to.
    private var run = ""

    /// The key of a session: session numbers are unique only within a run.
    private struct Key: Hashable {
        let run: String
        let number: UInt64
    }

    /// Stores the noncopyable state in a dictionary.
    private final class Box {
        var seen = Seen()
        var state: RuleState
        init(_ number: UInt64) { state = RuleState(seed: number) }
    }

    /// Number of evaluated elements.
    package private(set) var judged = 0
    /// Number of elements that are truncated in the recording or cannot be parsed.
    package private(set) var skipped = 0
    /// How often the conditions of each rule were true.
    package private(set) var hitCounts: [RulePlace: Int] = [:]

    /// Creates a dry run.
    ///
    /// - Parameters:
    ///   - rules: The rules to evaluate.
    ///   - localTime: Returns the user's local time for a timestamp, used by `TIME` and `DAY`.
    package init(_ rules: RuleSet, localTime: @escaping (Timestamp) -> RuleLocalTime) {
        self.rules = rules
        self.localTime = localTime
    }

    /// The places of all rules, in order.
    package var places: [RulePlace] { rules.rules.map(\.place) }

    /// Sets the run that the next records belong to.
    package mutating func add(_ header: RecordHeader) { run = header.run }

    /// Evaluates the next record; returns nil if no rule matches or the record has no element.
    package mutating func evaluate(_ line: RecordLine) -> Outcome? {
        let record = line.record
        if record.code == Record.Code.sessionEnded { sessions[Key(run: run, number: record.session)] = nil }
        if record.kind == .tls, record.leg == .client { box(record).seen.transport = .tls }
        guard record.session > 0, let direction = record.direction, let xml = record.xml, !xml.isEmpty else {
            return nil
        }
        switch record.kind {
        case .declaration, .streamOpen, .stanza, .element: break
        default: return nil
        }
        let box = box(record)
        guard !record.isTruncated else {
            skipped += 1
            return nil
        }
        let bytes = line.content.span.slice(xml)
        let isItem = record.kind == .stanza || record.kind == .element
        // The session is open once a JID is bound; the response to resource binding still belongs to the login.
        let isBinding = record.part == .sasl || record.payloadNamespace == .bind
        if box.seen.phase.isHandshake, record.jid != nil, !isBinding { box.seen.phase = .open }
        let context = context(of: record, box.seen, direction)
        let verdict =
            direction == .send
            ? box.seen.send.judge(bytes, direction, rules, context, &box.state, isItem)
            : box.seen.recv.judge(bytes, direction, rules, context, &box.state, isItem)
        guard isItem else { return nil }
        guard let verdict else {
            skipped += 1
            return nil
        }
        judged += 1
        advance(&box.seen, record, line, direction)
        guard !verdict.hits.isEmpty || !verdict.remarks.isEmpty else { return nil }
        for hit in verdict.hits { hitCounts[hit.place, default: 0] += 1 }
        return outcome(verdict, line)
    }

    private mutating func box(_ record: Record) -> Box {
        let key = Key(run: run, number: record.session)
        if let box = sessions[key] { return box }
        let box = Box(record.session)
        // A JID in the first record means that the recording starts after the login.
        if record.jid != nil { box.seen.phase = .open }
        sessions[key] = box
        return box
    }

    private func context(of record: Record, _ seen: borrowing Seen, _ direction: Direction) -> RuleContext {
        var context = RuleContext()
        context.session = record.session
        context.jid = record.jid
        context.domain = record.domain
        context.phase = seen.phase
        context.transport = seen.transport
        context.clientAddress = record.remote.map(RuleContext.host)
        context.origin = record.origin
        context.roundTrip = record.roundTrip
        context.now = record.time.nanoseconds
        context.localTime = localTime(record.time)
        context.roster = seen.roster
        context.receiverBytes = seen.receiverBytes
        return context
    }

    private func advance(_ seen: inout Seen, _ record: Record, _ line: RecordLine, _ direction: Direction) {
        if record.kind == .element, record.part == .sasl {
            let isSuccess = record.name.map { line.content.span.slice($0).equals("success") } ?? false
            seen.phase = isSuccess ? .binding : .authenticating
        }
        if let element = direction == .send ? seen.send.last : seen.recv.last {
            seen.roster.observe(element, direction, jid: record.jid)
            if direction == .recv, let features = StreamFeatures(element) {
                seen.receiverBytes.server = features.itemBytes ?? .max
            } else if direction == .send, element.name == "bidi", element.namespace == .bidirectional {
                seen.receiverBytes.client = StreamFeatures.itemBytes(announcedIn: element) ?? .max
            }
        }
        // Servers and components do not bind a resource: their first stanza shows that the session is open.
        if record.kind == .stanza, seen.phase.isHandshake, direction == .send ? seen.send.isOther : seen.recv.isOther {
            seen.phase = .open
        }
    }

    // MARK: Outcomes

    private func outcome(_ verdict: Verdict, _ line: RecordLine) -> Outcome {
        let action =
            switch verdict.decision {
            case .pass: verdict.edited == nil ? "passed" : "edited"
            case .drop: "dropped"
            case .fault(let fault): fault.description
            }
        return Outcome(
            line: line,
            hits: verdict.hits.map(\.place),
            decidedBy: verdict.decidedBy,
            action: action,
            edited: verdict.edited,
            notes: verdict.actions.map { ($0.place, $0.action.description) }
                + verdict.remarks.map { ($0.place, $0.remark.description) }
        )
    }
}

/// Replays one direction of a recorded session into a stream decoder, which resolves namespaces.
private struct DirectionReader: ~Copyable {
    private var decoder = StreamDecoder(limits: .authenticated)
    private let parser = StanzaParser()
    private var isReady = false
    /// The tree of the last item.
    private(set) var last: Element?

    init() {}

    /// Whether the stream is between servers or of a component.
    var isOther: Bool { decoder.contentNamespace.isContent && decoder.contentNamespace != .client }

    /// Decodes bytes, and evaluates the rules if they are an item; nil if it cannot be parsed or is a stream header.
    mutating func judge(
        _ bytes: Span<UInt8>,
        _ direction: Direction,
        _ rules: RuleSet,
        _ context: RuleContext,
        _ state: inout RuleState,
        _ isItem: Bool
    ) -> Verdict? {
        last = nil
        if isItem, !isReady { begin() }
        decoder.append(bytes)
        var event = decoder.next()
        if isItem, event?.isElement != true {
            begin()
            decoder.append(bytes)
            event = decoder.next()
        }
        isReady = event.map { if case .fault = $0.kind { false } else { decoder.pendingCount == 0 } } ?? false
        guard isItem, isReady, let event, event.isElement else { return nil }
        var context = context
        if decoder.contentNamespace.isContent { context.content = decoder.contentNamespace }
        if isOther { context.phase = .open }
        last = try? parser.parse(decoder)
        let tree = last
        let item = RuleItem(direction, event.head, decoder.bytes)
        guard context.origin != .tap else {
            return rules.judgeInjected(item, tree: { tree }, state: &state, context: context)
        }
        let verdict = rules.judge(item, tree: { tree }, state: &state, context: context)
        if direction == .send, verdict.decision == .pass, rules.needsDirectedPresence {
            state.observePresence(event.head, decoder.bytes)
        }
        return verdict
    }

    /// Begins a stream if its header was not recorded.
    private mutating func begin() {
        decoder = StreamDecoder(limits: .authenticated)
        let header = "<stream:stream xmlns='jabber:client' xmlns:stream='\(Namespace.streams.uri)' version='1.0'>"
        decoder.append(Array(header.utf8).span)
        while decoder.next() != nil {}
        isReady = true
    }
}

extension StreamEvent {
    fileprivate var isElement: Bool {
        if case .item(.element) = kind { return !isTruncated }
        return false
    }
}

// MARK: Descriptions

extension RuleFaultAction: CustomStringConvertible {
    package var description: String {
        switch self {
        case .cut(let bytes): "cut after \(bytes) bytes"
        case .reset: "reset"
        case .halfClose: "half close"
        case .stall(nil): "stall"
        case .stall(let time?): "stall for \(durationText(time))"
        case .throttle(let bytes): "throttle to \(bytes) bytes a second"
        case .slice(let bytes, let every): "slice: \(bytes) byte\(bytes == 1 ? "" : "s") every \(durationText(every))"
        case .streamError(let condition, let text):
            "stream error \(condition.rawValue)" + (text.map { " (\($0))" } ?? "")
        case .saslFailure(let condition): "SASL failure \(condition)"
        case .loseAck: "acknowledgement lost"
        }
    }
}

extension Verdict.Action: CustomStringConvertible {
    package var description: String {
        switch self {
        case .inject(let direction, let bytes, let why):
            "\(why.rawValue) \(direction == .send ? "to the server" : "to the client"): \(String(decoding: bytes, as: UTF8.self))"
        case .delay(let time): "delay \(durationText(time))"
        case .duplicate(let copies): copies == 1 ? "1 copy sent after it" : "\(copies) copies sent after it"
        case .pause: "pause"
        case .fault(let fault): fault.description
        case .log(let level, let text): "log \(level.name): \(text)"
        case .record(let isOn): "record \(isOn ? "on" : "off")"
        case .level(let level): "level \(level.name)"
        case .redact(let path): "redact \(path.source)"
        }
    }
}

extension Verdict.Remark: CustomStringConvertible {
    package var description: String {
        switch self {
        case .editRefused(let reason): "edit refused: \(reason)"
        case .opaque: "the stanza is encrypted or signed end to end; its receiver will see that it was edited"
        case .blackhole: "iq request dropped; its sender gets no answer"
        case .tooComplex: "pattern too complex for this stanza; rule skipped"
        case .tooManyRules: "limit of 10,000 rules per stanza reached; the remaining rules were skipped"
        case .loop:
            "the same stanza sent too often, perhaps in a loop: not more than 20 at once and 1 per second; not sent"
        case .notHere(let what): "action skipped: \(what)"
        }
    }
}

private func durationText(_ nanoseconds: Int64) -> String {
    var buffer = LineBuffer(capacity: 16)
    buffer.append(duration: nanoseconds)
    return String(decoding: buffer.bytes, as: UTF8.self)
}
