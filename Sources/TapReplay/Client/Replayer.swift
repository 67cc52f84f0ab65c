public import XMPPCore
internal import TapRecord

/// Plays a ``ReplayScript``: says what to send when, and compares what comes with the recording.
///
/// Sans-IO: events go in by ``handle(_:client:at:)`` and ``tick(at:)``, with the time in nanoseconds from any beginning; what is
/// to be done comes out by ``next()``. The same events at the same times give the same actions.
public struct Replayer {
    /// Something that happened to one of the clients.
    public enum Event {
        /// It is logged in, with a new session.
        case bound(JID)
        /// It is logged in, with its earlier session.
        case resumed
        /// An item has come behind its login.
        case received([UInt8], Element)
        /// Its session is over; why, if it was not to be.
        case ended(String?)
    }

    /// What is to be done.
    public enum Action {
        /// Log a client in: with the id of a session to resume and the number of its stanzas that the client has got.
        case connect(Int, resuming: (id: String, handled: UInt32)?)
        /// Send bytes.
        case send(Int, [UInt8])
        /// Close the stream.
        case close(Int)
        /// Cut the connection.
        case drop(Int)
        /// The replay is over.
        case finish
    }

    /// What a stanza stands for: a step, or what came of it.
    private enum Tag {
        case step(Int)
        case live([UInt8], number: UInt64, at: Int64)
    }
    private typealias Stanza = ComparedStanza<Tag>

    /// A client that is played.
    private struct Player {
        enum State { case idle, connecting, open, closing, over }

        var state = State.idle
        var expectations = ExpectationSet<Stanza>()
        /// The id of its stream management, once it is enabled.
        var resumptionID: String?
        var isManaged = false
        /// Stanzas that came since stream management was enabled.
        var handled: UInt32 = 0
        /// Requests without an answer, by live id: what was asked, and when.
        var requests: [String: (kind: String, at: Int64)] = [:]
    }

    /// The script that is played.
    public let script: ReplayScript
    private let options: ReplayOptions
    private var players: [Player]
    /// How many of them are logging in.
    private var connecting = 0
    private var context: Stanza.Context
    private let parser = StanzaParser()
    /// Which recorded value is which live value.
    public var bindings: ValueBindings { context.bindings }
    /// The divergences so far, in the order in which they were found.
    public private(set) var divergences: [Divergence] = []
    /// What was done so far.
    public private(set) var progress = Progress()
    /// Added to each id, so that a server that has seen the recorded ones takes them for new.
    private let suffix: String
    private var cursor = 0
    private var actions: [Action] = []
    private var firstAction = 0
    /// There is more to do when what is listed has been done.
    private var isPaused = false
    /// Actions that are listed at most before they are done.
    private static let mostActions = 256
    private var now: Int64 = 0
    /// Items that came.
    private var received: UInt64 = 0
    private var began: Int64?
    /// When something was sent or came last.
    private var lastActivity: Int64 = 0
    /// When what is sent next began to wait.
    private var waitingSince: Int64?
    /// When it began to wait until nothing more comes.
    private var quietSince: Int64?
    /// Steps of what has to come before the next step.
    private var gating: Set<Int> = []
    /// Ids of requests whose answers have to come before the next step.
    private var settling: Set<String> = []
    /// Something that had to come did not.
    private var hasGivenUp = false
    /// The number of each step's expectation.
    private var numbers: [Int: Int] = [:]
    private var isFinished = false

    /// Figures of a replay.
    public struct Progress: Sendable, Hashable {
        /// Items of the script in all: sent and expected.
        public var total = 0
        /// Items that were sent.
        public var sent = 0
        /// Items that came as they were recorded.
        public var matched = 0
        /// Nanoseconds that answers took, by the kind of the request.
        public var latencies: [String: [Int64]] = [:]

        /// Of one that has not begun.
        public init() {}
    }

    /// - Parameters:
    ///   - script: What to play.
    ///   - accounts: The live bare JID for each recorded one that is played.
    ///   - rules: What may differ.
    ///   - generator: Makes the part of ids that is new.
    public init(
        _ script: ReplayScript,
        accounts: [(recorded: JID, live: JID)],
        rules: NoiseRules = NoiseRules(),
        options: ReplayOptions = ReplayOptions(),
        using generator: inout some RandomNumberGenerator
    ) {
        self.script = script
        self.options = options
        context = Stanza.Context(rules: rules)
        players = script.clients.map { _ in Player() }
        suffix = "-" + String(UInt32.random(in: 0x1000_0000...UInt32.max, using: &generator), radix: 16)
        for account in accounts {
            try? context.bindings.bind(account.recorded.bare.description, to: account.live.bare.description, .account)
        }
        for (index, step) in script.steps.enumerated() {
            switch step {
            case .send: progress.total += 1
            case .expect(let client, let item):
                progress.total += 1
                guard let bytes = item.sent, let form = StanzaForm(bytes, parser: parser, root: item.root) else {
                    continue
                }
                let stanza = Stanza(recorded: form, context, tag: .step(index))
                numbers[index] = players[client].expectations.expect(stanza, stanza.lane, window: index)
            case .connect, .prepare, .settle, .close, .drop: break
            }
        }
    }

    /// When ``tick(at:)`` is due at the latest; nil if never.
    public var nextDeadline: Int64? {
        guard !isFinished else { return nil }
        // What waits for a login or an answer goes on when that has come.
        guard connecting == 0, gating.isEmpty, settling.isEmpty else { return gateDeadline }
        return [paceDeadline, quietDeadline].compactMap { $0 }.min()
    }

    /// The next thing to do; nil when there is nothing until something happens.
    public mutating func next() -> Action? {
        if firstAction == actions.count {
            actions.removeAll(keepingCapacity: true)
            firstAction = 0
            if isPaused { advance() }
            guard !actions.isEmpty else { return nil }
        }
        defer { firstAction += 1 }
        return actions[firstAction]
    }

    // MARK: What happens

    /// Begins, or goes on because of the time.
    public mutating func tick(at now: Int64) {
        self.now = now
        advance()
    }

    /// Takes what happened to a client.
    public mutating func handle(_ event: Event, client: Int, at now: Int64) {
        self.now = now
        lastActivity = now
        switch event {
        case .bound(let jid):
            connecting -= 1
            players[client].state = .open
            let recorded = script.clients[client].jid
            if recorded.isFull { try? context.bindings.bind(recorded.description, to: jid.description, .resource) }
        case .resumed:
            connecting -= 1
            players[client].state = .open
            inherit(client)
        case .received(let bytes, let element): received(bytes, element, client)
        case .ended(let reason): ended(client, reason)
        }
        advance()
    }

    /// The counts of stream management go on in the session that resumes.
    private mutating func inherit(_ client: Int) {
        guard let earlier = script.clients[client].resumes else { return }
        players[client].isManaged = true
        players[client].resumptionID = players[earlier].resumptionID
        players[client].handled = players[earlier].handled
    }

    private mutating func ended(_ client: Int, _ reason: String?) {
        let wasOpen = players[client].state == .open
        if players[client].state == .connecting { connecting -= 1 }
        players[client].state = .over
        guard wasOpen, !script.clients[client].isEndedByServer else { return }
        let end = Divergence.Item(
            session: script.clients[client].session,
            sequence: received + 1,
            at: now - (began ?? now),
            direction: nil,
            text: ""
        )
        let message = "the session ended: \(reason ?? "the server closed the stream")"
        divergences.append(Divergence(.behaviour, .session, live: end, message: message))
    }

    // MARK: What comes

    private mutating func received(_ bytes: [UInt8], _ element: Element, _ client: Int) {
        let live = StanzaForm(element)
        if live.kind == .nonza, noteManagement(element, client) { return }
        if live.kind != .nonza, players[client].isManaged { players[client].handled &+= 1 }
        if script.clients[client].isPuppet {
            if let id = live.id { settling.remove(id) }
            return
        }
        if live.kind == .iq, live.type == "get", element.child("ping", .ping) != nil {
            return send(client, Self.answer(to: element, "result") { _ in })
        }
        noteAnswer(live, client)
        received += 1
        let stanza = Stanza(live: live, context, tag: .live(bytes, number: received, at: now))
        switch players[client].expectations.receive(stanza, stanza.lane, &context) {
        case .matched(let number), .reordered(let number), .late(let number):
            progress.matched += 1
            came(number, client)
        case .changed(let number): came(number, client)
        case .unexpected:
            // What has changed has come, too: nothing more is to be waited for.
            let changed = gating.filter { step in
                guard script.steps[step].client == client, let number = numbers[step] else { return false }
                return players[client].expectations.item(number).shape == stanza.shape
            }
            if let step = changed.min() { gating.remove(step) }
            // Whoever asks gets an answer, so that nobody waits for it.
            guard live.kind == .iq, live.type == "get" || live.type == "set" else { return }
            let answer = Self.answer(to: element, "error") {
                $0.element("error", ["type": "cancel"]) { $0.element("service-unavailable", .stanzaErrors) }
            }
            send(client, answer)
        }
    }

    private mutating func came(_ number: Int, _ client: Int) {
        if case .step(let step) = players[client].expectations.item(number).tag { gating.remove(step) }
    }

    /// Stream management of its own (XEP-0198).
    ///
    /// - Returns: Whether the element is no part of the recording.
    private mutating func noteManagement(_ element: Element, _ client: Int) -> Bool {
        guard element.namespace == .streamManagement || element.namespace == .streamManagement2 else { return false }
        switch element.name {
        case "r":
            let (handled, namespace) = (players[client].handled, element.namespace)
            send(client, XMLWriter.bytes { $0.element("a", namespace, ["h": String(handled)]) })
        case "a": break
        case "enabled":
            players[client].isManaged = true
            players[client].resumptionID = element.attribute("id")
            return false
        default: return false
        }
        return true
    }

    private mutating func noteAnswer(_ live: StanzaForm, _ client: Int) {
        guard live.type == "result" || live.type == "error", let id = live.id,
            let request = players[client].requests.removeValue(forKey: id)
        else { return }
        progress.latencies[request.kind, default: []].append(now - request.at)
    }

    private static func answer(
        to request: Element,
        _ type: String,
        _ content: (inout XMLWriter) -> Void
    ) -> [UInt8] {
        XMLWriter.bytes {
            $0.element(
                "iq",
                ["type": type, "id": request.attribute("id"), "to": request.attribute("from")],
                content: content
            )
        }
    }

    // MARK: The steps

    /// Goes on as far as nothing has to be waited for.
    private mutating func advance() {
        guard !isFinished else { return }
        if began == nil {
            began = now
            lastActivity = now
        }
        isPaused = false
        while cursor < script.steps.count {
            guard actions.count < Self.mostActions else {
                isPaused = true
                return
            }
            let step = script.steps[cursor]
            if case .expect(let client, let item) = step {
                if let number = numbers[cursor], players[client].expectations.isWaiting(number),
                    !script.isOfAbsentPeer(item)
                {
                    gating.insert(cursor)
                }
            } else {
                guard isDue(step) else { return }
                lastActivity = now
                perform(step)
            }
            cursor += 1
        }
        guard isGateOpen(), isQuiet() else { return }
        for client in players.indices { report(players[client].expectations.finish(), client) }
        divergences.sort { $0.place < $1.place }
        isFinished = true
        actions.append(.finish)
    }

    /// Whether nothing that comes before a step has to be waited for.
    private mutating func isDue(_ step: ReplayScript.Step) -> Bool {
        guard connecting == 0 else { return false }
        if case .connect(let client) = step {
            // The server may not know yet that the earlier connection is over.
            let account = script.clients[client].account
            guard
                !script.clients.indices.contains(where: {
                    players[$0].state == .closing && script.clients[$0].account == account
                })
            else { return false }
        }
        guard isGateOpen() else { return false }
        return isQuiet() && paceDeadline.map { now >= $0 } ?? true
    }

    /// Whether all has come that came before in the recording, or is given up.
    private mutating func isGateOpen() -> Bool {
        guard !gating.isEmpty || !settling.isEmpty else {
            waitingSince = nil
            return true
        }
        if waitingSince == nil { waitingSince = now }
        guard let deadline = gateDeadline, now >= deadline else { return false }
        for step in gating {
            guard case .expect(let client, _) = script.steps[step] else { continue }
            players[client].expectations.close(step)
        }
        hasGivenUp = true
        gating = []
        settling = []
        waitingSince = nil
        return true
    }

    /// When what has not come is given up; nil if nothing is waited for.
    ///
    /// Once something has been missing, other items than answers are waited for no longer than it takes to be quiet.
    private var gateDeadline: Int64? {
        guard let waitingSince, !gating.isEmpty || !settling.isEmpty else { return nil }
        let last = waitingSince + options.wait
        let isAnswerDue = gating.contains { step in
            script.steps[step].isAnswer
        }
        return isAnswerDue || !settling.isEmpty || !hasGivenUp ? last : min(last, lastActivity + options.quiet)
    }

    /// Until when what nobody expects may still come: a client that is played leaves next, or nothing is left to do.
    private var quietDeadline: Int64? {
        guard gating.isEmpty, settling.isEmpty, !isFinished else { return nil }
        guard cursor < script.steps.count else {
            return players.contains { $0.state == .open } ? quietEnd : nil
        }
        guard case .close(let client) = script.steps[cursor], players[client].state == .open,
            !script.clients[client].isPuppet
        else { return nil }
        return quietEnd
    }

    /// A server that is never quiet is not waited for without end.
    private var quietEnd: Int64 { min(lastActivity + options.quiet, (quietSince ?? now) + options.wait) }

    private mutating func isQuiet() -> Bool {
        guard let deadline = quietDeadline else { return true }
        if quietSince == nil { quietSince = now }
        guard now >= deadline else { return false }
        quietSince = nil
        return true
    }

    /// When the next step was recorded, at the pace of the replay.
    private var paceDeadline: Int64? {
        guard case .recorded(let speed) = options.pace, let began, cursor < script.times.count else { return nil }
        // At most some days, however slow the pace.
        return began + Int64(min(Double(script.times[cursor]) / speed, 1e15))
    }

    private mutating func perform(_ step: ReplayScript.Step) {
        switch step {
        case .connect(let client):
            players[client].state = .connecting
            connecting += 1
            let earlier = script.clients[client].resumes.map { players[$0] }
            let resuming = earlier.flatMap { player in player.resumptionID.map { ($0, player.handled) } }
            actions.append(.connect(client, resuming: resuming))
        case .send(let client, let item): send(item, client)
        case .close(let client):
            guard players[client].state == .open else { return }
            players[client].state = .closing
            actions.append(.close(client))
        case .drop(let client):
            guard players[client].state == .open else { return }
            players[client].state = .over
            actions.append(.drop(client))
        case .prepare(let client, let stanza):
            send(client, context.bindings.substituted(stanza, .toLive, rules: context.rules))
        case .settle(let client):
            // The server answers when it has handled what came before.
            let id = "settled-\(cursor)\(suffix)"
            settling.insert(id)
            send(
                client,
                XMLWriter.bytes { $0.element("iq", ["type": "get", "id": id]) { $0.element("query", .roster) } }
            )
        case .expect: break
        }
    }

    // MARK: Sending

    private mutating func send(_ client: Int, _ bytes: [UInt8]) { actions.append(.send(client, bytes)) }

    private mutating func send(_ item: RecordedItem, _ client: Int) {
        guard players[client].state == .open, var bytes = item.atServer(withoutEdits: options.withoutEdits) else {
            return
        }
        for placeholder in item.placeholders {
            guard let value = options.values[placeholder] else {
                let words = "not sent: the recording lacks the value; give it by --value"
                return divergences.append(Divergence(.redacted, .undecided, recorded: shown(cursor), message: words))
            }
            var xml = XMLWriter()
            xml.start("value")
            xml.text(value)
            let written = xml.take().dropFirst("<value>".utf8.count)
            bytes = bytes.replacing(Array(placeholder.utf8), with: written)
        }
        progress.sent += 1
        if let id = item.id, !item.isAnswer, bindings.live(for: id, .stanzaID) == nil {
            try? context.bindings.bind(id, to: id + suffix, .stanzaID)
        }
        if item.kind == .iq, !item.isAnswer, let id = item.id, let live = bindings.live(for: id, .stanzaID) {
            players[client].requests[live] = ("iq \(item.payload ?? "")", now)
        }
        send(client, context.bindings.substituted(bytes, .toLive, rules: context.rules))
    }

    // MARK: Divergences

    private mutating func report(_ findings: [ExpectationSet<Stanza>.Finding], _ client: Int) {
        for finding in findings {
            switch finding {
            case .missing(let recorded): diverge(.missing, client, recorded, nil)
            case .unexpected(let live): diverge(.unexpected, client, nil, live)
            case .changed(let recorded, let live): diverge(.changed, client, recorded, live)
            case .reordered(let recorded, let live): diverge(.reordered, client, recorded, live)
            case .late(let recorded, let live): diverge(.late, client, recorded, live)
            }
        }
    }

    private mutating func diverge(_ code: Divergence.Code, _ client: Int, _ recorded: Stanza?, _ live: Stanza?) {
        var divergence = Divergence(.behaviour, code)
        if code == .changed, let recorded, let live {
            divergence.differences = StanzaComparison.compare(
                recorded: recorded.form,
                live: live.form,
                bindings: &context.bindings,
                rules: context.rules
            )
        }
        if case .live(let bytes, let number, let at)? = live?.tag {
            divergence.live = Divergence.Item(
                session: script.clients[client].session,
                sequence: number,
                at: at - (began ?? at),
                direction: .recv,
                text: String(decoding: bytes, as: UTF8.self)
            )
        }
        // Another kind of answer is another behaviour; other contents may be other data.
        let isNoAnswer =
            code == .missing && recorded.map { $0.form.type == "result" || $0.form.type == "error" } == true
        if !isNoAnswer, recorded == nil || live == nil || recorded?.form.type == live?.form.type {
            divergence.classify(recorded?.form ?? live?.form)
        }
        if case .step(let step)? = recorded?.tag, case .expect(_, let item) = script.steps[step] {
            divergence.recorded = shown(step)
            if script.isOfAbsentPeer(item) { divergence.divergenceClass = .peerAbsent }
        }
        divergences.append(divergence)
    }

    private func shown(_ step: Int) -> Divergence.Item? {
        switch script.steps[step] {
        case .send(let client, let item), .expect(let client, let item):
            Divergence.Item(
                session: script.clients[client].session,
                sequence: item.sequence,
                at: script.times[step],
                direction: item.direction,
                text: String(decoding: item.sent ?? item.seen ?? [], as: UTF8.self)
            )
        case .connect, .prepare, .settle, .close, .drop: nil
        }
    }
}

extension RecordedItem {
    /// Whether it answers a request.
    var isAnswer: Bool { kind == .iq && (type == "result" || type == "error") }
}

extension ReplayScript.Step {
    /// Whether an answer is expected.
    fileprivate var isAnswer: Bool {
        guard case .expect(_, let item) = self else { return false }
        return item.isAnswer
    }
}

extension Divergence {
    /// Where in the recording it is, or behind all of it.
    fileprivate var place: (UInt64, UInt64) { (recorded?.sequence ?? .max, live?.sequence ?? 0) }
}
