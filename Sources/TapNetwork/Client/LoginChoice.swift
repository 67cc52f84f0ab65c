internal import TapCore
internal import TapSecurity
internal import XMPPCore

/// The properties of a connection that a client needs for its login.
struct ClientChannel: Sendable, Hashable {
    /// TLS version number of the handshake; nil without TLS.
    var tlsVersion: UInt16?
    /// Channel bindings that the login can use, the best first.
    var bindings: [ChannelBinding] = []

    /// Creates the properties of a connection without TLS.
    init() {}

    /// Creates the properties of a connection with TLS.
    init(_ engine: TLSEngine) {
        let leg = engine.securedLeg
        tlsVersion = leg?.version
        bindings = leg?.bindings ?? []
    }

    var isSecure: Bool { tlsVersion != nil }

    /// Version and bindings of TLS; nil without TLS.
    var leg: SecuredLeg? { tlsVersion.map { SecuredLeg(version: $0, bindings: bindings) } }
}

/// The parameters of a login: profile, mechanism and channel binding.
struct LoginChoice: Sendable, Hashable {
    /// The SASL profile: SASL or SASL2.
    enum Profile: Sendable, Hashable {
        /// SASL (RFC 6120 §6).
        case sasl
        /// SASL2 (XEP-0388); `bindsInline` if the server offers inline resource binding (XEP-0386).
        case sasl2(bindsInline: Bool)

        var namespace: Namespace { self == .sasl ? .sasl : .sasl2 }
    }

    /// The SASL profile.
    var profile: Profile
    /// The mechanism's registered name.
    var mechanism: String
    /// The client's claim about channel binding, for SCRAM.
    var binding: BindingClaim
    /// The server's offer, which the server may sign (XEP-0474, XEP-0515).
    var offer: LoginOffer
    /// Why the login has no channel binding although the server supports it; nil if it has channel binding, or the
    /// server does not support it.
    var remark: String?

    /// Returns the strongest login that both the server and this client support; nil if there is none.
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
