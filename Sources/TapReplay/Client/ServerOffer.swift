package import XMPPCore

/// The offer of a server to a client before the login was complete: mechanisms, features, and protection by TLS.
package struct ServerOffer: Sendable, Hashable {
    /// Whether TLS protected the login; nil if that is unknown.
    package var isEncrypted: Bool?
    /// The names of the mechanisms of SASL and SASL2.
    private var mechanisms: Set<String> = []
    /// The other features as empty tags, such as `<sm xmlns='urn:xmpp:sm:3'/>`.
    private var features: Set<String> = []

    /// Creates an empty offer.
    package init() {}

    /// Adds the features of a stream. A login has up to three streams: before TLS, inside TLS, and after the login.
    package mutating func add(_ stream: StreamFeatures) {
        mechanisms.formUnion(stream.mechanisms)
        mechanisms.formUnion(stream.sasl2Mechanisms ?? [])
        stream.element.forEachElement { feature in
            switch feature.namespace {
            // TLS is compared by its use, and mechanisms by their names.
            case .tls, .sasl: break
            default: features.insert(feature.label)
            }
            return true
        }
    }

    /// Returns the mechanisms and features that this recorded server offered and the live server does not, sorted.
    ///
    /// Without TLS, a server offers neither mechanisms with channel binding nor, if it is careful, PLAIN. If only the
    /// recorded login was protected by TLS, mechanisms are therefore not compared.
    func lost(in live: ServerOffer) -> [String] {
        let lostFeatures = features.subtracting(live.features)
        guard !lostTLS(in: live) else { return lostFeatures.filter { $0 != Self.channelBindings }.sorted() }
        return mechanisms.subtracting(live.mechanisms).sorted() + lostFeatures.sorted()
    }

    /// Returns whether only the recorded login is known to have been protected by TLS.
    func lostTLS(in live: ServerOffer) -> Bool { isEncrypted == true && live.isEncrypted == false }

    /// The feature that lists the types of channel binding (XEP-0440).
    private static let channelBindings = Element.label(
        "sasl-channel-binding",
        Namespace.saslChannelBinding.uri.description
    )
}

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
