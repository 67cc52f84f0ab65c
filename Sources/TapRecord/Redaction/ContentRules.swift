import XMPPCore

// Files, calls, push, end-to-end encryption.
extension SecretRules {
    static let content: [SecretRule] =
        [
            // Push (XEP-0357): whoever knows node and secret can wake the device.
            SecretRule("notification", .push, .notification),
            // How a push service says that a node is gone.
            SecretRule("affiliation", .pubsub, .notification),
            SecretRule(nil, .push, .inherited, attributes: [.init("node", .pushNode)]),

            // Upload slots (XEP-0363), and headers of HTTP wherever they stand (XEP-0131, XEP-0332).
            SecretRule("put", nil, .url, attributes: [.init(queryOf: "url")]),
            SecretRule("get", nil, .url, attributes: [.init(queryOf: "url")]),
            SecretRule("header", nil, .header),

            // Services (XEP-0215), answers to a web site's question (XEP-0070).
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
