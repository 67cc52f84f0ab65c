import XMPPCore

// Handles of a session: whoever has one may take the session over.
extension SecretRules {
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
}
