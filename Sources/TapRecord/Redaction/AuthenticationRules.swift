import XMPPCore

// SASL (RFC 6120 §6), SASL2 (XEP-0388) with what it carries inline, and the ways of logging in before them.
//
// Whatever an authentication element holds that no rule shows is hidden: a new mechanism or extension must not leak
// before somebody has written a rule for it.
extension SecretRules {
    static let authentication: [SecretRule] =
        sasl + sasl2 + inline + [
            // Component handshake (XEP-0114), dialback keys (XEP-0220).
            SecretRule("handshake", nil, .secret(.handshake)),
            SecretRule("result", .dialback, .secret(.dialbackKey)),
            SecretRule("verify", .dialback, .secret(.dialbackKey)),
            SecretRule(nil, .dialback, .inherited),
            // Authentication before SASL (XEP-0078).
            SecretRule("query", .iqAuth, .guarded(.password)),
            SecretRule("username", .iqAuth, .shown),
            SecretRule("resource", .iqAuth, .shown),
            SecretRule("password", .iqAuth, .secret(.password)),
            SecretRule("digest", .iqAuth, .secret(.passwordDigest)),
            SecretRule(nil, .iqAuth, .secret(.password)),
        ]

    private static let sasl: [SecretRule] = [
        // A client whose author forgot the namespace, or misspelt it, sends its password all the same.
        SecretRule("auth", nil, .sasl(.initial), shown: ["mechanism"]),
        SecretRule("initial-response", nil, .sasl(.initial)),
        SecretRule("response", nil, .sasl(.response)),
        SecretRule("auth", .sasl, .sasl(.initial), shown: ["mechanism"]),
        SecretRule("challenge", .sasl, .sasl(.challenge)),
        SecretRule("response", .sasl, .sasl(.response)),
        SecretRule("success", .sasl, .sasl(.success)),
        SecretRule("mechanisms", .sasl, .shown),
        SecretRule("mechanism", .sasl, .shown),
        SecretRule("hostname", .sasl, .shown),
        SecretRule("failure", .sasl, .shown),
        SecretRule("text", .sasl, .shown),
        SecretRule("abort", .sasl, .guarded(.saslOther)),
        // A condition of a failure, or something unheard of.
        SecretRule(nil, .sasl, .guarded(.saslOther)),
    ]

    private static let sasl2: [SecretRule] = [Namespace.sasl2, .sasl2Legacy].flatMap { namespace in
        [
            SecretRule("authentication", namespace, .shown),
            SecretRule("mechanism", namespace, .shown),
            SecretRule("inline", namespace, .shown),
            SecretRule("authenticate", namespace, .guarded(.saslOther), shown: ["mechanism"]),
            SecretRule("initial-response", namespace, .sasl(.initial)),
            SecretRule("challenge", namespace, .sasl(.challenge)),
            SecretRule("response", namespace, .sasl(.response)),
            SecretRule("success", namespace, .guarded(.saslOther)),
            SecretRule("continue", namespace, .guarded(.saslOther)),
            SecretRule("additional-data", namespace, .sasl(.success)),
            SecretRule("authorization-identifier", namespace, .shown),
            SecretRule("failure", namespace, .shown),
            SecretRule("text", namespace, .shown),
            SecretRule("abort", namespace, .guarded(.saslOther)),
            SecretRule("tasks", namespace, .shown),
            SecretRule("task", namespace, .shown),
            SecretRule("next", namespace, .secret(.saslTask), shown: ["task"]),
            SecretRule("task-data", namespace, .secret(.saslTask)),
            SecretRule(
                "user-agent",
                namespace,
                .guarded(.saslOther),
                attributes: [.init("id", .deviceID)]
            ),
            SecretRule("software", namespace, .shown),
            SecretRule("device", namespace, .secret(.deviceName)),
            SecretRule(nil, namespace, .guarded(.saslOther)),
        ]
    }

    /// What stands in an `<authenticate/>` or its `<success/>`, and is known to hold no secret but by its own rules.
    private static let inline: [SecretRule] = [
        SecretRule(nil, .bind2, .shown),
        SecretRule(nil, .bind2Legacy, .shown),
        SecretRule(nil, .bind, .shown),
        SecretRule(nil, .carbons, .shown),
        SecretRule(nil, .clientState, .shown),
        SecretRule(nil, .archive, .shown),
        SecretRule(nil, .saslChannelBinding, .shown),
        SecretRule(nil, .saslUpgrade, .shown),
        SecretRule(nil, .stanzaErrors, .shown),
        // FAST (XEP-0484) and instant resumption (XEP-0397).
        SecretRule("mechanism", .fast, .shown),
        SecretRule("fast", .fast, .shown),
        SecretRule("request-token", .fast, .shown),
        SecretRule(
            "token",
            .fast,
            .secret(.token),
            attributes: [.init("token", .token)],
            shown: ["expiry"]
        ),
        SecretRule(nil, .fast, .guarded(.token)),
        SecretRule("isr", .isr, .shown),
        SecretRule("mechanism", .isr, .shown),
        SecretRule("isr-enable", .isr, .shown),
        SecretRule(
            nil,
            .isr,
            .guarded(.token),
            attributes: [.init("previd", .smID), .init("location", .smLocation), .init("token", .token)],
            shown: ["h", "mechanism"]
        ),
        // The upgrade of stored SCRAM secrets (XEP-0480): the hash is as good as the password.
        SecretRule("upgrade", .scramUpgrade, .shown),
        SecretRule(nil, .scramUpgrade, .secret(.scramSecret)),
    ]
}
