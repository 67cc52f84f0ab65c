import XMPPCore

// Passwords, keys and tokens of accounts, rooms and services, by name and in whatever namespace: registration
// (XEP-0077), rooms (XEP-0045, XEP-0249), bookmarks (XEP-0048, XEP-0402), provisioning (XEP-0227), OAuth (XEP-0235).
extension SecretRules {
    static let accounts: [SecretRule] = [
        SecretRule("password", nil, .secret(.password)),
        SecretRule("passwd", nil, .secret(.password)),
        SecretRule("passphrase", nil, .secret(.password)),
        SecretRule("secret", nil, .secret(.key)),
        SecretRule("shared-secret", nil, .secret(.key)),
        SecretRule("key", nil, .secret(.key)),
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

        // Data forms (XEP-0004): what a field is, its var and type tell.
        SecretRule("field", nil, .field),
        SecretRule("value", nil, .value),
        SecretRule("option", nil, .value),
        SecretRule("desc", .dataForms, .shown),
        SecretRule("required", .dataForms, .shown),
    ]
}
