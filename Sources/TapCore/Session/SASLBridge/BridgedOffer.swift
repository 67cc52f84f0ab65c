import XMPPCore

/// What a server offers for a login, and what its client is offered instead where the proxy ends the login itself.
struct BridgedOffer: Sendable, Hashable {
    /// The two lists of one profile: SASL (RFC 6120 §6) or SASL2 (XEP-0388).
    struct Profile: Sendable, Hashable {
        /// What the server offers, as it wrote it.
        var server: [String]
        /// What the client is offered.
        var client: [String]
    }

    let sasl: Profile
    let sasl2: Profile
    /// The types of channel binding that the server names (XEP-0440); nil where it has no such list.
    let serverTypes: [String]?
    /// The types that the client is told of; nil where it is offered no `-PLUS`.
    let clientTypes: [String]?

    /// Nil where there is nothing in the offer that can be ended here.
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

    /// The mechanisms of a server's list that can be served to the client, in the server's order.
    private static func served(_ list: [String], _ authenticator: any Authenticator, canBind: Bool) -> [String] {
        let served = list.filter { name in
            authenticator.mechanisms.contains(base(of: name)) && (canBind || !name.hasSuffix(plus))
        }
        // Where the server takes certificates alone, the client shows its password to the proxy by what is there.
        guard served.isEmpty, list.contains("EXTERNAL"), authenticator.hasCertificate else { return served }
        return authenticator.mechanisms.flatMap { name -> [String] in
            guard name != "PLAIN" else { return canBind ? [name] : [] }
            return canBind ? [name + plus, name] : [name]
        }
    }

    func profile(isSASL2: Bool) -> Profile { isSASL2 ? sasl2 : sasl }

    /// The change in the features that makes them this offer. Tokens (XEP-0484) and instant resumption (XEP-0397) go: the
    /// server would bind them to the proxy's own login.
    var edit: FeaturesEdit {
        var edit = FeaturesEdit()
        edit.mechanisms = .replace(sasl.client)
        edit.sasl2Mechanisms = .replace(sasl2.client)
        edit.bindings = .replace(clientTypes ?? [])
        edit.takesOut = { Self.isTiedToMechanism($0.namespace) }
        return edit
    }

    /// Whether what stands in this namespace depends on the mechanism that was used, so that it cannot go through a login
    /// that is ended here.
    static func isTiedToMechanism(_ namespace: Namespace) -> Bool { namespace == .fast || namespace == .isr }

    // MARK: The proxy's own login

    /// The strongest way that the server offers; nil where there is none.
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
