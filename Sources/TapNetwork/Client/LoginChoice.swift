internal import TapCore
internal import TapSecurity
internal import XMPPCore

/// The properties of a connection that a client needs for its login.
struct ClientChannel: Sendable, Hashable {
    /// The version of TLS as in its handshake; nil without TLS.
    var tlsVersion: UInt16?
    /// Channel bindings that the login can use, the best first.
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

    /// Its TLS; nil in clear.
    var leg: SecuredLeg? { tlsVersion.map { SecuredLeg(version: $0, bindings: bindings) } }
}

/// How a client logs in: by which profile, mechanism and channel binding.
struct LoginChoice: Sendable, Hashable {
    /// Which form of SASL carries it.
    enum Profile: Sendable, Hashable {
        /// RFC 6120 §6.
        case sasl
        /// XEP-0388; with resource binding (XEP-0386) if offered.
        case sasl2(bindsInline: Bool)

        var namespace: Namespace { self == .sasl ? .sasl : .sasl2 }
    }

    /// Which form of SASL carries it.
    var profile: Profile
    /// The mechanism's registered name.
    var mechanism: String
    /// The client's claim about channel binding, for SCRAM.
    var binding: BindingClaim
    /// The offer as the server may sign it.
    var offer: LoginOffer
    /// Why the login has no channel binding although the server supports it; nil if it has.
    var remark: String?

    /// The strongest login that is offered and supported; nil if there is none.
    ///
    /// SASL2 is preferred if it is offered, as in clients that support both; ``MechanismChoice`` selects the mechanism.
    /// PLAIN sends the password only if nothing better is offered, and only inside TLS or if `isLocal` says that the
    /// connection does not leave this machine.
    static func strongest(
        of features: StreamFeatures,
        on channel: ClientChannel,
        isLocal: Bool = false
    ) -> LoginChoice? {
        if let mechanisms = features.sasl2Mechanisms {
            let profile = Profile.sasl2(bindsInline: features.offersInlineBinding)
            if let choice = choose(profile, mechanisms, features, channel, isLocal) { return choice }
        }
        return choose(.sasl, features.mechanisms, features, channel, isLocal)
    }

    private static func choose(
        _ profile: Profile,
        _ mechanisms: [String],
        _ features: StreamFeatures,
        _ channel: ClientChannel,
        _ isLocal: Bool
    ) -> LoginChoice? {
        let offer = LoginOffer(
            mechanisms: mechanisms,
            bindingTypes: features.channelBindings,
            tlsVersion: channel.tlsVersion
        )
        let choice = MechanismChoice(
            of: mechanisms,
            bindingTypes: features.channelBindings,
            on: channel.leg,
            by: .init(mechanisms: SCRAMMechanism.byPassword, mayShowPassword: channel.isSecure || isLocal)
        )
        return choice.map { choice in
            LoginChoice(
                profile: profile,
                mechanism: choice.mechanism,
                binding: choice.binding,
                offer: offer,
                remark: choice.remark
            )
        }
    }
}
