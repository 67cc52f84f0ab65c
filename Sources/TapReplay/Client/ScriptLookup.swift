internal import TapRecord
internal import XMPPCore

/// Finds items of a script: requests by their answers, answers by their requests.
struct ScriptLookup {
    private let script: ReplayScript
    private let parser = StanzaParser()
    /// The steps that send items, by the ids of the items, without answers; nil until they are needed.
    private var sent: [String: Int]?

    init(_ script: ReplayScript) { self.script = script }

    /// Returns the recorded stanza with an id that a client sent, and its time; nil if there is none.
    mutating func request(_ id: String?) -> (form: StanzaForm?, at: Int64)? {
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

    /// Returns the answer of a recorded client to a request with the same payload, with the id and the sender of this
    /// request and recorded values otherwise; nil without such a request.
    func answer(to request: StanzaForm) -> [UInt8]? {
        let payload = request.payload
        func isAlike(_ item: RecordedItem) -> Bool {
            guard item.type == request.type, item.payload == payload?.name,
                item.payloadNamespace == payload?.namespace
            else { return false }
            return form(item)?.payload?.namespaceURI == payload?.namespaceURI
        }
        for (number, answer) in script.answers.answers.sorted(by: { $0.key < $1.key })
        where isAlike(script.items[number]) {
            guard let element = form(script.items[answer])?.element else { continue }
            return XMLWriter.bytes {
                $0.element(
                    element,
                    inheriting: Namespace.client.uri.description,
                    setting: ["id": request.id, "to": request.from]
                )
            }
        }
        return nil
    }

    /// Sets the subject of a divergence, and when the request was recorded that its stanzas answer.
    ///
    /// - Parameter id: The recorded id of the request; nil if the stanzas answer none.
    mutating func addSubject(
        to divergence: inout Divergence,
        _ stanzas: DivergenceSubject.Stanzas,
        answered id: String?
    ) {
        let request = request(id)
        var stanzas = stanzas
        stanzas.request = request?.form
        divergence.asked = request?.at
        divergence.subject = DivergenceSubject(divergence.code, stanzas, divergence.differences)
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
        case .connect, .prepare, .settle, .close, .end, .drop: return nil
        }
    }
}
