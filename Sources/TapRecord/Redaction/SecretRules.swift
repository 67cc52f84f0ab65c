internal import XMPPCore

// SASL (RFC 6120 §6), SASL2 (XEP-0388) with its inline features, and older authentication protocols.
//
// Content of an authentication element is hidden unless a rule shows it: a new mechanism or extension must not leak
// before there is a rule for it.
extension SecretRules {
    static let authentication: [SecretRule] =
        sasl + sasl2 + inline + shown(.iqAuth, "username", "resource") + [
            // Component handshake (XEP-0114), dialback keys (XEP-0220).
            SecretRule("handshake", nil, .secret(.handshake)),
            SecretRule("result", .dialback, .secret(.dialbackKey)),
            SecretRule("verify", .dialback, .secret(.dialbackKey)),
            SecretRule(nil, .dialback, .inherited),
            // Authentication before SASL (XEP-0078).
            SecretRule("query", .iqAuth, .guarded(.password)),
            SecretRule("password", .iqAuth, .secret(.password)),
            SecretRule("digest", .iqAuth, .secret(.passwordDigest)),
            SecretRule(nil, .iqAuth, .secret(.password)),
        ]

    /// Rules that show the contents of elements with these names.
    private static func shown(_ namespace: Namespace, _ names: StaticString...) -> [SecretRule] {
        names.map { SecretRule($0, namespace, .shown) }
    }

    /// Rules for elements with these names, in any namespace.
    private static func secret(_ kind: SecretKind, _ names: StaticString...) -> [SecretRule] {
        names.map { SecretRule($0, nil, .secret(kind)) }
    }

    private static let sasl: [SecretRule] =
        shown(.sasl, "mechanisms", "mechanism", "hostname", "failure", "text") + [
            // A client that omits or misspells the namespace sends its password nevertheless.
            SecretRule("auth", nil, .sasl(.initial), shown: ["mechanism"]),
            SecretRule("initial-response", nil, .sasl(.initial)),
            SecretRule("response", nil, .sasl(.response)),
            SecretRule("auth", .sasl, .sasl(.initial), shown: ["mechanism"]),
            SecretRule("challenge", .sasl, .sasl(.challenge)),
            SecretRule("response", .sasl, .sasl(.response)),
            SecretRule("success", .sasl, .sasl(.success)),
            SecretRule("abort", .sasl, .guarded(.saslOther)),
            // A condition of a failure, or an unknown element.
            SecretRule(nil, .sasl, .guarded(.saslOther)),
        ]

    private static let sasl2: [SecretRule] = [Namespace.sasl2, .sasl2Legacy].flatMap { namespace in
        shown(
            namespace,
            "authentication",
            "mechanism",
            "inline",
            "authorization-identifier",
            "failure",
            "text",
            "tasks",
            "task",
            "software"
        ) + [
            SecretRule("authenticate", namespace, .guarded(.saslOther), shown: ["mechanism"]),
            SecretRule("initial-response", namespace, .sasl(.initial)),
            SecretRule("challenge", namespace, .sasl(.challenge)),
            SecretRule("response", namespace, .sasl(.response)),
            SecretRule("success", namespace, .guarded(.saslOther)),
            SecretRule("continue", namespace, .guarded(.saslOther)),
            SecretRule("additional-data", namespace, .sasl(.success)),
            SecretRule("abort", namespace, .guarded(.saslOther)),
            SecretRule("next", namespace, .secret(.saslTask), shown: ["task"]),
            SecretRule("task-data", namespace, .secret(.saslTask)),
            SecretRule(
                "user-agent",
                namespace,
                .guarded(.saslOther),
                attributes: [.init("id", .deviceID)]
            ),
            SecretRule("device", namespace, .secret(.deviceName)),
            SecretRule(nil, namespace, .guarded(.saslOther)),
        ]
    }

    /// Inline elements of `<authenticate/>` and `<success/>`: they contain no secrets except those that have a rule.
    private static let inline: [SecretRule] =
        [
            Namespace.bind2, .bind2Legacy, .bind, .carbons, .clientState, .archive, .saslChannelBinding, .saslUpgrade,
            .stanzaErrors,
        ].map { SecretRule(nil, $0, .shown) } + shown(.fast, "mechanism", "fast", "request-token")
        + shown(.isr, "isr", "mechanism", "isr-enable") + tokens

    private static let tokens: [SecretRule] = [
        // FAST (XEP-0484) and instant resumption (XEP-0397).
        SecretRule(
            "token",
            .fast,
            .secret(.token),
            attributes: [.init("token", .token)],
            shown: ["expiry"]
        ),
        SecretRule(nil, .fast, .guarded(.token)),
        SecretRule(
            nil,
            .isr,
            .guarded(.token),
            attributes: [.init("previd", .smID), .init("location", .smLocation), .init("token", .token)],
            shown: ["h", "mechanism"]
        ),
        // The upgrade of stored SCRAM secrets (XEP-0480): the hash is equivalent to the password.
        SecretRule("upgrade", .scramUpgrade, .shown),
        SecretRule(nil, .scramUpgrade, .secret(.scramSecret)),
    ]

    // MARK: Handles of a session: anyone who has one may take over the session

    static let session: [SecretRule] =
        [Namespace.streamManagement, .streamManagement2].flatMap { namespace in
            [
                // Stream management (XEP-0198).
                SecretRule(
                    "enabled",
                    namespace,
                    .shown,
                    attributes: [.init("id", .smID), .init("location", .smLocation)]
                ),
                SecretRule("resume", namespace, .shown, attributes: [.init("previd", .smID)]),
                SecretRule(
                    "resumed",
                    namespace,
                    .shown,
                    attributes: [.init("previd", .smID), .init("location", .smLocation)]
                ),
                SecretRule(nil, namespace, .shown),
            ]
        } + [
            // BOSH (XEP-0124).
            SecretRule(
                nil,
                .httpBind,
                .inherited,
                attributes: [.init("sid", .boshID), .init("key", .boshKey), .init("newkey", .boshKey)]
            )
        ]

    // MARK: Passwords, keys and tokens of accounts, rooms and services
    // Secrets that are found by name, in any namespace: registration (XEP-0077), rooms (XEP-0045, XEP-0249), bookmarks
    // (XEP-0048, XEP-0402), provisioning (XEP-0227), OAuth (XEP-0235).

    static let accounts: [SecretRule] = passwords + registration + forms

    private static let passwords: [SecretRule] =
        secret(.password, "password", "passwd", "passphrase", "passcode", "pass", "pwd")
        + secret(.key, "credential", "secret", "shared-secret", "key") + secret(.token, "token")
        + secret(.secretKey, "secretkey", "private-key", "private_key")
        + secret(.scramSecret, "server-key", "stored-key")
        + shown(.oauth, "oauth_version", "oauth_timestamp", "oauth_signature_method") + containers

    private static let containers: [SecretRule] = [
        // A vCard has its names in upper case (XEP-0054 §2).
        SecretRule("KEY", nil, .guarded(.key)),
        SecretRule("TYPE", .vCard, .shown),
        SecretRule("oauth", nil, .guarded(.oauth)),
        SecretRule(nil, .oauth, .secret(.oauth)),

        // Pre-authentication tokens, which are given out with invitations (XEP-0379, XEP-0401, XEP-0445).
        SecretRule(nil, .preauth, .guarded(.preauthToken), attributes: [.init("token", .preauthToken)]),
    ]

    /// Servers and gateways choose the requested fields (XEP-0077 §4), so a field with an unknown name may contain a
    /// password.
    private static let registration: [SecretRule] =
        [SecretRule("query", .register, .registration), SecretRule(nil, .register, .guarded(.formSecret))]
        + [
            "instructions", "registered", "remove", "username", "nick", "name", "first", "last", "email", "address",
            "city", "state", "zip", "phone", "url", "date", "misc", "text",
        ].map { SecretRule($0, .register, .shown) }

    /// Values with their names beside them: the fields of data forms (XEP-0004), by `var` and `type`; properties,
    /// parameters and members of structures (XEP-0009), by `name`.
    private static let forms: [SecretRule] =
        ["property", "param", "parameter", "member", "setting"].map {
            SecretRule($0, nil, .pair, shown: ["name", "type"])
        } + shown(.dataForms, "desc", "required") + [
            SecretRule("field", nil, .field),
            SecretRule("value", nil, .value),
            SecretRule("option", nil, .value),
        ]

    // MARK: Files, calls, push, end-to-end encryption

    static let content: [SecretRule] =
        [
            // Push (XEP-0357): anyone who knows node and secret can wake the device.
            SecretRule("notification", .push, .notification),
            // A push service uses this element to report that a node no longer exists.
            SecretRule("affiliation", .pubsub, .notification),
            SecretRule(nil, .push, .inherited, attributes: [.init("node", .pushNode)]),

            // Upload slots (XEP-0363), and HTTP headers in any element (XEP-0131, XEP-0332).
            SecretRule("put", nil, .url, attributes: [.init(queryOf: "url")]),
            SecretRule("get", nil, .url, attributes: [.init(queryOf: "url")]),
            SecretRule("header", nil, .header),

            // Services (XEP-0215), answers to the request of a web site (XEP-0070).
            SecretRule("confirm", .httpAuth, .inherited, attributes: [.init("id", .confirmID)]),

            // OMEMO (XEP-0384) and encrypted files (XEP-0448).
            SecretRule("key", .encryptedFiles, .secret(.fileKey)),
            SecretRule("iv", .encryptedFiles, .secret(.fileKey)),
            SecretRule(nil, .encryptedFiles, .inherited),
        ]
        + [Namespace.serviceDiscoveryExternal, .serviceDiscoveryExternal1].map { namespace in
            SecretRule(
                "service",
                namespace,
                .inherited,
                attributes: [
                    .init("password", .password), .init("username", .serviceUser), .init("expires", .serviceExpiry),
                ]
            )
        }
        + [Namespace.omemo, .omemo1, .omemoLegacy].flatMap { namespace in
            [
                SecretRule("key", namespace, .sized(.omemoKey)),
                SecretRule("payload", namespace, .sized(.omemoPayload)),
                SecretRule("iv", namespace, .sized(.omemoIV)),
                SecretRule(nil, namespace, .inherited),
            ]
        }
}
