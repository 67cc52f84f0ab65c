import TapRecord

// Credentials in names that no protocol defines, and overlapping secrets.
extension SecretCatalogue {
    /// Common names of credentials, in various spellings.
    private static let credentialNames = [
        "apikey", "api-key", "api_key", "ApiKey", "x-api-key", "credentials", "Credential", "Password", "PASSWORD",
        "passwd",
        "Pwd", "Secret", "client-secret", "clientSecret", "accesstoken", "access_token", "refresh-token", "AuthToken",
        "session.token", "id_token", "private-key", "PrivateKey", "pin", "OTP", "userPass", "Passphrase", "cookie",
        "jwt",
        "Authorization",
    ]

    /// Returns random values, one for each name.
    private static func values(seed: UInt64) -> [(name: String, value: String)] {
        var random = SeededGenerator(seed: seed)
        let letters = Array("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ")
        return credentialNames.map { name in
            (name, String((0..<12).map { _ in letters[Int(random.next() % UInt64(letters.count))] }))
        }
    }

    static let names: [Item] = {
        let elements = values(seed: 29)
        let attributes = values(seed: 30)
        let children = values(seed: 31)
        let nested = values(seed: 32)
        return [
            Item(
                "credentials of an unknown service",
                iq(
                    "<account xmlns='urn:example:service'>"
                        + elements.map { "<\($0.name)>\($0.value)</\($0.name)>" }.joined(),
                    end: "</account>"
                ),
                secrets: elements.map(\.value)
            ),
            Item(
                "attributes of an unknown service",
                .recv,
                iq(
                    attributes.map { "<account xmlns='urn:example:service' \($0.name)='\($0.value)'/>" }.joined(),
                    end: ""
                ),
                secrets: attributes.map(\.value)
            ),
            Item(
                "attributes with a prefix",
                "<message xmlns='jabber:client' xmlns:s='urn:example:service' s:api-key='Xk4vTz9mQwRb'><body>x</body></message>",
                secrets: ["Xk4vTz9mQwRb"]
            ),
            Item(
                "credentials without a namespace of their own",
                "<message xmlns='jabber:client'>" + children.map { "<\($0.name)>\($0.value)</\($0.name)>" }.joined()
                    + "</message>",
                secrets: children.map(\.value)
            ),
            Item(
                "parts of credentials",
                iq(
                    nested.map {
                        "<\($0.name) xmlns='urn:example:service' value='V\($0.value)'><part>\($0.value)</part></\($0.name)>"
                    }.joined(),
                    end: ""
                ),
                secrets: nested.map(\.value)
            ),
            Item(
                "known URL in a push node",
                "<message xmlns='jabber:client'><x xmlns='jabber:x:data' type='result'><field var='landing-url'>"
                    + "<value>https://l.example/Vw3nPz8qTe</value></field></x><pubsub "
                    + "xmlns='http://jabber.org/protocol/pubsub'><publish node='https://l.example/Vw3nPz8qTe#Gj7kRd5mXa'>"
                    + "<item><notification xmlns='urn:xmpp:push:0'/></item></publish></pubsub></message>",
                secrets: ["Vw3nPz8qTe", "Gj7kRd5mXa"]
            ),
        ]
    }()
}
