import XMPPCore

/// What a server offers for a login, and what its client is offered instead where the proxy ends the login itself.
struct TerminatedOffer: Sendable, Hashable {
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
    init?(_ features: StreamFeatures, _ desk: any LoginDesk, client: SecuredLeg?) {
        let types = client?.bindings.map(\.type) ?? []
        func profile(_ server: [String]) -> Profile {
            Profile(server: server, client: Self.served(server, desk, canBind: !types.isEmpty))
        }
        sasl = profile(features.mechanisms)
        sasl2 = profile(features.sasl2Mechanisms ?? [])
        let offered = sasl.client + sasl2.client
        guard !offered.isEmpty else { return nil }
        serverTypes = features.channelBindings
        clientTypes = offered.contains { $0.hasSuffix(Self.plus) } ? types : nil
    }

    /// The mechanisms of a server's list that can be served to the client, in the server's order.
    private static func served(_ list: [String], _ desk: any LoginDesk, canBind: Bool) -> [String] {
        let served = list.filter { name in
            desk.mechanisms.contains(base(of: name)) && (canBind || !name.hasSuffix(plus))
        }
        // Where the server takes certificates alone, the client shows its password to the proxy by what is there.
        guard served.isEmpty, list.contains("EXTERNAL"), desk.hasCertificate else { return served }
        return desk.mechanisms.flatMap { name -> [String] in
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

    /// How the proxy logs in to the server.
    struct Choice: Equatable {
        var mechanism: String
        var binding: ChannelBinding?
        /// It says that it could bind, and that the server offers no binding.
        var deniesBinding = false
    }

    /// The strongest way that the server offers: bound to its TLS connection first, then unbound, and by a certificate where
    /// no password will do.
    ///
    /// - Parameters:
    ///   - server: TLS of the server's leg; nil without it.
    ///   - mayShowPassword: Whether PLAIN will do.
    func choice(isSASL2: Bool, _ desk: any LoginDesk, server: SecuredLeg?, mayShowPassword: Bool) -> Choice? {
        let list = profile(isSASL2: isSASL2).server
        let scram = desk.mechanisms.filter { $0 != "PLAIN" }
        let unbound = scram.first(where: list.contains)
        if let binding = binding(server), !isGuess(binding) || unbound == nil,
            let name = scram.first(where: { list.contains($0 + Self.plus) })
        {
            return Choice(mechanism: name + Self.plus, binding: binding)
        }
        if let name = unbound {
            let canBind = server?.bindings.isEmpty == false
            return Choice(mechanism: name, deniesBinding: canBind && !list.contains { $0.hasSuffix(Self.plus) })
        }
        if mayShowPassword, list.contains("PLAIN"), desk.mechanisms.contains("PLAIN") {
            return Choice(mechanism: "PLAIN")
        }
        return list.contains("EXTERNAL") && desk.hasCertificate ? Choice(mechanism: "EXTERNAL") : nil
    }

    /// The binding to use: of the types that the server names, or where it names none, the one that its version of TLS is
    /// bound by (RFC 5929, RFC 9266 §3), failing which the certificate's.
    private func binding(_ leg: SecuredLeg?) -> ChannelBinding? {
        guard let leg else { return nil }
        if let serverTypes { return leg.bindings.first { serverTypes.contains($0.type) } }
        let isNew = leg.version >= 0x0304
        return leg.bindings.first { isNew || $0.type != "tls-exporter" }
    }

    /// Whether the server may not know the binding: those that offer it on TLS 1.3 and name no type (XEP-0440) can be of
    /// before RFC 9266, as ejabberd 23.01 is, which refuses all logins bound there.
    private func isGuess(_ binding: ChannelBinding) -> Bool { serverTypes == nil && binding.type == "tls-exporter" }

    static let plus = "-PLUS"

    static func base(of mechanism: String) -> String {
        mechanism.hasSuffix(plus) ? String(mechanism.dropLast(plus.count)) : mechanism
    }
}
