import XMPPCore

// Passwords, keys and tokens of accounts, rooms and services, by name and in whatever namespace: registration
// (XEP-0077), rooms (XEP-0045, XEP-0249), bookmarks (XEP-0048, XEP-0402), provisioning (XEP-0227), OAuth (XEP-0235).
extension SecretRules {
    static let accounts: [SecretRule] = passwords + registration + forms

    private static let passwords: [SecretRule] = [
        SecretRule("password", nil, .secret(.password)),
        SecretRule("passwd", nil, .secret(.password)),
        SecretRule("passphrase", nil, .secret(.password)),
        SecretRule("passcode", nil, .secret(.password)),
        SecretRule("pass", nil, .secret(.password)),
        SecretRule("pwd", nil, .secret(.password)),
        SecretRule("credential", nil, .secret(.key)),
        SecretRule("secret", nil, .secret(.key)),
        SecretRule("shared-secret", nil, .secret(.key)),
        SecretRule("key", nil, .secret(.key)),
        // A vCard has its names in capitals (XEP-0054 §2).
        SecretRule("KEY", nil, .guarded(.key)),
        SecretRule("TYPE", .vCard, .shown),
        SecretRule("token", nil, .secret(.token)),
        SecretRule("secretkey", nil, .secret(.secretKey)),
        SecretRule("private-key", nil, .secret(.secretKey)),
        SecretRule("private_key", nil, .secret(.secretKey)),
        SecretRule("server-key", nil, .secret(.scramSecret)),
        SecretRule("stored-key", nil, .secret(.scramSecret)),

        SecretRule("oauth_version", .oauth, .shown),
        SecretRule("oauth_timestamp", .oauth, .shown),
        SecretRule("oauth_signature_method", .oauth, .shown),
        SecretRule("oauth", nil, .guarded(.oauth)),
        SecretRule(nil, .oauth, .secret(.oauth)),

        // A key that a server owner hands out in advance (XEP-0379, XEP-0401, XEP-0445).
        SecretRule(nil, .preauth, .guarded(.preauthToken), attributes: [.init("token", .preauthToken)]),
    ]

    /// What servers and gateways ask for is up to them (XEP-0077 §4): besides the fields that everybody knows there may be
    /// a password by any name.
    private static let registration: [SecretRule] =
        [SecretRule("query", .register, .registration), SecretRule(nil, .register, .guarded(.formSecret))]
        + [
            "instructions", "registered", "remove", "username", "nick", "name", "first", "last", "email", "address",
            "city", "state", "zip", "phone", "url", "date", "misc", "text",
        ].map { SecretRule($0, .register, .shown) }

    /// What has its name beside it: the fields of data forms (XEP-0004), by `var` and `type`; properties, parameters and
    /// members of structures (XEP-0009), by `name`.
    private static let forms: [SecretRule] = [
        SecretRule("field", nil, .field),
        SecretRule("value", nil, .value),
        SecretRule("option", nil, .value),
        SecretRule("desc", .dataForms, .shown),
        SecretRule("required", .dataForms, .shown),
        SecretRule("property", nil, .pair, shown: ["name", "type"]),
        SecretRule("param", nil, .pair, shown: ["name", "type"]),
        SecretRule("parameter", nil, .pair, shown: ["name", "type"]),
        SecretRule("member", nil, .pair, shown: ["name", "type"]),
        SecretRule("setting", nil, .pair, shown: ["name", "type"]),
    ]
}
