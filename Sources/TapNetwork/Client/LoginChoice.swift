internal import TapCore
internal import TapSecurity
internal import XMPPCore

/// What of its connection a client needs to know to log in.
struct ClientChannel: Sendable, Hashable {
    /// The version of TLS as in its handshake; nil without TLS.
    var tlsVersion: UInt16?
    /// What the login can be bound to, the best first.
    var bindings: [ChannelBinding] = []

    /// A connection in clear.
    init() {}

    /// A connection by TLS.
    init(_ engine: TLSEngine) {
        let leg = engine.securedLeg
        tlsVersion = leg?.version
        bindings = leg?.bindings ?? []
    }

    var isSecure: Bool { tlsVersion != nil }
}

/// How a client logs in: by which profile, mechanism and channel binding.
struct LoginChoice: Sendable, Hashable {
    /// Which form of SASL carries it.
    enum Profile: Sendable, Hashable {
        /// RFC 6120 §6.
        case sasl
        /// XEP-0388; with the resource bound along with it (XEP-0386) where that is offered.
        case sasl2(bindsInline: Bool)
    }

    /// Which form of SASL carries it.
    var profile: Profile
    /// The mechanism's registered name.
    var mechanism: String
    /// What is said of channel binding, of SCRAM.
    var binding: SCRAMClient.Binding
    /// The offer as the server may sign it.
    var offer: LoginOffer
    /// Why the login is not bound although the server would; nil where there is nothing to say.
    var remark: String?

    /// The strongest login of those that are offered and can be done here; nil where there is none.
    ///
    /// SASL2 comes first where it is offered, as with clients that have both. A password is shown by PLAIN only inside
    /// TLS, and where nothing better is offered.
    static func strongest(of features: StreamFeatures, on channel: ClientChannel) -> LoginChoice? {
        if let mechanisms = features.sasl2Mechanisms {
            let profile = Profile.sasl2(bindsInline: features.offersInlineBinding)
            if let choice = choose(profile, mechanisms, features, channel) { return choice }
        }
        return choose(.sasl, features.mechanisms, features, channel)
    }

    private static func choose(
        _ profile: Profile,
        _ mechanisms: [String],
        _ features: StreamFeatures,
        _ channel: ClientChannel
    ) -> LoginChoice? {
        let offer = LoginOffer(
            mechanisms: mechanisms,
            bindingTypes: features.channelBindings,
            tlsVersion: channel.tlsVersion
        )
        func choice(_ name: String, _ binding: SCRAMClient.Binding, _ remark: String? = nil) -> LoginChoice {
            LoginChoice(profile: profile, mechanism: name, binding: binding, offer: offer, remark: remark)
        }
        let offered = mechanisms.compactMap(SCRAMMechanism.init(name:))
        func strongest(isPlus: Bool) -> SCRAMMechanism? {
            [.sha512, .sha256, .sha1].map { SCRAMMechanism($0, isPlus: isPlus) }.first(where: offered.contains)
        }
        let bound = strongest(isPlus: true)
        if let bound, let binding = binding(features, channel) {
            return choice(bound.description, .bound(binding))
        }
        if let plain = strongest(isPlus: false) {
            // RFC 5802 §6: "y" is for a server that offers no binding at all, and is refused by one that does.
            guard bound != nil, channel.isSecure else {
                return choice(plain.description, channel.bindings.isEmpty ? .unsupported : .notOffered)
            }
            return choice(plain.description, .unsupported, unbound(features, channel))
        }
        guard channel.isSecure, mechanisms.contains("PLAIN") else { return nil }
        return choice("PLAIN", .unsupported)
    }

    /// The best binding that both ends have.
    private static func binding(_ features: StreamFeatures, _ channel: ClientChannel) -> ChannelBinding? {
        if let types = features.channelBindings { return channel.bindings.first { types.contains($0.type) } }
        // Without a list (XEP-0440) it is the one that RFC 5802 §6.1 makes the default, which TLS 1.3 has not.
        return channel.bindings.first { $0.type == ChannelBindingType.unique.rawValue }
    }

    private static func unbound(_ features: StreamFeatures, _ channel: ClientChannel) -> String {
        guard let types = features.channelBindings else {
            return "the server has channel binding and does not say of which type (XEP-0440), and tls-unique, the "
                + "default, is not defined on this connection"
        }
        let own = channel.bindings.map(\.type).joined(separator: ", ")
        return "the server has the bindings \(types.joined(separator: ", ")), this connection has "
            + (own.isEmpty ? "none" : own)
    }
}
