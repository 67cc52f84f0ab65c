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
            // TLS and binding are compared by their use, and mechanisms by their names. After inline binding (XEP-0386) a
            // server need not offer binding.
            case .tls, .sasl, .bind, .session: break
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
