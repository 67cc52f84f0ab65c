import XMPPCore

/// The server's login offer, and xmpptap's offer to the client.
struct BridgedOffer: Sendable, Hashable {
    /// The mechanisms of one profile: SASL (RFC 6120 §6) or SASL2 (XEP-0388).
    struct Profile: Sendable, Hashable {
        /// The server's mechanisms, as received.
        var server: [String]
        /// The mechanisms offered to the client.
        var client: [String]
    }

    let sasl: Profile
    let sasl2: Profile
    /// The server's channel binding types (XEP-0440); nil if it sends no list.
    let serverTypes: [String]?
    /// The channel binding types that the client is offered; nil if it is offered no `-PLUS` mechanism.
    let clientTypes: [String]?

    /// Creates the offer to the client; nil if xmpptap supports none of the server's mechanisms.
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

    /// Returns the mechanisms in a server's list that xmpptap can offer the client, in the server's order.
    private static func served(_ list: [String], _ authenticator: any Authenticator, canBind: Bool) -> [String] {
        let served = list.filter { name in
            authenticator.mechanisms.contains(base(of: name)) && (canBind || !name.hasSuffix(plus))
        }
        // If EXTERNAL is the only mechanism that xmpptap can use with the server, the client is offered the mechanisms
        // that xmpptap itself supports.
        guard served.isEmpty, list.contains("EXTERNAL"), authenticator.hasCertificate else { return served }
        return authenticator.mechanisms.flatMap { name -> [String] in
            guard name != "PLAIN" else { return canBind ? [name] : [] }
            return canBind ? [name + plus, name] : [name]
        }
    }

    func profile(isSASL2: Bool) -> Profile { isSASL2 ? sasl2 : sasl }

    /// The edit that turns the server's features into this offer. It removes tokens (XEP-0484) and instant stream
    /// resumption (XEP-0397), because the server would bind them to xmpptap's own login.
    var edit: FeaturesEdit {
        var edit = FeaturesEdit()
        edit.mechanisms = .replace(sasl.client)
        edit.sasl2Mechanisms = .replace(sasl2.client)
        edit.bindings = .replace(clientTypes ?? [])
        edit.takesOut = { Self.isTiedToMechanism($0.namespace) }
        return edit
    }

    /// Returns whether elements of this namespace depend on the mechanism, so that xmpptap cannot relay them in its own
    /// login.
    static func isTiedToMechanism(_ namespace: Namespace) -> Bool { namespace == .fast || namespace == .isr }

    // MARK: The proxy's own login

    /// Chooses the strongest mechanism that the server offers; nil if there is none.
    ///
    /// - Parameter server: The TLS connection of the server leg; nil without TLS.
    func choice(isSASL2: Bool, server: SecuredLeg?, by means: MechanismChoice.Means) -> MechanismChoice? {
        MechanismChoice(of: profile(isSASL2: isSASL2).server, bindingTypes: serverTypes, on: server, by: means)
    }

    static let plus = "-PLUS"

    static func base(of mechanism: String) -> String {
        mechanism.hasSuffix(plus) ? String(mechanism.dropLast(plus.count)) : mechanism
    }
}
