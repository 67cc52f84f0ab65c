internal import TapRecord
package import XMPPCore

/// Plays the server's side of a recorded conversation to a client that has logged in.
///
/// A request that matches a recorded one gets the recorded answer, with the id of the live request. Unsolicited items
/// are sent after the client has sent everything that preceded them in the recording, or has been silent for a while.
/// Pings and stream management are handled live, not from the recording.
///
/// Sans-IO: items are passed with the time in nanoseconds of a monotonic clock, ``next()`` returns events until it
/// returns nil, and ``tick(at:)`` must be called at ``deadline``.
package struct ServedSession {
    /// Options for serving a conversation.
    package struct Settings: Sendable {
        /// When items are sent, relative to the items that they depend on (default: at once).
        package var pace = ReplayOptions.Pace.causal
        /// Whether to write items in the recorded chunks (default: false).
        package var keepsChunks = false
        /// Silence of the client after which unsolicited items are sent anyway, in nanoseconds (default: 2 s).
        package var silenceBeforeUnsolicited: Int64 = 2_000_000_000
        /// Time between two chunks of an item, so that the client reads them separately, in nanoseconds (default: 20
        /// ms).
        package var chunkGap: Int64 = 20_000_000

        /// Creates settings with the defaults.
        package init() {}
    }

    /// An event for the caller.
    package enum Event: Sendable {
        /// Send these bytes to the client in a separate write.
        case send([UInt8])
        /// The recording contains no answer to this request: call ``ServedSession/answer(_:with:at:)``, or
        /// ``ServedSession/await(_:)`` if the answer takes time.
        case ask(Element)
        /// The client differs from the recording; the divergence is redacted.
        case report(Divergence)
        /// Close the stream, as the server did.
        case close
        /// Close the stream, because the client sends requests faster than they are answered.
        case overflow
    }

    /// An item to be sent.
    private struct Waiting {
        enum Content {
            case send([UInt8])
            /// The pending answer to the request with this id.
            case answer(String?)
            case close
        }

        /// The time at which the entry is sent, in nanoseconds.
        var due: Int64
        var content: Content
        /// The whole stanza, if `content` is the stanza or its first chunk.
        var stanza: [UInt8]?
        /// Whether the entry must directly follow the one before it: nothing is sent between the chunks of an item.
        var isBound = false
    }

    /// A stanza that the client sent in the recording.
    private struct Expected {
        let item: Int
        let form: StanzaForm
        let isRequest: Bool
        /// Index of the item that answers it.
        var answer: Int?
        /// Whether later items no longer wait for this stanza.
        var isSettled: Bool
        var isMatched = false
    }

    /// An unsolicited item of the server.
    private struct Push {
        let item: Int
        /// Number of client stanzas that precede it.
        let after: Int
    }

    /// Maximum number of pending entries, in addition to the number of recorded items.
    private static let maximumRepeated = 1024

    private let items: [RecordedItem]
    private let client: JID
    private let session: UInt64
    private let settings: Settings
    private let rules: NoiseRules
    private let redactor = ReportRedactor()
    /// The bindings of addresses only.
    private let addresses: ValueBindings
    private var bindings: ValueBindings
    private var expected: [Expected] = []
    /// Number of settled entries at the start of ``expected``.
    private var settled = 0
    private var pushes: ArraySlice<Push> = []
    /// Entries that wait for their time or for an answer, in sending order.
    private var waiting: ArraySlice<Waiting> = []
    private var events: ArraySlice<Event> = []
    /// The last matched client stanza and the last item sent, each with its recorded and live time.
    private var matched: (recorded: Int64, live: Int64)
    private var sent: (recorded: Int64, live: Int64)
    private var silenceStart: Int64
    private var now: Int64
    /// Number of stanzas received since the client enabled stream management; nil before.
    private var handled: UInt32?
    /// The id with which the client may resume the session.
    private let resumptionID: String?
    /// Stanzas sent since the client enabled resumption that it has not acknowledged; nil if resumption is not enabled.
    private var unacknowledged: ArraySlice<[UInt8]>?
    /// Number of stanzas that the client has acknowledged.
    private var acknowledged: UInt32 = 0
    private var received: UInt64 = 0

    /// Creates a session for a client that has bound a resource.
    ///
    /// - Parameters:
    ///   - live: The client's full JID.
    ///   - resumptionID: The id with which the client may resume the session; nil if it may not.
    ///   - parser: The parser for the recorded items.
    package init(
        _ conversation: RecordedConversation,
        live: JID,
        resumptionID: String? = nil,
        settings: Settings = Settings(),
        rules: NoiseRules = NoiseRules(),
        parser: StanzaParser,
        at now: Int64
    ) {
        items = conversation.items.map { Self.resolved($0, parser) }
        client = live
        session = conversation.number
        self.resumptionID = resumptionID
        self.settings = settings
        self.rules = rules
        var bindings = ValueBindings()
        if let jid = conversation.jid {
            // No collision is possible with empty bindings.
            try? bindings.bind(jid.bare.description, to: live.bare.description, .account)
            try? bindings.bind(jid.description, to: live.description, .resource)
        }
        addresses = bindings
        self.bindings = bindings
        silenceStart = now
        self.now = now
        matched = (conversation.ready, now)
        sent = matched
        read(parser, endsAtServer: conversation.ending == .server)
        advance()
    }

    /// Returns an item without the prefixes that only the recorded stream header declares.
    private static func resolved(_ item: RecordedItem, _ parser: StanzaParser) -> RecordedItem {
        guard item.direction == .recv, item.kind != .end, let seen = item.seen,
            item.root != StanzaForm.clientDeclarations,
            (try? parser.parse(seen.span, root: StanzaForm.clientDeclarations)) == nil,
            let element = try? parser.parse(seen.span, root: item.root)
        else { return item }
        var item = item
        item.seen = XMLWriter.bytes { $0.element(element, inheriting: Namespace.client.uri.description) }
        item.chunks = []
        return item
    }

    /// Sorts the recorded items into expected stanzas, answers and unsolicited items.
    private mutating func read(_ parser: StanzaParser, endsAtServer: Bool) {
        var open: [String: Int] = [:]
        for (index, item) in items.enumerated() {
            if item.direction == .send {
                guard item.origin == .peer, item.kind != .nonza, item.kind != .end, !item.isAnswer,
                    let bytes = item.sent,
                    let form = StanzaForm(bytes, parser: parser, root: item.root)
                else { continue }
                if item.kind == .iq, let id = item.id { open[id] = expected.count }
                expected.append(
                    Expected(
                        item: index,
                        form: form,
                        isRequest: item.kind == .iq,
                        isSettled: item.payloadNamespace == .ping
                    )
                )
            } else if item.seen != nil {
                switch item.kind {
                case .iq where item.isAnswer:
                    if let request = item.id.flatMap({ open.removeValue(forKey: $0) }) {
                        expected[request].answer = index
                    }
                case .iq where item.payloadNamespace == .ping: break
                case .nonza where item.name != "error": break
                case .end where !endsAtServer: break
                default: pushes.append(Push(item: index, after: expected.count))
                }
            }
        }
    }

    // MARK: Events

    /// Returns the next event; nil if there is none until the next call.
    package mutating func next() -> Event? { events.popFirst() }

    /// The time at which ``tick(at:)`` must be called; nil if nothing is scheduled.
    package var deadline: Int64? {
        if let first = waiting.first {
            if case .answer = first.content { return nil }
            return first.due
        }
        return pushes.isEmpty ? nil : silenceStart &+ settings.silenceBeforeUnsolicited
    }

    /// Handles the ``deadline``.
    package mutating func tick(at now: Int64) {
        self.now = max(self.now, now)
        if waiting.isEmpty, let push = pushes.first, self.now >= silenceStart &+ settings.silenceBeforeUnsolicited {
            giveUp(before: push.after)
            silenceStart = self.now
        }
        advance()
    }

    /// Handles an item from the client.
    package mutating func receive(_ element: Element, at now: Int64) {
        self.now = max(self.now, now)
        silenceStart = self.now
        received += 1
        let form = StanzaForm(element)
        if form.kind == .nonza {
            receive(nonza: element)
        } else {
            handled = handled.map { $0 &+ 1 }
            switch form.type {
            case "result" where form.kind == .iq, "error": break
            default: receive(form)
            }
        }
        advance()
    }

    /// Reserves the place of the answer to a request of ``Event/ask(_:)``; later recorded answers are sent after it.
    package mutating func await(_ request: Element) {
        let place = waiting.prefix { $0.isBound || $0.due <= now }.count
        waiting.insert(
            Waiting(due: now, content: .answer(request.attribute("id"))),
            at: waiting.startIndex + place
        )
    }

    /// Sends the answer to a request of ``Event/ask(_:)``.
    package mutating func answer(_ request: Element, with bytes: [UInt8], at now: Int64) {
        self.now = max(self.now, now)
        let id = request.attribute("id")
        let place = waiting.firstIndex { if case .answer(id) = $0.content { true } else { false } }
        if let place {
            (waiting[place].content, waiting[place].stanza) = (.send(bytes), bytes)
        } else {
            sendLive(bytes, isStanza: true)
        }
        advance()
    }

    /// Ends the session. Reports the stanzas that the client did not send, and the items that were not sent to the
    /// client.
    package mutating func end() {
        giveUp(before: expected.count)
        for push in pushes where items[push.item].kind != .end { reportUnsent(items[push.item]) }
        (pushes, waiting) = ([], [])
    }

    // MARK: Resumption

    /// Whether the client has enabled resumption.
    package var isResumable: Bool { unacknowledged != nil }

    /// Suspends the session after the connection was lost; ``resume(handled:xmlns:at:)`` may follow.
    package mutating func suspend() {
        // A partly sent item cannot continue on another connection, so the whole stanza is sent again.
        let rest = waiting.prefix(while: \.isBound)
        for stanza in rest.compactMap(\.stanza) { unacknowledged?.append(stanza) }
        waiting = waiting.dropFirst(rest.count)
        events = []
    }

    /// Resumes the session on a new connection.
    ///
    /// - Parameters:
    ///   - count: Number of stanzas that the client has received.
    ///   - xmlns: The namespace of its request.
    /// - Returns: The answer, to be sent first; nil if the client acknowledges stanzas that were not sent, so that the
    ///   session cannot be resumed.
    package mutating func resume(handled count: UInt32, xmlns: String, at now: Int64) -> [UInt8]? {
        guard let resumptionID, acknowledge(count) else { return nil }
        self.now = max(self.now, now)
        silenceStart = self.now
        let own = handled ?? 0
        for stanza in unacknowledged ?? [] { events.append(.send(stanza)) }
        advance()
        return XMLWriter.bytes { $0.element("resumed", xmlns: xmlns, ["previd": resumptionID, "h": "\(own)"]) }
    }

    /// Enables stream management at the client's `<enable/>`.
    ///
    /// - Returns: The answer.
    package mutating func enable(_ request: Element) -> [UInt8] {
        handled = 0
        let resumes = ["true", "1"].contains(request.attribute("resume")) && resumptionID != nil
        if resumes { (unacknowledged, acknowledged) = ([], 0) }
        let attributes: KeyValuePairs<String, String?> = [
            "id": resumes ? resumptionID : nil, "resume": resumes ? "true" : nil,
        ]
        return XMLWriter.bytes { $0.element("enabled", xmlns: request.namespaceURI, attributes) }
    }

    /// Removes the stanzas that the client acknowledges.
    ///
    /// - Returns: Whether at least `count` stanzas were sent.
    private mutating func acknowledge(_ count: UInt32) -> Bool {
        let number = Int(count &- acknowledged)
        guard let sent = unacknowledged, number <= sent.count else { return false }
        unacknowledged = sent.dropFirst(number)
        acknowledged = count
        return true
    }

    private mutating func sending(_ stanza: [UInt8]?) {
        guard let stanza, let count = unacknowledged?.count else { return }
        // Drop resumption for a client that never acknowledges.
        if count < items.count + Self.maximumRepeated { unacknowledged?.append(stanza) } else { unacknowledged = nil }
    }

    // MARK: The client's items

    private mutating func receive(nonza element: Element) {
        switch (element.name, element.namespace) {
        case ("enable", .streamManagement), ("enable", .streamManagement2):
            sendLive(enable(element), isStanza: false)
        case ("r", .streamManagement), ("r", .streamManagement2):
            let count = handled ?? 0
            send { $0.element("a", xmlns: element.namespaceURI, ["h": "\(count)"]) }
        case ("resume", .streamManagement), ("resume", .streamManagement2):
            send {
                $0.element("failed", xmlns: element.namespaceURI) { $0.element("item-not-found", .stanzaErrors) }
            }
        case ("a", .streamManagement), ("a", .streamManagement2):
            if let count = element.attribute("h").flatMap({ UInt32($0) }) { _ = acknowledge(count) }
        case (_, .clientState): break
        default: report(.unexpected, live: StanzaForm(element), message: "this element is not served")
        }
    }

    private mutating func send(isStanza: Bool = false, _ content: (inout XMLWriter) -> Void) {
        sendLive(XMLWriter.bytes(content), isStanza: isStanza)
    }

    /// Sends live bytes at once, or after the remaining chunks of an item that is being sent.
    private mutating func sendLive(_ bytes: [UInt8], isStanza: Bool) {
        let bound = waiting.prefix(while: \.isBound)
        let stanza = isStanza ? bytes : nil
        guard let last = bound.last else {
            sending(stanza)
            return events.append(.send(bytes))
        }
        waiting.insert(
            Waiting(due: last.due, content: .send(bytes), stanza: stanza, isBound: true),
            at: bound.endIndex
        )
    }

    private mutating func receive(_ live: StanzaForm) {
        let isRequest = live.kind == .iq
        guard waiting.count < items.count + Self.maximumRepeated else { return events.append(.overflow) }
        if let index = exactMatch(live) {
            match(index)
        } else if live.payload?.namespace == .ping || live.payload?.namespace == .session, isRequest {
            let client = client.description
            send(isStanza: true) { $0.element("iq", ["type": "result", "id": live.id, "from": live.to, "to": client]) }
        } else if let (index, differences) = likeness(live) {
            report(.changed, expected[index], live: live, differences)
            match(index)
        } else if isRequest {
            report(.unexpected, live: live, message: "no recorded request is like it")
            events.append(.ask(live.element))
        } else {
            report(.unexpected, live: live, message: "")
        }
    }

    /// Returns the indices of recorded stanzas to compare with, unmatched ones first.
    private func candidates(_ live: StanzaForm) -> [Int] {
        let open = expected.indices.filter { !expected[$0].isMatched && expected[$0].form.kind == live.kind }
        guard live.kind == .iq else { return open }
        return open + expected.indices.filter { expected[$0].isMatched && expected[$0].isRequest }
    }

    /// Returns the recorded stanza with the same meaning. Its bindings are kept for the session, unless it was matched
    /// before or agrees only without the earlier bindings.
    private mutating func exactMatch(_ live: StanzaForm) -> Int? {
        for index in candidates(live) {
            for known in [bindings, addresses] {
                var trial = known
                guard differences(index, live, &trial).isEmpty else { continue }
                answering = trial
                if !expected[index].isMatched, known.count == bindings.count { bindings = trial }
                return index
            }
        }
        return nil
    }

    private func differences(_ index: Int, _ live: StanzaForm, _ bindings: inout ValueBindings) -> [ValueDifference] {
        StanzaComparison.compare(recorded: expected[index].form, live: live, bindings: &bindings, rules: rules)
    }

    /// The bindings of the stanza that is being answered.
    private var answering = ValueBindings()

    /// Returns the first recorded stanza with the same purpose, with the differences: equal type, recipient and payload
    /// name.
    private mutating func likeness(_ live: StanzaForm) -> (Int, [ValueDifference])? {
        for index in candidates(live) where isLike(expected[index].form, live) {
            var trial = addresses
            let differences = differences(index, live, &trial)
            answering = trial
            return (index, differences)
        }
        return nil
    }

    private func isLike(_ recorded: StanzaForm, _ live: StanzaForm) -> Bool {
        guard recorded.type == live.type, account(recorded.to.map { bindings.jid($0, .toLive) }) == account(live.to)
        else { return false }
        guard recorded.kind == .iq else { return true }
        let (own, other) = (recorded.payload, live.payload)
        return own?.name == other?.name && own?.namespaceURI == other?.namespaceURI
            && own?.attribute("node") == other?.attribute("node")
    }

    private func account(_ address: String?) -> String? { address.map { String($0.prefix { $0 != "/" }) } }

    private mutating func match(_ index: Int) {
        expected[index].isMatched = true
        expected[index].isSettled = true
        matched = (items[expected[index].item].at, now)
        guard let answer = expected[index].answer else { return }
        schedule(answer, after: matched, with: answering)
    }

    private mutating func giveUp(before count: Int) {
        for index in settled..<max(settled, count) where !expected[index].isSettled {
            expected[index].isSettled = true
            report(.missing, expected[index])
        }
    }

    // MARK: The server's items

    /// Sends due entries, and schedules unsolicited items whose preceding stanzas have arrived.
    private mutating func advance() {
        while settled < expected.count, expected[settled].isSettled { settled += 1 }
        while let push = pushes.first, push.after <= settled {
            pushes.removeFirst()
            schedule(push.item, after: sent.recorded > matched.recorded ? sent : matched, with: bindings)
        }
        while let first = waiting.first, first.due <= now {
            switch first.content {
            case .answer: return
            case .send(let bytes):
                sending(first.stanza)
                events.append(.send(bytes))
            case .close: events.append(.close)
            }
            waiting.removeFirst()
        }
    }

    /// Schedules an item after the pending entries, with the recorded delay to the item before it.
    private mutating func schedule(
        _ index: Int,
        after before: (recorded: Int64, live: Int64),
        with bindings: ValueBindings
    ) {
        let item = items[index]
        var due = max(now, waiting.last?.due ?? now)
        if case .recorded(let speed) = settings.pace, speed > 0 {
            let delay = Double(max(0, item.at - before.recorded)) / speed
            due = max(due, before.live &+ Int64(min(delay, 1e15)))
        }
        sent = (item.at, due)
        guard item.kind != .end, let recorded = item.seen else {
            return waiting.append(Waiting(due: due, content: .close))
        }
        let live = bindings.substituted(recorded, .toLive, rules: rules)
        let boundaries = settings.keepsChunks ? Self.boundaries(item.chunks, from: recorded, to: live) : []
        var start = 0
        for end in boundaries + [live.count] where end > start {
            let stanza = start == 0 && item.kind != .nonza ? live : nil
            waiting.append(
                Waiting(due: due, content: .send(Array(live[start..<end])), stanza: stanza, isBound: start > 0)
            )
            start = end
            due += settings.chunkGap
        }
    }

    /// Returns the recorded chunk boundaries for an item whose values have changed: before the first change at the same
    /// offset, after the last change at the same distance from the end.
    static func boundaries(_ chunks: [UInt64], from recorded: [UInt8], to live: [UInt8]) -> [Int] {
        let head = zip(recorded, live).prefix { $0 == $1 }.count
        let most = min(recorded.count, live.count) - head
        let tail = min(most, zip(recorded.reversed(), live.reversed()).prefix { $0 == $1 }.count)
        return chunks.compactMap { Int(exactly: $0) }
            .filter { $0 <= recorded.count }
            .map {
                $0 <= head || $0 < recorded.count - tail ? min($0, live.count - tail) : $0 + live.count - recorded.count
            }
            .filter { $0 > 0 && $0 < live.count }
    }

    // MARK: Reports

    private mutating func reportUnsent(_ item: RecordedItem) {
        let recorded = Divergence.Item(
            session: session,
            sequence: item.sequence,
            at: item.at,
            direction: .recv,
            text: String(decoding: item.seen ?? [], as: UTF8.self)
        )
        events.append(.report(redactor.disclosed(Divergence(.behaviour, .unsent, recorded: recorded))))
    }

    private mutating func report(
        _ code: Divergence.Code,
        _ expected: Expected? = nil,
        live: StanzaForm? = nil,
        _ differences: [ValueDifference] = [],
        message: String = ""
    ) {
        func item(_ sequence: UInt64, _ at: Int64, _ bytes: [UInt8]) -> Divergence.Item {
            Divergence.Item(
                session: session,
                sequence: sequence,
                at: at,
                direction: .send,
                text: String(decoding: bytes, as: UTF8.self)
            )
        }
        let recorded = expected.map { items[$0.item] }
        let text = live.map { form in
            XMLWriter.bytes { $0.element(form.element, inheriting: Namespace.client.uri.description) }
        }
        let divergence = Divergence(
            .behaviour,
            code,
            recorded: recorded.map { item($0.sequence, $0.at, $0.sent ?? []) },
            live: text.map { item(received, now, $0) },
            differences: differences,
            message: message
        )
        events.append(.report(redactor.disclosed(divergence)))
    }
}
