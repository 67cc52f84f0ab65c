import XMPPCore

/// The server's login offer, and the proxy's offer to the client.
struct BridgedOffer: Sendable, Hashable {
    /// The two lists of one profile: SASL (RFC 6120 §6) or SASL2 (XEP-0388).
    struct Profile: Sendable, Hashable {
        /// The server's mechanisms, as it wrote them.
        var server: [String]
        /// The mechanisms offered to the client.
        var client: [String]
    }

    let sasl: Profile
    let sasl2: Profile
    /// The server's channel-binding types (XEP-0440); nil without such a list.
    let serverTypes: [String]?
    /// The types offered to the client; nil if it is offered no `-PLUS`.
    let clientTypes: [String]?

    /// Nil if the proxy supports nothing in the offer.
    init?(_ features: StreamFeatures, _ authenticator: any Authenticator, client: SecuredLeg?) {
        let types = client?.bindings.map(\.type) ?? []
        func profile(_ server: [String]) -> Profile {
            Profile(server: server, client: Self.served(server, authenticator, canBind: !types.isEmpty))
        }
        sasl = profile(features.mechanisms)
        sasl2 = profile(features.sasl2Mechanisms ?? [])
        let offered = sasl.client + sasl2.client
        guard !offered.isEmpty else { return nil }
        serverTypes = features.channelBindings
        clientTypes = offered.contains { $0.hasSuffix(Self.plus) } ? types : nil
    }

    /// The mechanisms of a server's list that the proxy can offer the client, in the server's order.
    private static func served(_ list: [String], _ authenticator: any Authenticator, canBind: Bool) -> [String] {
        let served = list.filter { name in
            authenticator.mechanisms.contains(base(of: name)) && (canBind || !name.hasSuffix(plus))
        }
        // If the server accepts only certificates, offer the client the mechanisms of the proxy.
        guard served.isEmpty, list.contains("EXTERNAL"), authenticator.hasCertificate else { return served }
        return authenticator.mechanisms.flatMap { name -> [String] in
            guard name != "PLAIN" else { return canBind ? [name] : [] }
            return canBind ? [name + plus, name] : [name]
        }
    }

    func profile(isSASL2: Bool) -> Profile { isSASL2 ? sasl2 : sasl }

    /// The edit of the features that makes them this offer. It removes tokens (XEP-0484) and instant resumption
    /// (XEP-0397): the server would bind them to the proxy's own login.
    var edit: FeaturesEdit {
        var edit = FeaturesEdit()
        edit.mechanisms = .replace(sasl.client)
        edit.sasl2Mechanisms = .replace(sasl2.client)
        edit.bindings = .replace(clientTypes ?? [])
        edit.takesOut = { Self.isTiedToMechanism($0.namespace) }
        return edit
    }

    /// Whether the elements of this namespace depend on the mechanism, so that the proxy cannot relay them
    /// through its own login.
    static func isTiedToMechanism(_ namespace: Namespace) -> Bool { namespace == .fast || namespace == .isr }

    // MARK: The proxy's own login

    /// The strongest mechanism that the server offers; nil if there is none.
    ///
    /// - Parameter server: TLS of the server's leg; nil without it.
    func choice(isSASL2: Bool, server: SecuredLeg?, by means: MechanismChoice.Means) -> MechanismChoice? {
        MechanismChoice(of: profile(isSASL2: isSASL2).server, bindingTypes: serverTypes, on: server, by: means)
    }

    static let plus = "-PLUS"

    static func base(of mechanism: String) -> String {
        mechanism.hasSuffix(plus) ? String(mechanism.dropLast(plus.count)) : mechanism
    }
}
