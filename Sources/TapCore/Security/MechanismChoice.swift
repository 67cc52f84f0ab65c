/// What a client of SCRAM says of channel binding: the flag of its GS2 header (RFC 5802 §6).
public enum BindingClaim: Hashable, Sendable {
    /// The client cannot bind: `n`.
    case unsupported
    /// The client could, and the server did not offer it: `y`.
    case notOffered
    /// The client binds; needs a `-PLUS` mechanism.
    case bound(ChannelBinding)

    /// The binding, where there is one.
    public var binding: ChannelBinding? {
        if case .bound(let binding) = self { return binding }
        return nil
    }
}

/// A leg's TLS connection, as the driver knows it.
public struct SecuredLeg: Sendable, Hashable {
    /// The version of TLS, as in the protocol.
    public var version: UInt16
    /// Its bindings, the best first: `tls-exporter`, `tls-unique`, `tls-server-end-point`, as far as they are defined on it.
    public var bindings: [ChannelBinding]

    /// A connection of these properties.
    public init(version: UInt16, bindings: [ChannelBinding]) {
        self.version = version
        self.bindings = bindings
    }
}

/// By which mechanism a client logs in, and what it says of channel binding: the one rule for every login that this program
/// makes itself.
public struct MechanismChoice: Sendable, Hashable {
    /// What the client can do.
    public struct Means: Sendable, Hashable {
        /// Mechanisms without their `-PLUS`, the strongest first: SCRAM's, and `PLAIN`.
        public var mechanisms: [String]
        /// Whether a password may be shown, by `PLAIN`.
        public var mayShowPassword: Bool
        /// Whether the connection shows a certificate by which it can log in (`EXTERNAL`, XEP-0178).
        public var hasCertificate: Bool

        /// A client of these abilities.
        public init(mechanisms: [String], mayShowPassword: Bool, hasCertificate: Bool = false) {
            self.mechanisms = mechanisms
            self.mayShowPassword = mayShowPassword
            self.hasCertificate = hasCertificate
        }
    }

    /// The mechanism's registered name.
    public var mechanism: String
    /// What is said of channel binding, of SCRAM.
    public var binding: BindingClaim
    /// Why the login is not bound although the server would; nil where there is nothing to say.
    public var remark: String?

    /// Puts a choice together.
    public init(mechanism: String, binding: BindingClaim = .unsupported, remark: String? = nil) {
        self.mechanism = mechanism
        self.binding = binding
        self.remark = remark
    }

    /// The strongest login that a server offers and the client can do: bound to the TLS connection first, then unbound, then
    /// `PLAIN`, and by a certificate where no password will do. Nil where there is none.
    ///
    /// - Parameters:
    ///   - offered: The mechanisms of the profile in use, as the server names them.
    ///   - types: The types of channel binding that the server names (XEP-0440); nil where it has no such list.
    ///   - leg: The client's TLS connection; nil without it.
    public init?(of offered: [String], bindingTypes types: [String]?, on leg: SecuredLeg?, by means: Means) {
        let scram = means.mechanisms.filter { $0 != Self.plain }
        let unbound = scram.first(where: offered.contains)
        let binding = Self.binding(types, leg)
        if let binding, !binding.isGuess || unbound == nil,
            let name = scram.first(where: { offered.contains($0 + Self.plus) })
        {
            self.init(mechanism: name + Self.plus, binding: .bound(binding.binding))
        } else if let unbound {
            // "y" is for a server that offers no binding at all, and is refused by one that does (RFC 5802 §6).
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

    /// The binding to use: the best of those that the server names and the connection has.
    ///
    /// Without a list it is `tls-unique`, which RFC 5802 §6.1 makes the default. Where that is not defined there is but a
    /// guess: `tls-exporter` on TLS 1.3 (RFC 9266 §3), which servers of before that refuse, as ejabberd 23.01 does.
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
