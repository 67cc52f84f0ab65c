/// A SCRAM client's claim about channel binding: the flag of its GS2 header (RFC 5802 §6).
package enum BindingClaim: Hashable, Sendable {
    /// The client does not support channel binding: `n`.
    case unsupported
    /// The client supports channel binding, but the server did not offer it: `y`.
    case notOffered
    /// The client uses this binding; requires a `-PLUS` mechanism.
    case bound(ChannelBinding)

    /// The binding; nil if there is none.
    package var binding: ChannelBinding? {
        if case .bound(let binding) = self { return binding }
        return nil
    }
}

/// The TLS connection of a leg.
package struct SecuredLeg: Sendable, Hashable {
    /// The TLS version number, such as 0x0304 for TLS 1.3.
    package var version: UInt16
    /// The connection's channel bindings, best first: those of `tls-exporter`, `tls-unique` and `tls-server-end-point`
    /// that are defined for the connection.
    package var bindings: [ChannelBinding]

    /// Creates a description of a TLS connection.
    package init(version: UInt16, bindings: [ChannelBinding]) {
        self.version = version
        self.bindings = bindings
    }
}

/// The mechanism and channel binding of a login, for every login that xmpptap itself performs.
package struct MechanismChoice: Sendable, Hashable {
    /// The abilities of the client.
    package struct Means: Sendable, Hashable {
        /// The mechanisms without `-PLUS`, strongest first: the SCRAM mechanisms, and `PLAIN`.
        package var mechanisms: [String]
        /// Whether the password may be sent with `PLAIN`.
        package var mayShowPassword: Bool
        /// Whether the TLS connection presents a client certificate for `EXTERNAL` (XEP-0178).
        package var hasCertificate: Bool

        /// Creates a description of the client's abilities.
        package init(mechanisms: [String], mayShowPassword: Bool, hasCertificate: Bool = false) {
            self.mechanisms = mechanisms
            self.mayShowPassword = mayShowPassword
            self.hasCertificate = hasCertificate
        }
    }

    /// The mechanism's registered name.
    package var mechanism: String
    /// The claim about channel binding, for SCRAM.
    package var binding: BindingClaim
    /// Why the login is not bound although the server offers channel binding; nil otherwise.
    package var remark: String?

    package init(mechanism: String, binding: BindingClaim = .unsupported, remark: String? = nil) {
        self.mechanism = mechanism
        self.binding = binding
        self.remark = remark
    }

    /// Chooses the strongest login that the server offers and the client supports: SCRAM with channel binding, SCRAM
    /// without it, `PLAIN`, and `EXTERNAL` if a password cannot be used. Returns nil if no login is possible.
    ///
    /// - Parameters:
    ///   - offered: The mechanisms that the server offers in the SASL profile in use.
    ///   - types: The channel binding types that the server lists (XEP-0440); nil if it sends no list.
    ///   - leg: The client's TLS connection; nil without TLS.
    package init?(of offered: [String], bindingTypes types: [String]?, on leg: SecuredLeg?, by means: Means) {
        let scram = means.mechanisms.filter { $0 != Self.plain }
        let unbound = scram.first(where: offered.contains)
        let binding = Self.binding(types, leg)
        if let binding, !binding.isGuess || unbound == nil,
            let name = scram.first(where: { offered.contains($0 + Self.plus) })
        {
            self.init(mechanism: name + Self.plus, binding: .bound(binding.binding))
        } else if let unbound {
            // Flag `y` claims that the server offers no binding; a server that offers it refuses the flag (RFC 5802
            // §6).
            let serverBinds = offered.contains { $0.hasSuffix(Self.plus) }
            let claim: BindingClaim = serverBinds || leg?.bindings.isEmpty != false ? .unsupported : .notOffered
            self.init(mechanism: unbound, binding: claim)
            if serverBinds, let leg {
                let isBindable = binding.map { !$0.isGuess } ?? false
                remark = isBindable ? Self.otherMechanisms(scram) : Self.unbound(types, leg)
            }
        } else if means.mayShowPassword, offered.contains(Self.plain), means.mechanisms.contains(Self.plain) {
            self.init(mechanism: Self.plain)
        } else if means.hasCertificate, offered.contains(Self.external) {
            self.init(mechanism: Self.external)
        } else {
            return nil
        }
    }

    /// Returns the channel binding to use: the best that the server lists and the connection supports.
    ///
    /// If the server sends no list, `tls-unique` is the default (RFC 5802 §6.1). If that is undefined, `tls-exporter`
    /// is a guess on TLS 1.3 (RFC 9266 §3), which older servers such as ejabberd 23.01 refuse.
    private static func binding(_ types: [String]?, _ leg: SecuredLeg?) -> (binding: ChannelBinding, isGuess: Bool)? {
        guard let leg else { return nil }
        if let types { return leg.bindings.first { types.contains($0.type) }.map { ($0, false) } }
        if let unique = leg.bindings.first(where: { $0.type == "tls-unique" }) { return (unique, false) }
        let isNew = leg.version >= 0x0304
        return leg.bindings.first { isNew || $0.type != "tls-exporter" }.map { ($0, true) }
    }

    private static func unbound(_ types: [String]?, _ leg: SecuredLeg) -> String {
        guard let types else {
            return "the server offers channel binding without a list of types (XEP-0440), and tls-unique, the "
                + "default, is not defined on this connection"
        }
        let own = leg.bindings.map(\.type).joined(separator: ", ")
        return "the server offers the channel bindings \(types.joined(separator: ", ")), this connection has "
            + (own.isEmpty ? "none" : own)
    }

    private static func otherMechanisms(_ own: [String]) -> String {
        "the server offers channel binding for none of the mechanisms that the account has a secret for (\(own.joined(separator: ", ")))"
    }

    private static let plain = "PLAIN"
    private static let external = "EXTERNAL"
    private static let plus = "-PLUS"
}
