public import XMPPCore
internal import TapRecord

/// Plays a ``ReplayScript``: says what to send when, and compares what comes with the recording.
///
/// Sans-IO: events go in by ``handle(_:client:at:)`` and ``tick(at:)``, with the time in nanoseconds from any beginning; what is
/// to be done comes out by ``next(at:)``. The same events at the same times give the same actions.
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
        /// Its connection takes no more bytes at the moment.
        case stalled
        /// Its connection takes bytes again.
        case writable
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
        /// Another client resumes its session.
        var isSuperseded = false
        /// The divergence from which it follows what does not come, and from which step on.
        var cause: (divergence: Int, step: Int)?
    }

    /// A request of a step, which has been sent.
    private struct Request {
        let at: Int64
        let step: Int
    }

    /// A stanza that was not sent, as others know it.
    private struct Unsent: Hashable {
        let account: String
        let id: String
    }

    /// The script that is played.
    public let script: ReplayScript
    private let options: ReplayOptions
    private var players: [Player]
    /// How many of them are logging in.
    private var connecting = 0
    private var context: Stanza.Context
    private let parser = StanzaParser()
    private let sendings: ReplayScript.Sendings
    private var substitution = ValueSubstitution(.toLive)
    /// Which recorded value is which live value.
    public var bindings: ValueBindings { context.bindings }
    /// The divergences so far, in the order in which they were found; at the end in that of the recording.
    public private(set) var divergences: [Divergence] = []
    /// Why nothing was played; nil if the preparation did not fail.
    public var failure: String? {
        refusals.first.map { "\($0)\(refusals.count > 1 ? " (and \(refusals.count - 1) more)" : "")" }
    }
    /// What was done so far.
    public private(set) var progress = Progress()
    /// Added to each id, so that a server that has seen the recorded ones takes them for new.
    private let suffix: String
    private var cursor = 0
    private var actions: ReplayActions
    /// There is more to do when what is listed has been done.
    private var isPaused = false
    private var now: Int64 = 0
    /// Items that came.
    private var received: UInt64 = 0
    private var began: Int64?
    /// When something was sent or came last.
    private var lastActivity: Int64 = 0
    /// When what is sent next began to wait, or the last of what it waits for came.
    private var waitingSince: Int64?
    /// The longest that it waited for something that came.
    private var longestWait: Int64 = 0
    /// When the server last did something for other copies of the script: it is at work, and what is waited for here may be behind
    /// that. Give it before other calls.
    public var othersServed: Int64 = .min
    /// A server that is at work for others is waited for so many times as long as one that is silent.
    private static let mostWaits: Int64 = 6
    /// When it began to wait until nothing more comes.
    private var quietSince: Int64?
    /// Steps of what has to come before the next step.
    private var gating: Set<Int> = []
    /// Ids of requests whose answers have to come before the next step, with their clients.
    private var settling: [String: Int] = [:]
    /// What went wrong while rosters and subscriptions were built.
    private var refusals: [String] = []
    /// Requests without an answer, by their numbers among the sendings.
    private var requests: [Request?]
    /// When messages and presence were sent that another client is to get, by their numbers among the sendings.
    private var deliveries: [Int64?]
    /// What was not sent, and the divergence from which that follows.
    private var unsent: [Unsent: Int] = [:]
    /// Something cannot come any more.
    private var isAnythingLost = false
    /// Something that had to come did not.
    private var hasGivenUp = false
    /// The number of each step's expectation.
    private var numbers: [Int: Int] = [:]
    private var isFinished = false

    /// - Parameters:
    ///   - script: What to play.
    ///   - accounts: The live bare JID for each recorded one that is played.
    ///   - copy: Added to the rooms that the recorded clients created, so that copies do not meet in them; nil of a single one.
    ///   - rules: What may differ.
    ///   - sendings: Those of the script, options and rules, where several sessions share them.
    ///   - generator: Makes the part of ids that is new.
    public init(
        _ script: ReplayScript,
        accounts: [(recorded: JID, live: JID)],
        copy: Int? = nil,
        rules: NoiseRules = NoiseRules(),
        options: ReplayOptions = ReplayOptions(),
        sendings: ReplayScript.Sendings? = nil,
        using generator: inout some RandomNumberGenerator
    ) {
        self.script = script
        self.options = options
        actions = ReplayActions(writeSize: options.writeSize)
        let sendings = sendings ?? script.sendings(options, rules: rules)
        self.sendings = sendings
        requests = [Request?](repeating: nil, count: sendings.requests.count)
        deliveries = [Int64?](repeating: nil, count: sendings.deliveries.count)
        players = script.clients.map { _ in Player() }
        suffix = "-" + String(UInt32.random(in: 0x1000_0000...UInt32.max, using: &generator), radix: 16)
        let bindings = ValueBindings(ids: sendings.templates.ids, suffix: suffix)
        context = Stanza.Context(bindings: bindings, rules: rules)
        for account in accounts {
            try? context.bindings.bind(account.recorded.bare.description, to: account.live.bare.description, .account)
        }
        for room in copy == nil ? [] : script.createdRooms {
            let live = context.bindings.jid(room.description, .toLive)
            let at = live.firstIndex(of: "@") ?? live.endIndex
            let own = "\(live[..<at])-\(copy ?? 0)\(live[at...])"
            try? context.bindings.bind(room.description, to: own, .account)
        }
        for (index, step) in script.steps.enumerated() {
            switch step {
            case .send: progress.total += 1
            case .expect(let client, let number):
                progress.total += 1
                let item = script.items[number]
                guard let bytes = item.sent, let form = StanzaForm(bytes, parser: parser, root: item.root) else {
                    continue
                }
                let stanza = Stanza(recorded: form, context, tag: .step(index))
                numbers[index] = players[client].expectations.expect(stanza, stanza.lane, window: index)
            case .connect, .prepare, .settle, .close, .end, .drop: break
            }
        }
    }

    /// When ``tick(at:)`` is due at the latest; nil if never.
    public var nextDeadline: Int64? {
        guard !isFinished else { return nil }
        let stallDeadline = actions.stalled.map(\.since).min().map { $0 + options.wait }
        guard !isPaused else { return stallDeadline }
        // What waits for a login or an answer goes on when that has come.
        guard connecting == 0, gating.isEmpty, settling.isEmpty else {
            return [stallDeadline, gateDeadline].compactMap { $0 }.min()
        }
        // The next step has both to pass; where both have, it waits for an event.
        let stepDeadline = [paceDeadline, quietDeadline].compactMap { $0 }.max()
        return [stallDeadline, stepDeadline.flatMap { $0 > now ? $0 : nil }].compactMap { $0 }.min()
    }

    /// The next thing to do; nil when there is nothing until something happens.
    public mutating func next(at now: Int64) -> Action? {
        while true {
            if let action = actions.next() { return action }
            guard isPaused else { return nil }
            self.now = now
            advance()
            guard !actions.isEmpty else { return nil }
        }
    }

    // MARK: What happens

    /// Begins, or goes on because of the time.
    public mutating func tick(at now: Int64) {
        self.now = now
        for (client, since) in actions.stalled where now >= since + options.wait {
            // What is awaited may have been sent into the stalled connection.
            ended(client, "the server read no data for \(LineBuffer.duration(options.wait))", from: gating.min())
            actions.append(.drop(client))
        }
        advance()
    }

    /// Takes note that nothing could be taken for some time, because the program itself had no time: nobody is given up for that.
    ///
    /// - Parameter lag: So many nanoseconds up to now.
    public mutating func excuse(_ lag: Int64, at now: Int64) {
        waitingSince = waitingSince.map { min($0 + lag, now) }
        quietSince = quietSince.map { min($0 + lag, now) }
        lastActivity = min(lastActivity + lag, now)
        actions.excuse(lag, at: now)
    }

    /// Ends before all is played: what differs so far is a divergence, and what has not come is none.
    public mutating func stop() {
        guard !isFinished else { return }
        for client in players.indices {
            let findings = players[client].expectations.finish()
            report(findings.filter { if case .missing = $0 { false } else { true } }, client)
        }
        finish()
    }

    /// Takes what happened to a client.
    public mutating func handle(_ event: Event, client: Int, at now: Int64) {
        self.now = now
        if case .stalled = event { return actions.stall(client, at: now) }
        lastActivity = now
        switch event {
        case .stalled: break
        case .writable: actions.release(client)
        case .bound(let jid):
            connecting -= 1
            players[client].state = .open
            noteLostResumption(client)
            let recorded = script.clients[client].jid
            if recorded.isFull { try? context.bindings.bind(recorded.description, to: jid.description, .resource) }
        case .resumed:
            connecting -= 1
            players[client].state = .open
            players[client].isManaged = true
            players[client].resumptionID = script.clients[client].resumes.flatMap { players[$0].resumptionID }
        case .received(let bytes, let element): received(bytes, element, client)
        case .ended(let reason): ended(client, reason)
        }
        advance()
    }

    /// The server has bound a resource.
    private mutating func noteLostResumption(_ client: Int) {
        guard let earlier = script.clients[client].resumes else { return }
        let hasAsked = players[earlier].isSuperseded
        players[earlier].isSuperseded = false
        players[client].handled = 0
        let reason = hasAsked ? "the server could not resume it" : "the server gave no id for its resumption"
        let message = "the session was not resumed, as it was in the recording: \(reason)"
        let cause = players[earlier].cause?.divergence
        let number = add(Divergence(.behaviour, .session, live: moment(client), message: message), client, cause)
        players[client].cause = (number, 0)
    }

    /// - Parameter step: From which step on things cannot come; nil is what was left to do of the client.
    private mutating func ended(_ client: Int, _ reason: String?, from step: Int? = nil) {
        let isStalled = actions.isStalled(client)
        // What is listed, or waits, was not done: the session ends before it.
        let undone = actions.remove(client)
        let held = undone.flatMap(\.steps).filter { isSending($0, client) && !lacksValue($0) }
        let wasOpen = players[client].state == .open || isStalled || undone.contains { $0.size > 0 }
        if players[client].state == .connecting { connecting -= 1 }
        players[client].state = .over
        progress.sent -= held.count
        settling = settling.filter { $0.value != client }
        // What of the client was still to come, and to be done.
        let left =
            gating.sorted().filter { script.steps[$0].client == client }
            + (cursor..<script.steps.count).filter { script.steps[$0].client == client }
        gating.subtract(left)
        guard wasOpen, !players[client].isSuperseded else { return }
        var reason = reason ?? "the server closed the stream"
        guard script.clients[client].role != .preparation else { return refuse(client, "the session ended: \(reason)") }
        let unsent = held.count + left.count { isSending($0, client) }
        if unsent > 0 { reason += "; \(unsent) \(unsent == 1 ? "stanza" : "stanzas") not sent" }
        let isRecorded = left.contains { if case .end = script.steps[$0] { true } else { false } }
        guard !isRecorded || unsent > 0 || left.contains(where: isMissing) else { return }
        let message = "the session ended\(isRecorded ? " earlier than recorded" : ""): \(reason)"
        let cause = add(
            Divergence(.behaviour, .session, live: moment(client), message: message),
            client,
            players[client].cause?.divergence
        )
        players[client].cause = (cause, players[client].cause?.step ?? step ?? left.first ?? cursor)
        isAnythingLost = true
        for step in held + left {
            if case .send(_, let item) = script.steps[step] { noteUnsent(script.items[item], client, cause) }
        }
        // What cannot come is not waited for.
        gating = gating.filter { lost(at: $0) == nil }
    }

    /// Whether a step sends an item of the client.
    private func isSending(_ step: Int, _ client: Int) -> Bool {
        if case .send(client, _) = script.steps[step] { true } else { false }
    }

    /// Whether a step cannot send its item.
    private func lacksValue(_ step: Int) -> Bool {
        if case .send(_, let item) = script.steps[step] { sendings.sendings[item] == nil } else { false }
    }

    /// A stanza is not sent, and what it would have led to does not come.
    private mutating func noteUnsent(_ item: RecordedItem, _ client: Int, _ cause: Int) {
        isAnythingLost = true
        guard let id = item.id else { return }
        unsent[Unsent(account: script.clients[client].account.normalized.description, id: id)] = cause
    }

    /// The divergence from which it follows that an expected item cannot come; nil if it can.
    private func lost(at step: Int) -> Int? {
        guard isAnythingLost, case .expect(let client, let number) = script.steps[step] else { return nil }
        let item = script.items[number]
        if players[client].state == .over, let cause = players[client].cause, step >= cause.step {
            return cause.divergence
        }
        let sender = item.from.flatMap { JID($0) }
        if let id = item.id {
            for account in [script.clients[client].account, sender?.bare].compactMap({ $0 }) {
                if let cause = unsent[Unsent(account: account.normalized.description, id: id)] { return cause }
            }
        }
        guard let sender, sender.isFull,
            let other = script.clients.lastIndex(where: { $0.jid == sender }), players[other].state == .over,
            let cause = players[other].cause, step >= cause.step
        else { return nil }
        return cause.divergence
    }

    /// Whether a step expects an item that a played client caused, and that has not come.
    private func isMissing(_ step: Int) -> Bool {
        guard case .expect(let client, let item) = script.steps[step], let number = numbers[step] else { return false }
        return players[client].expectations.isWaiting(number) && !script.isOfAbsentPeer(script.items[item])
    }

    /// The preparation has failed.
    private mutating func refuse(_ client: Int, _ reason: String) {
        let account = script.clients[client].account.description
        let live = bindings.live(for: account, .account) ?? account
        refusals.append("\(live): preparation failed: \(reason)")
    }

    // MARK: What comes

    private mutating func received(_ bytes: [UInt8], _ element: Element, _ client: Int) {
        let live = StanzaForm(element)
        // The server sends it again in the session that resumes.
        guard !players[client].isSuperseded else { return }
        if live.kind == .nonza, noteManagement(element, client) { return }
        if live.kind != .nonza, players[client].isManaged { players[client].handled &+= 1 }
        if script.clients[client].role != .recorded {
            let hasSettled = live.id.flatMap { settling.removeValue(forKey: $0) } != nil
            guard !hasSettled, live.type == "error", script.clients[client].role == .preparation else { return }
            let condition = element.child("error", .client)?.firstChild?.name ?? "no condition"
            guard live.id != Preparation.removingID || condition != "item-not-found" else { return }
            let who = live.kind == .presence ? element.attribute("from").map { " to \($0)" } ?? "" : ""
            return refuse(
                client,
                "the server refused a \(live.kind == .presence ? "subscription" : "roster item")\(who) (\(condition))"
            )
        }
        if live.kind == .iq, live.type == "get", element.child("ping", .ping) != nil {
            return send(client, element.answer("result") { _ in })
        }
        guard live.id != ReplayScript.inlineID else { return }
        let trip = noteAnswer(live, client)
        received += 1
        let stanza = Stanza(live: live, context, tag: .live(bytes, number: received, at: now))
        switch players[client].expectations.receive(stanza, stanza.lane, &context) {
        case .matched(let number), .reordered(let number), .late(let number):
            progress.matched += 1
            came(number, client)
            noteDelivery(live)
            if let trip { noteTime(trip, number, stanza, client) }
        case .changed(let number): came(number, client)
        case .unexpected:
            // What has changed has come, too: nothing more is to be waited for.
            let changed = gating.filter { step in
                guard script.steps[step].client == client, let number = numbers[step] else { return false }
                return players[client].expectations.item(number).shape == stanza.shape
            }
            if let step = changed.min() { noteArrival(step) }
            // Whoever asks gets an answer, so that nobody waits for it.
            guard live.kind == .iq, live.type == "get" || live.type == "set" else { return }
            let answer = element.answer("error") {
                $0.element("error", ["type": "cancel"]) { $0.element("service-unavailable", .stanzaErrors) }
            }
            send(client, answer)
        }
    }

    private mutating func noteDelivery(_ live: StanzaForm) {
        guard live.kind == .message || live.kind == .presence, live.type != "error",
            let id = live.id.flatMap({ context.bindings.number(ofLive: $0) }),
            let sent = sendings.deliveries[id].flatMap({ deliveries[$0] })
        else { return }
        progress.latencies["\(live.kind)", default: []].append(now - sent)
    }

    private mutating func came(_ number: Int, _ client: Int) {
        if case .step(let step) = players[client].expectations.item(number).tag { noteArrival(step) }
    }

    /// Something that is waited for has come. The time for the next begins: a server that is still at work is not silent.
    private mutating func noteArrival(_ step: Int) {
        guard gating.remove(step) != nil, let since = waitingSince else { return }
        longestWait = max(longestWait, now - since)
        waitingSince = now
    }

    /// Answers and counts for the stream management (XEP-0198) of the live session.
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
            return script.clients[client].enablesManagement
        default: return false
        }
        return true
    }

    /// - Returns: Of the answer to a request how long it took, in nanoseconds, and the step that sent the request.
    private mutating func noteAnswer(_ live: StanzaForm, _ client: Int) -> (took: Int64, step: Int)? {
        guard live.type == "result" || live.type == "error",
            let id = live.id.flatMap({ context.bindings.number(ofLive: $0) }),
            let number = sendings.requests[.init(client: client, id: id)], let request = requests[number]
        else { return nil }
        requests[number] = nil
        if case .send(_, let item) = script.steps[request.step] {
            progress.latencies[script.items[item].requestKind, default: []].append(now - request.at)
        }
        return (now - request.at, request.step)
    }

    /// Compares the time that an answer took. At any other pace requests queue up as they have not in the recording.
    private mutating func noteTime(_ trip: (took: Int64, step: Int), _ number: Int, _ live: Stanza, _ client: Int) {
        guard case .recorded = options.pace, case .step(let step) = players[client].expectations.item(number).tag
        else { return }
        let took = script.times[step] - script.times[trip.step]
        guard RecordingDifference.isSlower(trip.took, than: took) else { return }
        let message = "\(DivergenceBuilder.seconds(took)) → \(DivergenceBuilder.seconds(trip.took))"
        add(Divergence(.timing, .slower, recorded: shown(step), live: shown(live, client), message: message), client)
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
        defer { actions.flush() }
        while cursor < script.steps.count {
            guard !actions.isFull else {
                isPaused = true
                return
            }
            let step = script.steps[cursor]
            switch step {
            case .send(let client, let item) where waitsForNothing:
                waitingSince = nil
                lastActivity = now
                send(item, client)
            case .expect: if isMissing(cursor), lost(at: cursor) == nil { gating.insert(cursor) }
            case .end(let client):
                if [.open, .connecting].contains(players[client].state) { gating.insert(cursor) }
            case .connect, .send, .prepare, .settle, .close, .drop:
                guard isDue(step) else { return }
                guard refusals.isEmpty || script.clients[step.client].role == .preparation else { return finish() }
                lastActivity = now
                perform(step)
            }
            cursor += 1
        }
        guard actions.isEmpty else {
            isPaused = true
            return
        }
        guard connecting == 0, actions.stalled.isEmpty, isGateOpen(), isQuiet() else { return }
        for client in players.indices { report(players[client].expectations.finish(), client) }
        finish()
    }

    /// Whether an item can be sent without a look at what came before it.
    private var waitsForNothing: Bool {
        guard case .causal = options.pace else { return false }
        return connecting == 0 && gating.isEmpty && settling.isEmpty && refusals.isEmpty
    }

    private mutating func finish() {
        divergences.sort { $0.place < $1.place }
        for index in divergences.indices { divergences[index].followed.sort { $0.place < $1.place } }
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
        for step in gating.sorted() {
            switch script.steps[step] {
            case .expect(let client, _): players[client].expectations.close(step)
            case .end(let client):
                let message = "the server did not end the session, as it did in the recording"
                add(Divergence(.behaviour, .session, live: moment(client), message: message), client)
                perform(.close(client))
            case .connect, .send, .prepare, .settle, .close, .drop: break
            }
        }
        for client in Set(settling.values).sorted() {
            refuse(client, "the server did not answer for \(LineBuffer.duration(options.wait))")
        }
        hasGivenUp = true
        gating = []
        settling = [:]
        waitingSince = nil
        return true
    }

    /// When what has not come is given up; nil if nothing is waited for.
    ///
    /// Once something has been missing, other items than answers are waited for no longer than it takes to be quiet, or twice as
    /// long as anything took that came: a slow server is not quiet so soon, nor is one that serves other copies.
    private var gateDeadline: Int64? {
        guard var since = waitingSince, !gating.isEmpty || !settling.isEmpty else { return nil }
        // What a stalled connection has not taken cannot be answered.
        for stall in actions.stalled { since = max(since, stall.since) }
        let last = min(max(since, othersServed) + options.wait, since + Self.mostWaits * options.wait)
        let isAnswerDue = gating.contains { step in
            if case .expect(_, let item) = script.steps[step] { script.items[item].isAnswer } else { false }
        }
        return isAnswerDue || !settling.isEmpty || !hasGivenUp
            ? last : min(last, max(lastActivity, othersServed) + max(options.quiet, 2 * longestWait))
    }

    /// Until when what nobody expects may still come: a client that is played leaves next, or nothing is left to do.
    private var quietDeadline: Int64? {
        guard gating.isEmpty, settling.isEmpty, !isFinished else { return nil }
        guard cursor < script.steps.count else {
            return actions.stalled.isEmpty && players.contains { $0.state == .open } ? quietEnd : nil
        }
        guard case .close(let client) = script.steps[cursor], players[client].state == .open,
            script.clients[client].role == .recorded
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
            var resuming: (String, UInt32)?
            if let earlier = script.clients[client].resumes, let id = players[earlier].resumptionID {
                players[earlier].isSuperseded = true
                players[client].handled = players[earlier].handled
                resuming = (id, players[client].handled)
            }
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
            send(client, context.bindings.substituted(script.stanzas[stanza], .toLive, rules: context.rules))
        case .settle(let client):
            // The server answers when it has handled what came before.
            let id = "settled-\(cursor)\(suffix)"
            settling[id] = client
            send(
                client,
                XMLWriter.bytes { $0.element("iq", ["type": "get", "id": id]) { $0.element("query", .roster) } }
            )
        case .expect, .end: break
        }
    }

    // MARK: Sending

    private mutating func send(_ client: Int, _ bytes: [UInt8]) { actions.append(.send(client, bytes)) }

    /// Sends an item of the step at the cursor.
    private mutating func send(_ number: Int, _ client: Int) {
        guard players[client].state == .open else { return }
        guard let sending = sendings.sendings[number] else { return reportLack(script.items[number], client) }
        progress.sent += 1
        if let id = sending.id { context.bindings.standIn(for: Int(id)) }
        if let request = sending.request {
            requests[Int(request)] = Request(at: now, step: cursor)
        } else if let delivery = sending.delivery {
            deliveries[Int(delivery)] = now
        }
        actions.beginItem(cursor, of: client)
        substitution.fill(sendings.templates, Int(sending.template), from: context.bindings, into: &actions.gathered)
        actions.endItem()
    }

    /// Reports that an item lacks a value, if that is why it is not sent.
    private mutating func reportLack(_ item: RecordedItem, _ client: Int) {
        guard item.atServer(withoutEdits: options.withoutEdits) != nil else { return }
        let missing = item.placeholders.first { options.values[$0] == nil }
        let words = "not sent: the recording lacks " + (missing.map { "the value of \($0)" } ?? "a value")
        let divergence = Divergence(.redacted, .undecided, recorded: shown(cursor), message: words)
        noteUnsent(item, client, add(divergence, client))
    }

    // MARK: Divergences

    /// Adds a divergence; one that follows from another to that one.
    ///
    /// - Returns: The number of the one from which others follow, too.
    @discardableResult
    private mutating func add(_ divergence: Divergence, _ client: Int, _ cause: Int? = nil) -> Int {
        var divergence = divergence
        divergence.client = client
        guard let cause else {
            divergences.append(divergence)
            return divergences.count - 1
        }
        if divergences[cause].divergenceClass == .redacted { divergence.divergenceClass = .redacted }
        divergences[cause].followed.append(divergence)
        return cause
    }

    private mutating func report(_ findings: [ExpectationSet<Stanza>.Finding], _ client: Int) {
        /// Requests whose answer was another one, by live id.
        var changed: [String: Int] = [:]
        for finding in findings {
            switch finding {
            case .missing(let recorded): diverge(.missing, client, recorded, nil)
            case .unexpected(let live): diverge(.unexpected, client, nil, live, live.form.id.flatMap { changed[$0] })
            case .changed(let recorded, let live):
                let number = diverge(.changed, client, recorded, live)
                if case .answer = live.lane, let id = live.form.id { changed[id] = number }
            case .reordered(let recorded, let live): diverge(.reordered, client, recorded, live)
            case .late(let recorded, let live): diverge(.late, client, recorded, live)
            }
        }
    }

    @discardableResult
    private mutating func diverge(
        _ code: Divergence.Code,
        _ client: Int,
        _ recorded: Stanza?,
        _ live: Stanza?,
        _ cause: Int? = nil
    ) -> Int {
        var divergence = Divergence(.behaviour, code)
        if code == .changed, let recorded, let live {
            divergence.differences = StanzaComparison.compare(
                recorded: recorded.form,
                live: live.form,
                bindings: &context.bindings,
                rules: context.rules
            )
        }
        if let live {
            divergence.live = shown(live, client)
            if code == .unexpected, case .answer = live.lane, let id = live.form.id {
                let isKnown = bindings.recorded(for: id, .stanzaID) != nil
                divergence.message = isKnown ? "a second answer to the request" : "an answer without a request"
            }
        }
        // Another kind of answer is another behaviour; other contents may be other data.
        let isNoAnswer =
            code == .missing && recorded.map { $0.form.type == "result" || $0.form.type == "error" } == true
        if !isNoAnswer, recorded == nil || live == nil || recorded?.form.type == live?.form.type {
            divergence.classify(recorded?.form ?? live?.form)
        }
        if case .step(let step)? = recorded?.tag, case .expect(_, let item) = script.steps[step] {
            divergence.recorded = shown(step)
            // What the server had kept when the recording began is not there again.
            if code == .missing, let form = recorded?.form, Divergence.isDelayed(form), !script.sends(form.id) {
                divergence.divergenceClass = .state
            }
            if script.isOfAbsentPeer(script.items[item]) { divergence.divergenceClass = .peerAbsent }
            if code == .missing, let cause = lost(at: step) { return add(divergence, client, cause) }
        }
        // All of a session that was not resumed may be other.
        let isOfAnother = players[client].cause.map { $0.step == 0 } == true
        return add(divergence, client, cause ?? (isOfAnother ? players[client].cause?.divergence : nil))
    }

    private func shown(_ live: Stanza, _ client: Int) -> Divergence.Item? {
        guard case .live(let bytes, let number, let at) = live.tag else { return nil }
        return Divergence.Item(
            session: script.clients[client].session,
            sequence: number,
            at: at - (began ?? at),
            direction: .recv,
            text: String(decoding: bytes, as: UTF8.self)
        )
    }

    /// Now, in a client's session.
    private func moment(_ client: Int) -> Divergence.Item {
        Divergence.Item(
            session: script.clients[client].session,
            sequence: received + 1,
            at: now - (began ?? now),
            direction: nil,
            text: ""
        )
    }

    private func shown(_ step: Int) -> Divergence.Item? {
        switch script.steps[step] {
        case .send(let client, let number), .expect(let client, let number):
            let item = script.items[number]
            return Divergence.Item(
                session: script.clients[client].session,
                sequence: item.sequence,
                at: script.times[step],
                direction: item.direction,
                text: String(decoding: item.sent ?? item.seen ?? [], as: UTF8.self)
            )
        case .connect, .prepare, .settle, .close, .end, .drop: return nil
        }
    }
}

extension Divergence {
    /// Where in the recording it is, or behind all of it.
    fileprivate var place: (UInt64, UInt64) { (recorded?.sequence ?? .max, live?.sequence ?? 0) }
}
