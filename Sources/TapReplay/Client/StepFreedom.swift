/// Determines which of the stanzas that a script expects may be missing in the replay.
struct StepFreedom: Sendable {
    /// For each step with an optional stanza, the reason why the server may omit it.
    private var options: [Int: StanzaOption] = [:]
    /// The steps that expect events of items which were published before the recording.
    private var earlierEvents: Set<Int> = []
    /// For each client, the state of its optional stanzas after the steps so far.
    private var stanzas: [OptionalStanzas]
    /// The clients that have closed their streams. Whether a server still sends errors for their last stanzas is up to
    /// the server.
    private var closed: Set<Int> = []

    init(_ stanzas: [OptionalStanzas]) { self.stanzas = stanzas }

    // MARK: The steps, in order

    /// Continues the session of an earlier client with the client that resumes it.
    mutating func resume(_ earlier: Int, by client: Int) { stanzas[client] = stanzas[earlier] }

    /// Stores that a client closes its stream.
    mutating func close(_ client: Int) { closed.insert(client) }

    /// Stores that a client expects a stanza.
    mutating func expect(_ stanza: StanzaForm, _ client: Int, at step: Int, _ script: ReplayScript) {
        options[step] = stanzas[client].option(stanza, script.roles)
        if closed.contains(client), stanza.type == "error", options[step] == nil {
            options[step] = StanzaOption("RFC 6120 §4.4: the client had closed its stream")
        }
        if script.earlierData.isEarlier(stanza, at: step, receivedBy: script.clients[client].account) {
            earlierEvents.insert(step)
        }
    }

    // MARK: Queries

    /// Returns why the server may omit the stanza of a step; nil if it may not.
    func option(at step: Int) -> StanzaOption? { options[step] }

    /// Returns whether a step expects an event of an item that was published before the recording.
    func isEarlierEvent(_ step: Int) -> Bool { earlierEvents.contains(step) }

    /// Returns whether the stanza of a step may be missing.
    func mayBeMissing(_ step: Int) -> Bool { options[step] != nil || earlierEvents.contains(step) }
}
