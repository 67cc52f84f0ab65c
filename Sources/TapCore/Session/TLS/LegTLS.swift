/// How TLS begins on a leg where this program ends it.
public enum LegTLS: String, Sendable, Hashable, CaseIterable {
    /// As on the other leg: by STARTTLS, from the first byte, or not at all, as the client begins and the server offers.
    case auto
    /// As with ``auto``, and a session that goes on without is refused.
    case required
    /// From the first byte on (XEP-0368), whatever the other leg does.
    case direct
    /// Never: the leg stays in clear, whatever the other does.
    case off
}

/// TLS of a session whose legs do not begin it together, until it has begun. Where they do, the client's request goes to
/// the server and the server's consent to the client.
struct AsymmetricTLS {
    enum Way {
        /// The client's request for TLS is answered here; until then the server hears nothing.
        case answering
        /// The server is asked for TLS from here; the client hears nothing of the stream in which that happens.
        case asking
        /// TLS with the server begins from here, before the first byte of the client's stream.
        case preceding
    }

    var way: Way
    /// What the client has opened its stream with: said again, or only then, when the server's TLS is up.
    var opening: [UInt8] = []
    /// That is whole.
    var isOpen = false
    /// The client has been given a stream by this program.
    var hasAnswered = false
    /// The server has been asked for TLS.
    var hasAsked = false

    /// Nil where both legs begin together.
    init?(_ options: SessionOptions) {
        guard options.holdsProceed else { return nil }
        switch (options.clientTLS, options.serverTLS) {
        case (.off, .auto), (.off, .required): way = .asking
        case (.off, .direct): way = .preceding
        case (.off, .off): return nil
        case (_, .direct), (_, .off): way = .answering
        default: return nil
        }
    }
}
