internal import TapRecord
internal import XMPPCore

/// Finds items of a script: requests by their answers, answers by their requests.
struct ScriptLookup {
    private let script: ReplayScript
    private let parser = StanzaParser()
    /// The steps that send items other than answers, by the ids of the items; nil until first used.
    private var sent: [String: Int]?

    init(_ script: ReplayScript) { self.script = script }

    /// Returns the recorded stanza that a client sent with this id, and its time in nanoseconds; nil if there is none.
    private mutating func request(_ id: String?) -> (form: StanzaForm?, at: Int64)? {
        guard let id else { return nil }
        if sent == nil {
            sent = [:]
            for (index, step) in script.steps.enumerated() {
                guard case .send(_, let item) = step, !script.items[item].isAnswer, let id = script.items[item].id
                else { continue }
                sent?[id] = index
            }
        }
        guard let step = sent?[id], case .send(_, let item) = script.steps[step] else { return nil }
        return (form(script.items[item]), script.times[step])
    }

    private func form(_ item: RecordedItem) -> StanzaForm? {
        item.sent.flatMap { StanzaForm($0, parser: parser, root: item.root) }
    }

    /// Returns an answer to a request: the recorded answer to a request with the same payload, with the id and the
    /// sender of the new request and otherwise recorded values; nil if the recording has none.
    ///
    /// Answers to requests for the same node are preferred, then answers of the same client, because clients have
    /// different capabilities.
    ///
    /// - Returns: The answer, and whether it was inferred from other stanzas of the recording.
    func answer(to request: StanzaForm, of client: Int) -> (bytes: [UInt8], isInferred: Bool)? {
        let payload = request.payload
        let node = payload?.attribute("node")
        func alike(_ item: RecordedItem) -> Element? {
            guard item.type == request.type, item.payload == payload?.name,
                item.payloadNamespace == payload?.namespace
            else { return nil }
            let found = form(item)?.payload
            return found?.namespaceURI == payload?.namespaceURI ? found : nil
        }
        var best: (rank: Int, answer: Int)?
        for (number, answer) in script.answers.answers.sorted(by: { $0.key < $1.key }) {
            guard let asked = alike(script.items[number]) else { continue }
            let isOwn = script.answers.clients[number] == client
            let rank = (asked.attribute("node") == node ? 2 : 0) + (isOwn ? 1 : 0)
            if rank > best?.rank ?? -1 { best = (rank, answer) }
        }
        // If no recorded answer is for the same node, the inferred capabilities of this client are better than those of
        // another.
        let inferred = best.map { $0.rank < 2 } ?? true ? inferredFeatures(request, client) : nil
        if let inferred { return (inferred, true) }
        guard let best, let element = form(script.items[best.answer])?.element else { return nil }
        let answer = XMLWriter.bytes {
            $0.element(
                element,
                inheriting: Namespace.client.uri.description,
                setting: ["id": request.id, "to": request.from]
            )
        }
        return (answer, false)
    }

    /// Returns an answer to a query of the live server for a client's capabilities. The server of the recording knew
    /// them and did not ask. Nil if the recording does not show them.
    private func inferredFeatures(_ request: StanzaForm, _ client: Int) -> [UInt8]? {
        guard let query = request.payload, query.namespace == .discoInfo, request.type == "get" else { return nil }
        let features = script.earlierData.features(of: client)
        guard !features.isEmpty else { return nil }
        return request.element.answer("result") {
            $0.element("query", .discoInfo, ["node": query.attribute("node")]) {
                $0.element("identity", ["category": "client", "type": "pc"])
                for feature in features { $0.element("feature", ["var": feature]) }
            }
        }
    }

    /// Returns whether a divergence results from data that one of the servers had stored earlier.
    ///
    /// - Parameter isEarlierEvent: Whether the recorded stanza is an event of an item that was published before the
    ///   recording, or that has not changed.
    mutating func isOfData(
        _ divergence: Divergence,
        _ recorded: StanzaForm,
        _ live: StanzaForm?,
        isEarlierEvent: Bool,
        at step: Int,
        _ bindings: ValueBindings
    ) -> Bool {
        switch (divergence.code, live) {
        // Offline and archived stanzas from before the recording are not on the live server.
        case (.missing, _): isEarlierEvent || recorded.isDelayed && !script.sends(recorded.id)
        case (.changed, _?) where recorded.kind == .presence:
            script.earlierData.isEarlierAvatar(divergence.differences, at: step)
        case (.changed, let live?): isOfOtherArchive(recorded, live, bindings)
        default: false
        }
    }

    /// Returns whether a divergence of stored data concerns a value that a recorded client stored itself.
    func isOfOwnData(_ divergence: Divergence, _ recorded: StanzaForm?, at step: Int) -> Bool {
        divergence.divergenceClass == .state && divergence.code == .changed
            && script.writtenValues.explain(
                divergence.differences,
                in: recorded,
                before: script.writtenValues.moment(UInt64(step))
            )
    }

    /// Returns whether the live archive lacks the item before or after which the client requests a page (XEP-0059
    /// §2.5): the live server answers with `item-not-found`, and has never sent the id of the item. The archives then
    /// differ.
    private mutating func isOfOtherArchive(_ recorded: StanzaForm, _ live: StanzaForm, _ bindings: ValueBindings)
        -> Bool
    {
        guard recorded.type == "result", live.type == "error",
            live.element.child("error", .client)?.child("item-not-found", .stanzaErrors) != nil,
            let query = request(recorded.id)?.form?.payload,
            [.archive, .archive1, .archive0].contains(query.namespace), let set = query.child("set", .resultSets)
        else { return false }
        let ids = set.children.lazy.filter { $0.isNamed("after") || $0.isNamed("before") }.map(\.text)
        return ids.contains { !$0.isEmpty && bindings.live(for: $0, .archiveID) == nil }
    }

    /// Sets the subject of a divergence and, if its stanzas are answers, the time at which the request was recorded.
    mutating func addSubject(
        to divergence: inout Divergence,
        _ recorded: ComparedStanza<ReplayTag>?,
        _ live: ComparedStanza<ReplayTag>?,
        _ client: Int,
        _ bindings: ValueBindings
    ) {
        let (one, other) = (recorded?.form, live?.form)
        let id = one?.id ?? other?.id.map { bindings.recorded(for: $0, .stanzaID) ?? $0 }
        let isAnswer = (recorded ?? live)?.isAnswer == true || other?.type == "error"
        let request = isAnswer ? request(id) : nil
        let stanzas = DivergenceSubject.Stanzas(
            recorded: one,
            live: other,
            request: request?.form,
            account: script.clients[client].account,
            address: { bindings.jid($0, .toRecorded) }
        )
        divergence.asked = request?.at
        divergence.subject = DivergenceSubject(divergence.code, stanzas, divergence.differences)
    }

    /// Returns the divergence of an answer that took much longer than in the recording; nil if the answer was fast
    /// enough.
    ///
    /// - Parameters:
    ///   - trip: The time that the answer took, in nanoseconds, and the step that sent the request.
    ///   - step: The step that expects the answer.
    func slower(_ trip: (took: Int64, step: Int), answer step: Int, _ live: Divergence.Item?) -> Divergence? {
        let took = script.times[step] - script.times[trip.step]
        guard RecordingDifference.isSlower(trip.took, than: took) else { return nil }
        let message = "\(DivergenceBuilder.seconds(took)) → \(DivergenceBuilder.seconds(trip.took))"
        return Divergence(.timing, .slower, recorded: shown(step), live: live, message: message)
    }

    /// Returns a received item for a report; nil for the tag of a step.
    ///
    /// - Parameter began: The time at which the replay began, in nanoseconds.
    func shown(_ tag: ReplayTag, _ client: Int, _ began: Int64?) -> Divergence.Item? {
        guard case .live(let bytes, let number, let at, _) = tag else { return nil }
        return Divergence.Item(
            session: script.clients[client].session,
            sequence: number,
            at: at - (began ?? at),
            direction: .recv,
            text: String(decoding: bytes, as: UTF8.self)
        )
    }

    /// Returns a moment in a client's session for a report, at a time in nanoseconds since the replay began.
    func moment(_ client: Int, number: UInt64, at time: Int64) -> Divergence.Item {
        Divergence.Item(session: script.clients[client].session, sequence: number, at: time, direction: nil, text: "")
    }

    /// Returns the item of a step for a report; nil if the step has none.
    func shown(_ step: Int) -> Divergence.Item? {
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
        case .connect, .prepare, .awaitHandling, .close, .end, .drop: return nil
        }
    }
}
