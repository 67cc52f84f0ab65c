package import XMPPCore
internal import TapRecord

/// Plays a ``ReplayScript``: decides what to send when, and compares received items with the recording.
///
/// Sans-IO: events are passed to ``handle(_:client:at:)`` and ``tick(at:)`` with the time in nanoseconds since an
/// arbitrary start; ``next(at:)`` returns the actions. The same events at the same times give the same actions.
package struct Replayer {
    private typealias Stanza = ComparedStanza<ReplayTag>

    /// The script that is played.
    package let script: ReplayScript
    private let options: ReplayOptions
    private var players: [ReplayPlayer<Stanza>]
    /// Number of clients that are logging in.
    private var connecting = 0
    private var context: Stanza.Context
    private let parser = StanzaParser()
    private let sendings: ReplayScript.Sendings
    private var lookup: ScriptLookup
    private var substitution: ValueSubstitution
    /// The recorded values and their live counterparts.
    package var bindings: ValueBindings { context.bindings }
    /// The optional elements that only one stanza of a matched pair had, with the number of times this happened.
    package var optionalElements: [OptionalElement: Int] { context.optional }
    private var findings = ReplayFindings()
    /// The divergences so far, in the order in which they were found; sorted by recording order after the end.
    package var divergences: [Divergence] { findings.divergences }
    /// Number of unexpected items that are not among the divergences, because there are too many, by class.
    package var omitted: [Divergence.Class: Int] { findings.omitted }
    /// The reason why the preparation failed and nothing was played; nil if it did not fail.
    package var failure: String? { findings.failure }
    /// The figures so far.
    package private(set) var progress = Progress()
    /// Appended to each id, so that a server that has seen the recorded ids treats them as new.
    private let suffix: String
    private var cursor = 0
    private var actions: ReplayActions
    /// Whether the replay continues with further steps as soon as the pending actions are performed.
    private var isPaused = false
    private var now: Int64 = 0
    /// Number of items received.
    private var received: UInt64 = 0
    /// The latest recorded time of all items that were sent or have arrived.
    private var lastTime: Int64 = 0
    private var began: Int64?
    private var waits: ReplayWaits
    /// Time at which the server last sent something to another copy of the script: a busy server answers this copy
    /// later. Set it before other calls.
    package var othersServed: Int64 {
        get { waits.othersServed }
        set { waits.othersServed = newValue }
    }
    /// The steps whose items have arrived with changed content.
    private var changed: Set<Int> = []
    /// Indices of the steps that must complete before the next step.
    private var awaitedSteps: Set<Int> = []
    /// Requests that must be answered before the next step.
    private var orderPings = OrderPings()
    private var sent: SentTimes
    private var freedom: StepFreedom
    /// Numbers of the received events whose items may have been published before the replay.
    private var earlierEvents: Set<UInt64> = []
    /// The live ids of the recorded requests that have arrived, by item index of the request.
    private var arrivedRequests: [Int: String] = [:]
    /// Steps of answers that were reached before their requests arrived, by item index of the request.
    private var pendingAnswers: [Int: Int] = [:]
    /// Whether an expected item can no longer arrive.
    private var isAnythingLost = false
    /// The expectation number of each step.
    private var numbers: StepNumbers
    private var isFinished = false

    /// - Parameters:
    ///   - script: The script to play.
    ///   - accounts: The live bare JID of each recorded account that is played.
    ///   - copy: Appended to the names of rooms that the recorded clients created, so that each copy has its own rooms;
    ///     nil for a single copy.
    ///   - rules: The rules for differences to ignore.
    ///   - sendings: The result of ``ReplayScript/sendings(_:rules:)`` if several sessions share it.
    ///   - generator: Source of the random part of new ids.
    package init(
        _ script: ReplayScript,
        accounts: [(recorded: JID, live: JID)],
        copy: Int? = nil,
        rules: NoiseRules = NoiseRules(),
        options: ReplayOptions = ReplayOptions(),
        sendings: ReplayScript.Sendings? = nil,
        using generator: inout some RandomNumberGenerator
    ) {
        self.script = script
        lookup = ScriptLookup(script)
        self.options = options
        waits = ReplayWaits(options)
        actions = ReplayActions(writeSize: options.writeSize)
        let sendings = sendings ?? script.sendings(options, rules: rules)
        self.sendings = sendings
        sent = SentTimes(sendings)
        substitution = ValueSubstitution(.toLive, sendings.templates)
        numbers = StepNumbers(count: script.steps.count)
        players = script.clients.map { _ in ReplayPlayer<Stanza>(options: OptionalStanzas(rules: rules)) }
        suffix = "-" + String(UInt32.random(in: 0x1000_0000...UInt32.max, using: &generator), radix: 16)
        context = Stanza.Context(bindings: ValueBindings(ids: sendings.templates.ids, suffix: suffix), rules: rules)
        for client in script.clients where client.role != .preparation {
            context.recordedSenders.add(client.jid.description, number: script.number(of: client.jid))
        }
        script.bind(accounts, copy: copy, in: &context.bindings)
        for (client, count) in script.expectedCounts.enumerated() { players[client].expectations.reserve(count) }
        freedom = StepFreedom(players.map(\.options))
        for (index, step) in script.steps.enumerated() {
            switch step {
            case .send: progress.total += 1
            case .expect(let client, let number):
                progress.total += 1
                let item = script.items[number]
                guard let bytes = item.sent, let form = StanzaForm(bytes, parser: parser, root: item.root) else {
                    continue
                }
                let tag = ReplayTag.step(index)
                let stanza = Stanza(recorded: form, bytes, root: item.root, parser: parser, context, tag: tag)
                freedom.expect(form, client, at: index, script)
                numbers[index] = players[client].expectations.expect(stanza, stanza.lane, window: index)
            case .connect(let client):
                if script.clients[client].refusal != nil { progress.total += 1 }
                if let earlier = script.clients[client].resumes { freedom.resume(earlier, by: client) }
            case .close(let client): freedom.close(client)
            case .prepare, .awaitHandling, .end, .drop: break
            }
        }
    }

    /// The latest time at which ``tick(at:)`` must be called; nil if no call is needed.
    package var nextDeadline: Int64? {
        guard !isFinished else { return nil }
        let stallDeadline = actions.stalled.map(\.since).min().map { $0 + options.wait }
        guard !isPaused else { return stallDeadline }
        // The next step follows as soon as the pending logins, items and answers have arrived, or at the deadline for
        // them.
        guard connecting == 0, awaitedSteps.isEmpty, orderPings.isEmpty else {
            return [stallDeadline, gateDeadline].compactMap { $0 }.min()
        }
        // The next step waits until both times have passed. After that, only an event continues the replay.
        let stepDeadline = [paceDeadline, quietDeadline].compactMap { $0 }.max()
        return [stallDeadline, stepDeadline.flatMap { $0 > now ? $0 : nil }].compactMap { $0 }.min()
    }

    /// Returns the next action; nil if there is none until the next event.
    package mutating func next(at now: Int64) -> Action? {
        while true {
            if let action = actions.next() { return action }
            guard isPaused else { return nil }
            self.now = now
            advance()
            guard !actions.isEmpty else { return nil }
        }
    }

    // MARK: Events

    /// Starts the replay, or continues it after a deadline.
    package mutating func tick(at now: Int64) {
        self.now = now
        for (client, since) in actions.stalled where now >= since + options.wait {
            // The missing answers may belong to requests that are still in the buffers of the stalled connection.
            ended(client, "the server read no data for \(LineBuffer.duration(options.wait))", from: awaitedSteps.min())
            actions.append(.drop(client))
        }
        advance()
    }

    /// Excludes a time in which the program was too busy to read from all waits, so that it is not taken for a delay of
    /// the server.
    ///
    /// - Parameter lag: The length of this time, which ends at `now`, in nanoseconds.
    package mutating func excuse(_ lag: Int64, at now: Int64) {
        waits.excuse(lag, at: now)
        actions.excuse(lag, at: now)
    }

    /// Records how much of the next item of a client has arrived: a server that keeps sending gets more time.
    ///
    /// - Parameters:
    ///   - count: The number of bytes; 0 if none have arrived.
    ///   - time: When the last of them arrived.
    package mutating func reportIncomplete(_ count: Int, client: Int, at time: Int64) {
        players[client].incompleteCount = count > 0 ? count : nil
        if count > 0 { waits.recordBytes(at: time) }
    }

    /// Stops the replay before the end of the script. The differences found so far are reported. Items that have not
    /// arrived yet are not reported.
    package mutating func stop() {
        guard !isFinished else { return }
        for client in players.indices {
            report(client) { if case .missing = $0 { false } else { true } }
        }
        finish()
    }

    /// Handles an event of a client.
    package mutating func handle(_ event: Event, client: Int, at now: Int64) {
        self.now = now
        if case .stalled = event { return actions.stall(client, at: now) }
        waits.recordActivity(at: now)
        switch event {
        case .stalled: break
        case .writable: actions.release(client)
        case .offered(let offer): findings.compare(script.clients[client].offer, offer, of: client, at: moment(client))
        case .bound(let jid, let features):
            connecting -= 1
            if let refusal = script.clients[client].refusal { return recordLogin(client, refusal: refusal, nil) }
            players[client].state = .open
            recordLostResumption(client)
            let recorded = script.clients[client].jid
            if script.clients[client].role != .preparation {
                context.liveSenders.add(jid.description, number: script.number(of: recorded))
            }
            if recorded.isFull { try? context.bindings.bind(recorded.description, to: jid.description, .resource) }
            if let old = script.clients[client].capabilities, let new = features.flatMap({ Capabilities($0) }) {
                old.bind(to: new, in: &context.bindings)
            }
        case .refused(let condition):
            connecting -= 1
            recordLogin(client, refusal: script.clients[client].refusal, condition)
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

    /// Handles the result of a login that the recorded server or the live server refused.
    ///
    /// - Parameters:
    ///   - refusal: The recorded condition; nil if the recorded login succeeded.
    ///   - condition: The condition of the live server; nil if the login succeeded.
    private mutating func recordLogin(_ client: Int, refusal: String?, _ condition: String?) {
        players[client].state = condition == nil ? .closing : .over
        if condition == nil { actions.append(.close(client)) }
        if condition == refusal {
            progress.matched += 1
        } else {
            let result = condition.map { "failed: \($0)" } ?? "succeeded"
            let message = "the login \(result); the recorded one \(refusal.map { "failed: \($0)" } ?? "succeeded")"
            add(Divergence(.behaviour, .session, live: moment(client), message: message), client)
        }
        advance()
    }

    /// Records that a client got a new session instead of resuming an earlier one.
    private mutating func recordLostResumption(_ client: Int) {
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

    /// Handles the end of a client's session.
    ///
    /// - Parameter step: The first step whose item can no longer arrive; nil for the client's first remaining step.
    private mutating func ended(_ client: Int, _ reason: String?, from step: Int? = nil) {
        let isStalled = actions.isStalled(client)
        // Pending and held actions were not performed before the session ended.
        let undone = actions.remove(client)
        let held = undone.flatMap(\.steps).filter { script.sends($0, client) && !lacksValue($0) }
        let wasOpen = players[client].state == .open || isStalled || undone.contains { $0.size > 0 }
        if players[client].state == .connecting { connecting -= 1 }
        players[client].state = .over
        progress.sent -= held.count
        orderPings.forget(client)
        // Remaining steps of the client: those with awaited items, and those to perform.
        let left =
            awaitedSteps.sorted().filter { script.steps[$0].client == client }
            + (cursor..<script.steps.count).filter { script.steps[$0].client == client }
        awaitedSteps.subtract(left)
        guard wasOpen, !players[client].isSuperseded else { return }
        var reason = reason ?? "the server closed the stream"
        guard script.clients[client].role != .preparation else { return refuse(client, "the session ended: \(reason)") }
        let unsent = held.count + left.count { script.sends($0, client) }
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
            if case .send(_, let item) = script.steps[step] {
                findings.recordUnsent(script.items[item], of: script.clients[client].account, cause)
            }
        }
        // Stop waiting for items that cannot arrive.
        awaitedSteps = awaitedSteps.filter { lost(at: $0) == nil }
    }

    /// Returns whether a step cannot send its item because a value is missing.
    private func lacksValue(_ step: Int) -> Bool {
        if case .send(_, let item) = script.steps[step] { sendings.sendings[item] == nil } else { false }
    }

    /// Returns the index of the divergence that explains why an expected item cannot arrive; nil if it can arrive.
    private func lost(at step: Int) -> Int? {
        guard isAnythingLost, case .expect(let client, let number) = script.steps[step] else { return nil }
        let item = script.items[number]
        if players[client].state == .over, let cause = players[client].cause, step >= cause.step {
            return cause.divergence
        }
        let sender = item.from.flatMap { JID($0) }
        let accounts = [script.clients[client].account, sender?.bare].compactMap(\.self)
        if let cause = findings.cause(of: item, from: accounts) { return cause }
        guard let sender, sender.isFull,
            let other = script.clients.lastIndex(where: { $0.jid == sender }), players[other].state == .over,
            let cause = players[other].cause, step >= cause.step
        else { return nil }
        return cause.divergence
    }

    /// Returns whether a step expects an item that has not arrived but must arrive: the server may not omit it, and its
    /// sender is played.
    private func isMissing(_ step: Int) -> Bool {
        guard !freedom.mayBeMissing(step), case .expect(let client, let item) = script.steps[step],
            let number = numbers[step]
        else { return false }
        return players[client].expectations.isWaiting(number) && !script.isOfAbsentPeer(script.items[item])
    }

    private mutating func refuse(_ client: Int, _ reason: String) {
        let account = script.clients[client].account.description
        findings.failures.append("\(bindings.live(for: account, .account) ?? account): preparation failed: \(reason)")
    }

    // MARK: Received items

    private mutating func received(_ bytes: [UInt8], _ element: Element, _ client: Int) {
        let live = StanzaForm(element)
        players[client].recordReceived(at: now)
        // The server sends the item again in the session that resumes this one.
        guard !players[client].isSuperseded else { return }
        if live.kind == .nonza, handleManagement(element, client) { return }
        if live.kind != .nonza, players[client].isManaged { players[client].handled &+= 1 }
        guard !orderPings.receive(live) else { return }
        if script.clients[client].role != .recorded {
            guard script.clients[client].role == .preparation, let reason = Preparation.refusal(live) else { return }
            return refuse(client, reason)
        }
        if live.kind == .iq, live.type == "get", element.child("ping", .ping) != nil {
            return send(client, element.leastAnswer)
        }
        guard live.id != ReplayScript.inlineID else { return }
        let trip = recordAnswer(live, client)
        received += 1
        let tag = ReplayTag.live(bytes, number: received, at: now, after: lastTime)
        let stanza = Stanza(live: live, bytes, parser: parser, context, tag: tag)
        let option = players[client].options.option(live, script.roles(bindings))
        let published = script.earlierData.publication(of: live) { [bindings] in bindings.jid($0, .toRecorded) }
        let isRepeated = published.map { players[client].hasReceived(element, of: $0.node) } == true
        let isEarly = published?.step.map { $0 >= cursor } == true
        switch isEarly ? .unexpected : players[client].expectations.receive(stanza, stanza.lane, &context) {
        case .matched(let number), .reordered(let number), .late(let number):
            progress.matched += 1
            if isRepeated { earlierEvents.insert(received) }
            didMatch(number, client, live)
            recordDelivery(live)
            if let trip { recordTime(trip, number, stanza, client) }
        case .changed(let number):
            didMatch(number, client, live)
            players[client].expectations.item(number).bindValues(of: stanza, &context)
        case .unexpected:
            let free = script.lateEcho(live, client, bindings, at: cursor) ?? option
            let isEarlier = isEarly || published.map { players[client].isEarlier($0.node) } == true
            if isEarlier { earlierEvents.insert(received) }
            if isEarlier || free?.isRepeatable == true {
                if !isEarly { players[client].expectations.withdraw() }
                diverge(.unexpected, client, nil, stanza, option: isEarlier ? nil : free)
            } else {
                recordChanged(stanza, client)
            }
            guard live.kind == .iq, live.type == "get" || live.type == "set" else { return }
            let answer = lookup.answer(to: live, of: client)
            if answer?.isInferred == true { players[client].lacksCapabilities = true }
            let bytes = answer.map { context.bindings.substituted($0.bytes, .toLive, rules: context.rules) }
            send(client, bytes ?? element.leastAnswer)
        }
    }

    private mutating func recordDelivery(_ live: StanzaForm) {
        guard let sent = sent.time(of: live, bindings) else { return }
        progress.record(now - sent, of: "\(live.kind)", at: now)
    }

    private mutating func didMatch(_ number: Int, _ client: Int, _ live: StanzaForm) {
        guard case .step(let step) = players[client].expectations.item(number).tag else { return }
        recordArrival(step)
        guard case .expect(_, let item) = script.steps[step] else { return }
        lastTime = max(lastTime, script.times[step])
        guard script.answers.answers[item] != nil else { return }
        arrivedRequests[item] = live.id ?? ""
        if let step = pendingAnswers.removeValue(forKey: item), case .send(_, let answer) = script.steps[step] {
            send(answer, client, step)
        }
    }

    /// Checks whether an unexpected item is a changed form of an expected one. If so, the replay stops waiting for the
    /// expected item.
    private mutating func recordChanged(_ live: Stanza, _ client: Int) {
        let steps = awaitedSteps.sorted() + script.next(from: cursor)
        guard
            let step = steps.first(where: { step in
                guard case .expect(client, _) = script.steps[step], !changed.contains(step), let number = numbers[step],
                    players[client].expectations.isWaiting(number)
                else { return false }
                return players[client].expectations.item(number).resembles(live)
            })
        else { return }
        changed.insert(step)
        recordArrival(step)
    }

    /// Handles the arrival of an awaited item. The wait for the next one starts again: a server that sends is not
    /// silent.
    private mutating func recordArrival(_ step: Int) {
        if case .expect(let client, _) = script.steps[step] {
            players[client].lastArrival = max(players[client].lastArrival, step)
        }
        if awaitedSteps.remove(step) != nil { waits.recordArrival(at: now) }
    }

    /// Handles an element of stream management (XEP-0198) in the live session.
    ///
    /// - Returns: Whether the element is excluded from the comparison.
    private mutating func handleManagement(_ element: Element, _ client: Int) -> Bool {
        switch players[client].manage(element) {
        case .answer(let bytes): send(client, bytes)
        case .enabled: return script.clients[client].enablesManagement
        case .ignored: break
        case nil: return false
        }
        return true
    }

    /// Removes the request that a stanza answers, and adds the latency to the figures.
    ///
    /// - Returns: The latency of the answer, in nanoseconds, and the step that sent the request; nil if the stanza
    ///   answers no request.
    private mutating func recordAnswer(_ live: StanzaForm, _ client: Int) -> (took: Int64, step: Int)? {
        guard let request = sent.request(answeredBy: live, client, sendings, bindings) else { return nil }
        if case .send(_, let item) = script.steps[request.step] {
            progress.record(now - request.at, of: script.items[item].requestKind, at: now)
        }
        return (now - request.at, request.step)
    }

    /// Reports an answer that took much longer than in the recording. Only at the recorded pace: at other paces,
    /// requests queue up differently.
    private mutating func recordTime(_ trip: (took: Int64, step: Int), _ number: Int, _ live: Stanza, _ client: Int) {
        guard case .recorded = options.pace, case .step(let step) = players[client].expectations.item(number).tag
        else { return }
        if let slower = lookup.slower(trip, answer: step, lookup.shown(live.tag, client, began)) { add(slower, client) }
    }

    // MARK: The steps

    /// Performs steps until one has to wait.
    private mutating func advance() {
        guard !isFinished else { return }
        if began == nil {
            began = now
            waits.recordActivity(at: now)
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
                waits.end()
                waits.recordActivity(at: now)
                send(item, client, cursor)
            case .expect:
                if isMissing(cursor), !changed.contains(cursor), lost(at: cursor) == nil { awaitedSteps.insert(cursor) }
            case .end(let client):
                if [.open, .connecting].contains(players[client].state) { awaitedSteps.insert(cursor) }
            case .awaitHandling where cursor > 0 && script.isAwaitHandling(cursor - 1) && connecting == 0:
                perform(step)
            case .connect, .send, .prepare, .awaitHandling, .close, .drop:
                guard isDue(step) else { return }
                guard !findings.hasFailed || script.clients[step.client].role == .preparation else { return finish() }
                waits.recordActivity(at: now)
                perform(step)
            }
            cursor += 1
        }
        guard actions.isEmpty else {
            isPaused = true
            return
        }
        guard connecting == 0, actions.stalled.isEmpty, isGateOpen(), isQuiet() else { return }
        for client in players.indices { report(client) { _ in true } }
        finish()
    }

    /// Whether an item can be sent at once: the replay waits for nothing, and the pace is causal.
    private var waitsForNothing: Bool {
        guard case .causal = options.pace else { return false }
        return connecting == 0 && awaitedSteps.isEmpty && orderPings.isEmpty && !findings.hasFailed
    }

    private mutating func finish() {
        findings.sort()
        isFinished = true
        actions.append(.finish)
    }

    /// Returns whether a step can be performed now.
    private mutating func isDue(_ step: ReplayScript.Step) -> Bool {
        guard connecting == 0 else { return false }
        if case .connect(let client) = step {
            // The server may not have noticed the end of the earlier connection yet.
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

    /// Returns whether the next step may be performed: all items that precede it have arrived, or the wait for them has
    /// ended.
    private mutating func isGateOpen() -> Bool {
        guard !awaitedSteps.isEmpty || !orderPings.isEmpty else {
            waits.end()
            return true
        }
        waits.begin(at: now)
        guard let deadline = gateDeadline, now >= deadline else { return false }
        endIncomplete()
        for step in awaitedSteps.sorted() {
            switch script.steps[step] {
            case .expect(let client, let item):
                players[client].expectations.close(step)
                let isSilent = players[client].lastReceived <= waits.since ?? now
                players[client].isSilent = isSilent && (script.items[item].isAnswer || players[client].isSilent)
            case .end(let client):
                let message = "the server did not end the session, as it did in the recording"
                add(Divergence(.behaviour, .session, live: moment(client), message: message), client)
                perform(.close(client))
            case .connect, .send, .prepare, .awaitHandling, .close, .drop: break
            }
        }
        for client in orderPings.removeAll() {
            if script.clients[client].role == .recorded {
                add(OrderPings.unanswered, client)
            } else if progress.sent == 0 {
                refuse(client, "the server did not answer for \(LineBuffer.duration(options.wait))")
            }
        }
        waits.end(hasGivenUp: !awaitedSteps.isEmpty)
        awaitedSteps = []
        return true
    }

    /// Ends the sessions that wait for an item of which only a part has arrived.
    private mutating func endIncomplete() {
        for client in Set(awaitedSteps.map { script.steps[$0].client }).sorted() {
            guard let count = players[client].incompleteCount, let since = waits.since else { continue }
            let bytes = "\(count) \(count == 1 ? "byte" : "bytes")"
            let reason = "the server sent \(bytes) of an incomplete item in \(LineBuffer.duration(now - since))"
            ended(client, reason, from: awaitedSteps.filter { script.steps[$0].client == client }.min())
            actions.append(.drop(client))
        }
    }

    /// The time at which the replay gives up on missing items; nil if it does not wait for items.
    private var gateDeadline: Int64? {
        guard !awaitedSteps.isEmpty || !orderPings.isEmpty else { return nil }
        return waits.deadline(stalls: actions.stalled.map(\.since)) {
            !orderPings.isEmpty
                || awaitedSteps.contains { step in
                    guard case .expect(let client, let item) = script.steps[step] else { return false }
                    return script.items[item].isAnswer && !players[client].isSilent
                }
        }
    }

    /// The time at which the wait for unexpected items ends. The replay waits for them before a recorded client leaves,
    /// and at the end of the script; nil if the next step does not wait.
    private var quietDeadline: Int64? {
        guard awaitedSteps.isEmpty, orderPings.isEmpty, !isFinished else { return nil }
        guard cursor < script.steps.count else {
            return actions.stalled.isEmpty && players.contains { $0.state == .open } ? waits.quietEnd(at: now) : nil
        }
        guard case .close(let client) = script.steps[cursor], players[client].state == .open,
            script.clients[client].role == .recorded
        else { return nil }
        return waits.quietEnd(at: now)
    }

    private mutating func isQuiet() -> Bool {
        guard let deadline = quietDeadline else { return true }
        waits.beginQuiet(at: now)
        guard now >= deadline else { return false }
        waits.endQuiet()
        return true
    }

    /// The earliest time for the next step at the recorded pace; nil at the causal pace.
    private var paceDeadline: Int64? {
        guard case .recorded(let speed) = options.pace, let began, cursor < script.times.count else { return nil }
        // Limits the delay to 1e15 ns (about 11.6 days) for very low speeds.
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
                players[client].options = players[earlier].options
                resuming = (id, players[client].handled)
            }
            actions.append(.connect(client, resuming: resuming))
        case .send(let client, let item): send(item, client, cursor)
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
        case .awaitHandling(let client):
            guard players[client].state == .open else { return }
            send(client, orderPings.request(client, id: "settled-\(cursor)\(suffix)"))
        case .expect, .end: break
        }
    }

    // MARK: Sending

    private mutating func send(_ client: Int, _ bytes: [UInt8]) { actions.append(.send(client, bytes)) }

    /// Sends the item of a step. An answer is delayed until its request has arrived; if the server may omit the
    /// request, it may never arrive.
    private mutating func send(_ number: Int, _ client: Int, _ step: Int) {
        guard players[client].state == .open else { return }
        var request: String?
        if let number = script.answers.requests[number] {
            request = arrivedRequests[number]
            guard request != nil else { return pendingAnswers[number] = step }
        }
        guard let sending = sendings.sendings[number] else { return reportLack(script.items[number], client) }
        if script.items[number].kind == .presence { players[client].presences += 1 }
        progress.sent += 1
        lastTime = max(lastTime, script.times[step])
        if let id = sending.id { context.bindings.standIn(for: Int(id)) }
        sent.record(sending, step, at: now)
        actions.beginItem(step, of: client)
        let (item, rules) = (script.items[number], context.rules)
        let start = actions.gathered.count
        substitution.fill(item, sending, options, from: context.bindings, rules: rules, into: &actions.gathered)
        // Some servers reuse the ids of their requests, so the id of this request may differ from the bound one.
        if let request, let id = item.id, bindings.live(for: id, .stanzaID) != request {
            actions.gathered.replaceSubrange(start..., with: item.answer(actions.gathered[start...], request, parser))
        }
        actions.endItem()
    }

    private mutating func reportLack(_ item: RecordedItem, _ client: Int) {
        guard item.atServer(withoutEdits: options.withoutEdits) != nil else { return }
        let missing = item.placeholders.first { options.values[$0] == nil }
        let message = "not sent: the recording lacks " + (missing.map { "the value of \($0)" } ?? "a value")
        let divergence = Divergence(.redacted, .undecided, recorded: lookup.shown(cursor), message: message)
        isAnythingLost = true
        findings.recordUnsent(item, of: script.clients[client].account, add(divergence, client))
    }

    // MARK: Divergences

    @discardableResult
    private mutating func add(_ divergence: Divergence, _ client: Int, _ cause: Int? = nil) -> Int {
        findings.add(divergence, of: client, below: cause)
    }

    private mutating func report(_ client: Int, if isReported: (ExpectationSet<Stanza>.Finding) -> Bool) {
        findings.omit(players[client].expectations.omitted, .behaviour)
        /// The divergences of changed answers, by live id.
        var answers: [String: Int] = [:]
        /// The divergence of the answer with which the server fell silent.
        var silence: Int?
        let missing = players[client].expectations.withdrawMissing { [freedom] item in
            if case .step(let step) = item.tag { freedom.mayBeMissing(step) } else { false }
        }
        for recorded in missing where isReported(.missing(recorded)) { diverge(.missing, client, recorded, nil) }
        for finding in players[client].expectations.finish() where isReported(finding) {
            switch finding {
            case .missing(let recorded):
                let number = diverge(.missing, client, recorded, nil, silence)
                guard case .step(let step) = recorded.tag, step > players[client].lastArrival else { break }
                if recorded.isAnswer { silence = silence ?? number }
            case .unexpected(let live): diverge(.unexpected, client, nil, live, live.form?.id.flatMap { answers[$0] })
            case .changed(let recorded, let live):
                let number = diverge(.changed, client, recorded, live)
                if case .answer = live.lane, let id = live.form?.id { answers[id] = number }
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
        _ cause: Int? = nil,
        option: StanzaOption? = nil
    ) -> Int {
        var divergence = Divergence(.behaviour, code)
        if code == .changed, let recorded = recorded?.form, let live = live?.form {
            divergence.differences = StanzaComparison.compare(
                recorded: recorded,
                live: live,
                bindings: &context.bindings,
                rules: context.rules
            )
        }
        if let live {
            divergence.live = lookup.shown(live.tag, client, began)
            if code == .unexpected, case .answer = live.lane, let id = live.form?.id {
                let isKnown = bindings.recorded(for: id, .stanzaID) != nil
                divergence.message = isKnown ? "a second answer to the request" : "an answer without a request"
            }
        }
        divergence.classify(recorded?.form, live?.form)
        lookup.addSubject(to: &divergence, recorded, live, client, bindings)
        if case .step(let step)? = recorded?.tag, case .expect(_, let item) = script.steps[step] {
            divergence.recorded = lookup.shown(step)
            if let form = recorded?.form {
                let node = code == .missing ? script.earlierData.publication(of: form)?.node : nil
                let isUnchanged = node.map { players[client].hasReceived(form.element, of: $0) } == true
                let isEarlier = isUnchanged || freedom.isEarlierEvent(step)
                if lookup.isOfData(divergence, form, live?.form, isEarlierEvent: isEarlier, at: step, bindings) {
                    divergence.divergenceClass = .state
                }
            }
            if lookup.isOfOwnData(divergence, recorded?.form, at: step) { divergence.divergenceClass = .behaviour }
            if script.isOfAbsentPeer(script.items[item]) { divergence.divergenceClass = .peerAbsent }
            if code == .missing, let option = freedom.option(at: step) { divergence.setOptional(option) }
            if code == .missing, let cause = lost(at: step) { return add(divergence, client, cause) }
        }
        if players[client].lacksCapabilities { divergence.allowOtherEvents((recorded ?? live)?.form) }
        if case .live(_, let number, _, let after)? = live?.tag {
            if recorded == nil { divergence.after = after }
            if let option { divergence.setOptional(option) }
            if code == .unexpected || code == .reordered, earlierEvents.contains(number) {
                (divergence.divergenceClass, divergence.message) = (.state, EarlierData.earlierEvent)
            }
        }
        // If a session was not resumed although it was in the recording, everything in it may differ.
        let isOfAnother = players[client].cause.map { $0.step == 0 } == true
        return add(divergence, client, cause ?? (isOfAnother ? players[client].cause?.divergence : nil))
    }

    private func moment(_ client: Int) -> Divergence.Item {
        lookup.moment(client, number: received + 1, at: now - (began ?? now))
    }
}
