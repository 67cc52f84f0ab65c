/// The freedom that a server has with each stanza that a script expects.
struct StepFreedom: Sendable {
    /// The steps whose stanzas the server may leave out, with the reason.
    private var options: [Int: StanzaOption] = [:]
    /// The steps that expect events of items which were published before the recording.
    private var earlierEvents: Set<Int> = []
    /// The optional stanzas of each client up to the last step.
    private var stanzas: [OptionalStanzas]
    /// The clients that have closed their streams: a server may have errors for their last stanzas or not.
    private var closed: Set<Int> = []

    init(_ stanzas: [OptionalStanzas]) { self.stanzas = stanzas }

    // MARK: The steps, in order

    /// A client continues the session of an earlier one.
    mutating func resume(_ earlier: Int, by client: Int) { stanzas[client] = stanzas[earlier] }

    /// A client closes its stream.
    mutating func close(_ client: Int) { closed.insert(client) }

    /// A client expects a stanza.
    mutating func expect(_ stanza: StanzaForm, _ client: Int, at step: Int, _ script: ReplayScript) {
        options[step] = stanzas[client].option(stanza, script.roles)
        if closed.contains(client), stanza.type == "error", options[step] == nil {
            options[step] = StanzaOption("RFC 6120 §4.4: the client had closed its stream")
        }
        if script.earlierData.isEarlier(stanza, at: step, receivedBy: script.clients[client].account) {
            earlierEvents.insert(step)
        }
    }

    // MARK: Answers

    /// Returns why the server may leave out the stanza of a step; nil if it may not.
    func option(at step: Int) -> StanzaOption? { options[step] }

    /// Returns whether a step expects an event of an item that was published before the recording.
    func isEarlierEvent(_ step: Int) -> Bool { earlierEvents.contains(step) }

    /// Returns whether the stanza of a step may be missing.
    func mayBeMissing(_ step: Int) -> Bool { options[step] != nil || earlierEvents.contains(step) }
}
