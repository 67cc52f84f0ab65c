internal import TapRecord
public import XMPPCore

/// Plays the server's side of a recorded conversation to a client that has logged in.
///
/// Requests are answered as the recorded ones were that they match, with their id; what the server sent unasked comes when the
/// client has sent what came before it in the recording, or has been quiet for a while. Pings and stream management are live.
///
/// Sans-IO: items go in with the time, in nanoseconds of any clock that does not go back; ``next()`` gives what is to be done,
/// until there is nothing; call ``tick(at:)`` at ``deadline``.
public struct ServedSession {
    /// How a conversation is served.
    public struct Settings: Sendable {
        /// When items are sent, after what they depend on; default at once.
        public var pace = ReplayOptions.Pace.causal
        /// Write items in the pieces in which they were recorded. Default no.
        public var keepsChunks = false
        /// Nanoseconds without anything from the client after which unasked items no longer wait. Default 2 s.
        public var patience: Int64 = 2_000_000_000
        /// Nanoseconds between two pieces of an item, so that the client reads them apart. Default 20 ms.
        public var chunkGap: Int64 = 20_000_000

        /// The defaults.
        public init() {}
    }

    /// What is to be done.
    public enum Event: Sendable {
        /// Send these bytes to the client, apart from those before and behind.
        case send([UInt8])
        /// The recording has no answer to a request: ``ServedSession/answer(_:with:at:)`` it now, or later behind
        /// ``ServedSession/await(_:)``.
        case ask(Element)
        /// The client did something else than in the recording; no secret stands in it.
        case report(Divergence)
        /// Close the stream, as the server did.
        case close
        /// End the stream: the client asks faster than it is answered.
        case overflow
    }

    /// What waits to be sent.
    private struct Waiting {
        enum Content {
            case send([UInt8])
            /// The answer to a request with this id, which is not there yet.
            case answer(String?)
            case close
        }

        /// When it is sent.
        var due: Int64
        var content: Content
        /// The stanza of which it is all, or the first piece.
        var stanza: [UInt8]?
        /// It is sent directly behind what was sent before it: nothing comes between the pieces of an item.
        var isBound = false
    }

    /// A stanza that the client sent in the recording.
    private struct Expected {
        let item: Int
        let form: StanzaForm
        let isRequest: Bool
        /// The item that answers it.
        var answer: Int?
        /// Nothing waits for it any more.
        var isSettled: Bool
        var isMatched = false
    }

    /// What the server sent unasked.
    private struct Push {
        let item: Int
        /// How many of the client's stanzas came before it.
        let after: Int
    }

    /// Answers that may wait beyond as many items as the recording has.
    private static let mostRepeated = 1024

    private let items: [RecordedItem]
    private let client: JID
    private let session: UInt64
    private let settings: Settings
    private let rules: NoiseRules
    private let redactor = ReportRedactor()
    /// The addresses alone.
    private let addresses: ValueBindings
    private var bindings: ValueBindings
    private var expected: [Expected] = []
    /// How many at the beginning of ``expected`` are settled.
    private var settled = 0
    private var pushes: ArraySlice<Push> = []
    /// What waits for its time or its answer, in the order of sending.
    private var waiting: ArraySlice<Waiting> = []
    private var events: ArraySlice<Event> = []
    /// The last of the client's stanzas that was recorded, and the last item sent: when they were in the recording, and are now.
    private var heard: (recorded: Int64, live: Int64)
    private var sent: (recorded: Int64, live: Int64)
    private var lastHeard: Int64
    private var now: Int64
    /// The client's stanzas since it enabled stream management; nil before.
    private var handled: UInt32?
    /// The id by which the client may resume the session.
    private let resumptionID: String?
    /// The stanzas that were sent since it enabled that, and that it has not acknowledged; nil before.
    private var unacknowledged: ArraySlice<[UInt8]>?
    /// How many it has acknowledged.
    private var acknowledged: UInt32 = 0
    private var received: UInt64 = 0

    /// A session whose client has bound a resource.
    ///
    /// - Parameters:
    ///   - live: The client's full JID.
    ///   - resumptionID: By what the client may resume the session; nil is not at all.
    ///   - parser: For the recorded items.
    public init(
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
            // The first bindings cannot collide.
            try? bindings.bind(jid.bare.description, to: live.bare.description, .account)
            try? bindings.bind(jid.description, to: live.description, .resource)
        }
        addresses = bindings
        self.bindings = bindings
        lastHeard = now
        self.now = now
        heard = (conversation.ready, now)
        sent = heard
        read(parser, endsAtServer: conversation.ending == .server)
        advance()
    }

    /// An item without the prefixes that the header of the recorded stream declared: the header here does not.
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

    /// Sorts the recorded items by what they are here.
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

    // MARK: What happens

    /// The next thing to do; nil when there is nothing until something happens.
    public mutating func next() -> Event? { events.popFirst() }

    /// When ``tick(at:)`` is due; nil while nothing waits for a time.
    public var deadline: Int64? {
        if let first = waiting.first {
            if case .answer = first.content { return nil }
            return first.due
        }
        return pushes.isEmpty ? nil : lastHeard &+ settings.patience
    }

    /// The ``deadline`` is there.
    public mutating func tick(at now: Int64) {
        self.now = max(self.now, now)
        if waiting.isEmpty, let push = pushes.first, self.now >= lastHeard &+ settings.patience {
            giveUp(before: push.after)
            lastHeard = self.now
        }
        advance()
    }

    /// The client has sent an item.
    public mutating func receive(_ element: Element, at now: Int64) {
        self.now = max(self.now, now)
        lastHeard = self.now
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

    /// A request that ``Event/ask(_:)`` has given is answered later; recorded answers to what follows wait for that.
    public mutating func await(_ request: Element) {
        let place = waiting.prefix { $0.isBound || $0.due <= now }.count
        waiting.insert(
            Waiting(due: now, content: .answer(request.attribute("id"))),
            at: waiting.startIndex + place
        )
    }

    /// The answer to a request that ``Event/ask(_:)`` has given.
    public mutating func answer(_ request: Element, with bytes: [UInt8], at now: Int64) {
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

    /// The client is gone: reports what it did not send.
    public mutating func end() {
        giveUp(before: expected.count)
        (pushes, waiting) = ([], [])
    }

    // MARK: Resumption

    /// Whether the client has enabled resumption.
    public var isResumable: Bool { unacknowledged != nil }

    /// The connection is lost; ``resume(handled:xmlns:at:)`` may follow. Nothing is due until then.
    public mutating func suspend() {
        // The rest of an item cannot follow on another connection: all of it is sent again.
        let rest = waiting.prefix(while: \.isBound)
        for stanza in rest.compactMap(\.stanza) { unacknowledged?.append(stanza) }
        waiting = waiting.dropFirst(rest.count)
        events = []
    }

    /// The client has another connection, and has got so many stanzas.
    ///
    /// - Parameter xmlns: The namespace of its request.
    /// - Returns: The answer, which goes before all else; nil if the session does not go on, because the client counts what was not
    ///   sent.
    public mutating func resume(handled count: UInt32, xmlns: String, at now: Int64) -> [UInt8]? {
        guard let resumptionID, acknowledge(count) else { return nil }
        self.now = max(self.now, now)
        lastHeard = self.now
        let own = handled ?? 0
        for stanza in unacknowledged ?? [] { events.append(.send(stanza)) }
        advance()
        return XMLWriter.bytes { $0.element("resumed", xmlns: xmlns, ["previd": resumptionID, "h": "\(own)"]) }
    }

    /// Enables stream management, as the client asks by its `<enable/>`.
    ///
    /// - Returns: The answer.
    public mutating func enable(_ request: Element) -> [UInt8] {
        handled = 0
        let resumes = ["true", "1"].contains(request.attribute("resume")) && resumptionID != nil
        if resumes { (unacknowledged, acknowledged) = ([], 0) }
        let attributes: KeyValuePairs<String, String?> = [
            "id": resumes ? resumptionID : nil, "resume": resumes ? "true" : nil,
        ]
        return XMLWriter.bytes { $0.element("enabled", xmlns: request.namespaceURI, attributes) }
    }

    /// - Returns: False if so many were not sent.
    private mutating func acknowledge(_ count: UInt32) -> Bool {
        let number = Int(count &- acknowledged)
        guard let sent = unacknowledged, number <= sent.count else { return false }
        unacknowledged = sent.dropFirst(number)
        acknowledged = count
        return true
    }

    private mutating func sending(_ stanza: [UInt8]?) {
        guard let stanza, let count = unacknowledged?.count else { return }
        // A client that never acknowledges cannot resume when so much waits.
        if count < items.count + Self.mostRepeated { unacknowledged?.append(stanza) } else { unacknowledged = nil }
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

    /// What is live waits for nothing but the last piece of an item that is being sent.
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
        guard waiting.count < items.count + Self.mostRepeated else { return events.append(.overflow) }
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

    /// The recorded stanzas to compare with, those that have not come first.
    private func candidates(_ live: StanzaForm) -> [Int] {
        let open = expected.indices.filter { !expected[$0].isMatched && expected[$0].form.kind == live.kind }
        guard live.kind == .iq else { return open }
        return open + expected.indices.filter { expected[$0].isMatched && expected[$0].isRequest }
    }

    /// The recorded stanza that means the same. What it binds holds for the rest of the session, unless it has come before or
    /// stands against what is bound.
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

    /// What the stanza that is being answered binds.
    private var answering = ValueBindings()

    /// The recorded stanza of the same purpose.
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
        heard = (items[expected[index].item].at, now)
        guard let answer = expected[index].answer else { return }
        schedule(answer, behind: heard, with: answering)
    }

    private mutating func giveUp(before count: Int) {
        for index in settled..<max(settled, count) where !expected[index].isSettled {
            expected[index].isSettled = true
            report(.missing, expected[index])
        }
    }

    // MARK: The server's items

    /// Sends what is due, and lets go what no longer waits for the client.
    private mutating func advance() {
        while settled < expected.count, expected[settled].isSettled { settled += 1 }
        while let push = pushes.first, push.after <= settled {
            pushes.removeFirst()
            schedule(push.item, behind: sent.recorded > heard.recorded ? sent : heard, with: bindings)
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

    /// Puts an item behind what waits already, as long after what it follows as in the recording.
    private mutating func schedule(
        _ index: Int,
        behind before: (recorded: Int64, live: Int64),
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

    /// Where the recorded boundaries lie in an item whose values have changed: before the first change as they were, behind the
    /// last one as far from the end.
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
