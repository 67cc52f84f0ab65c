extension Divergence {
    /// Creates the divergence of an offer that lacks something the recorded server offered; nil if it lacks nothing.
    ///
    /// A login without TLS alone is optional: the caller decides whether TLS is required, and only a server on this
    /// machine is reached without it.
    init?(_ recorded: ServerOffer, _ live: ServerOffer, at moment: Item) {
        let lost = recorded.lost(in: live)
        let withoutTLS = recorded.lostTLS(in: live)
        guard withoutTLS || !lost.isEmpty else { return nil }
        var clauses: [String] = []
        if !lost.isEmpty { clauses.append("the server no longer offers \(lost.joined(separator: ", "))") }
        if withoutTLS { clauses.append("TLS did not protect the login, as it did in the recording") }
        self.init(
            lost.isEmpty ? .optional : .behaviour,
            .session,
            live: moment,
            message: clauses.joined(separator: "; ")
        )
    }
}
