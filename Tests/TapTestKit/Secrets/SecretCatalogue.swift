package import TapRecord

/// Every kind of secret that a stream can contain, with an item for each, and the bytes that must never appear in an
/// output.
///
/// All values are invented and resemble nothing else, so that six of their bytes in an output are a leak and not a
/// coincidence.
package enum SecretCatalogue {
    /// An item of a stream that contains secrets.
    package struct Item: Sendable, CustomStringConvertible {
        /// A name, unique within the catalogue.
        package var name: String
        /// The direction of the item.
        package var direction: Direction
        /// The item: one element that declares all its namespaces.
        package var xml: String
        /// The texts of the item that must not appear in an output.
        package var secrets: [[UInt8]]

        /// The name.
        package var description: String { name }

        init(_ name: String, _ xml: String, secrets: [String]) { self.init(name, .send, xml, secrets: secrets) }

        init(_ name: String, _ direction: Direction, _ xml: String, secrets: [String]) {
            self.name = name
            self.direction = direction
            self.xml = xml
            self.secrets = secrets.map { Array($0.utf8) }
        }

        /// Creates an item with a SASL message in base64 as its text.
        init(
            sasl name: String,
            _ direction: Direction,
            _ message: String,
            in element: (String) -> String,
            secrets: [String]
        ) {
            self.init(name, direction, element(Base64.encode(Array(message.utf8))), secrets: secrets)
        }
    }

    /// All items, without wrappings.
    package static let items: [Item] =
        sasl + sasl2 + legacy + handles + rooms + forms + files + calls + encryption + names

    static let saslNamespace = "urn:ietf:params:xml:ns:xmpp-sasl"

    private static func auth(_ mechanism: String) -> (String) -> String {
        { "<auth xmlns='\(saslNamespace)' mechanism='\(mechanism)'>\($0)</auth>" }
    }

    private static func element(_ name: String) -> (String) -> String {
        { "<\(name) xmlns='\(saslNamespace)'>\($0)</\(name)>" }
    }

    private static let sasl: [Item] = [
        Item(sasl: "PLAIN", .send, "\0romeo\0kQ7zvR2mXw9b", in: auth("PLAIN"), secrets: ["kQ7zvR2mXw9b"]),
        Item(
            sasl: "PLAIN without its namespace",
            .send,
            "\0romeo\0Yb4nLs8eKc1d",
            in: { "<auth mechanism='PLAIN' xmlns='jabber:client'>\($0)</auth>" },
            secrets: ["Yb4nLs8eKc1d"]
        ),
        Item(
            sasl: "a response without its namespace",
            .send,
            "\0romeo\0Uc5rMd2xJf9g",
            in: { "<response>\($0)</response>" },
            secrets: ["Uc5rMd2xJf9g"]
        ),
        Item(
            sasl: "SASL2 without its namespace",
            .send,
            "\0romeo\0Tg6wHp3vQz7a",
            in: {
                "<authenticate mechanism='PLAIN' xmlns='urn:xmpp:sasl:3'><initial-response>\($0)</initial-response>"
                    + "</authenticate>"
            },
            secrets: ["Tg6wHp3vQz7a"]
        ),
        Item(
            sasl: "SCRAM first",
            .send,
            "n,,n=romeo,r=fJ3uH8sWqZ1x",
            in: auth("SCRAM-SHA-256"),
            secrets: ["fJ3uH8sWqZ1x"]
        ),
        Item(
            sasl: "SCRAM challenge",
            .recv,
            "r=fJ3uH8sWqZ1xP5tYvB0n,s=R0xkV2pNcTdLZg==,i=4096,h=bW5vcGFiY2RlZmc=,t=0304",
            in: element("challenge"),
            secrets: ["P5tYvB0n", "R0xkV2pNcTdLZg=="]
        ),
        Item(
            sasl: "SCRAM proof",
            .send,
            "c=cD10bHMtZXhwb3J0ZXIsLGd6VjhLdFFuMkpX,r=fJ3uH8sWqZ1xP5tYvB0n,p=dUh3WWV6M0xaczFyRTVHTg==",
            in: element("response"),
            secrets: ["gzV8KtQn2JW", "dUh3WWV6M0xaczFyRTVHTg==", "uHwYez3LZs1rE5GN"]
        ),
        Item(
            sasl: "SCRAM verifier",
            .recv,
            "v=eE1hOVRvNEN3VjdoQWQ2Uw==",
            in: element("success"),
            secrets: ["eE1hOVRvNEN3VjdoQWQ2Uw==", "xMa9To4CwV7hAd6S"]
        ),
        Item(
            sasl: "OAUTHBEARER",
            .send,
            "n,a=romeo@example.org,\u{1}auth=Bearer vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGE\u{1}\u{1}",
            in: auth("OAUTHBEARER"),
            secrets: ["vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGE"]
        ),
        Item(sasl: "X-OAUTH2", .send, "\0romeo\0ya29.Wd5nGx0LpRk", in: auth("X-OAUTH2"), secrets: ["ya29.Wd5nGx0LpRk"]),
        Item(
            sasl: "X-GOOGLE-TOKEN",
            .send,
            "\0romeo@gmail.example\0DQAAAKcTb6JmHw",
            in: auth("X-GOOGLE-TOKEN"),
            secrets: ["DQAAAKcTb6JmHw"]
        ),
        Item(
            sasl: "DIGEST-MD5 challenge",
            .recv,
            "realm=\"example.org\",nonce=\"OA6MG9tEQGm2hh\",qop=\"auth\",charset=utf-8,algorithm=md5-sess",
            in: element("challenge"),
            secrets: ["OA6MG9tEQGm2hh"]
        ),
        Item(
            sasl: "DIGEST-MD5 response",
            .send,
            "username=\"romeo\",realm=\"example.org\",nonce=\"OA6MG9tEQGm2hh\",cnonce=\"Xh6VfhTrPEpWc\",nc=00000001,"
                + "qop=auth,digest-uri=\"xmpp/example.org\",response=d388dad90d4bbd760a152321f2143af7,charset=utf-8",
            in: element("response"),
            secrets: ["Xh6VfhTrPEpWc", "d388dad90d4bbd760a152321f2143af7"]
        ),
        Item(
            sasl: "DIGEST-MD5 rspauth",
            .recv,
            "rspauth=ea40f60335c427b5527b84dbabcdfffd",
            in: element("challenge"),
            secrets: ["ea40f60335c427b5527b84dbabcdfffd"]
        ),
        Item(
            sasl: "CRAM-MD5",
            .send,
            "romeo b913a602c7eda7a495b4e6e7334d3890",
            in: element("response"),
            secrets: ["b913a602c7eda7a495b4e6e7334d3890"]
        ),
        Item(sasl: "GSSAPI", .send, "YIICBgYJKoZ9LmQw", in: auth("GSSAPI"), secrets: ["YIICBgYJKoZ9LmQw"]),
        Item(sasl: "GSSAPI challenge", .recv, "YGwHr5TbQ2xKd", in: element("challenge"), secrets: ["YGwHr5TbQ2xKd"]),
        Item(sasl: "GSSAPI success", .recv, "oQcwBaADCgEAVt3n", in: element("success"), secrets: ["oQcwBaADCgEAVt3n"]),
        Item(
            sasl: "EXTERNAL",
            .send,
            "mercutio.hidden@queenmab.test",
            in: auth("EXTERNAL"),
            secrets: ["mercutio.hidden@queenmab.test"]
        ),
        Item(sasl: "ANONYMOUS", .send, "trace-ZqLk84", in: auth("ANONYMOUS"), secrets: ["trace-ZqLk84"]),
        Item(
            sasl: "HT",
            .send,
            "romeo\0mAcOfTheToken7Xk2",
            in: auth("HT-SHA-256-NONE"),
            secrets: ["mAcOfTheToken7Xk2"]
        ),
        Item(
            "not base64",
            "<auth xmlns='\(saslNamespace)' mechanism='PLAIN'>romeo:Bq8yUe3jHt!</auth>",
            secrets: ["Bq8yUe3jHt!"]
        ),
        Item(
            "an unheard-of child",
            "<auth xmlns='\(saslNamespace)' mechanism='PLAIN'><x xmlns='urn:y' z='Nn5cGp1oLd'>Tt4kVr8wFs</x></auth>",
            secrets: ["Nn5cGp1oLd", "Tt4kVr8wFs"]
        ),
        Item(
            "an unheard-of element and attribute",
            "<s:surprise xmlns:s='\(saslNamespace)' how='Jj6dMz9bQy'>Hh3xPw7nKc</s:surprise>",
            secrets: ["Jj6dMz9bQy", "Hh3xPw7nKc"]
        ),
    ]

    private static let sasl2: [Item] = [
        Item(
            "SASL2 authenticate",
            """
            <authenticate xmlns='urn:xmpp:sasl:2' mechanism='HT-SHA-256-ENDP'>
              <initial-response>\(Base64.encode(Array("romeo\0Rv5gYb8uJn2m".utf8)))</initial-response>
              <user-agent id='d4565fa7-4d72-4749-b3d3-740edbf87770'>
                <software>AwesomeXMPP</software><device>Kiva Shiny Phone</device>
              </user-agent>
              <bind xmlns='urn:xmpp:bind:0'><tag>AwesomeXMPP</tag><enable xmlns='urn:xmpp:carbons:2'/></bind>
              <fast xmlns='urn:xmpp:fast:0' count='3'/>
              <resume xmlns='urn:xmpp:sm:3' h='5' previd='pVd81-xKq02'/>
              <megabind xmlns='urn:example:megabind' with='Cc8fLs2tGr'><inner>Ww6hDx4pZv</inner></megabind>
            </authenticate>
            """,
            secrets: [
                "Rv5gYb8uJn2m", "d4565fa7-4d72-4749-b3d3-740edbf87770", "Kiva Shiny Phone", "pVd81-xKq02", "Cc8fLs2tGr",
                "Ww6hDx4pZv",
            ]
        ),
        Item(
            "SASL2 success with a token",
            .recv,
            """
            <success xmlns='urn:xmpp:sasl:2'>\
            <additional-data>\(Base64.encode(Array("v=Zk1uQ3hGOHdUdzVq".utf8)))</additional-data>\
            <authorization-identifier>romeo@example.org/balcony</authorization-identifier>\
            <token xmlns='urn:xmpp:fast:0' expiry='2020-03-12T14:36:15Z' token='WXZzciBwYmFmdmZnZiBq'/>\
            <bound xmlns='urn:xmpp:bind:0'>\
            <enabled xmlns='urn:xmpp:sm:3' id='sMiD-77Gq2-rT' max='600' location='[2001:db8::9f3a]:9187' resume='true'/>\
            </bound></success>
            """,
            secrets: ["Zk1uQ3hGOHdUdzVq", "WXZzciBwYmFmdmZnZiBq", "sMiD-77Gq2-rT", "[2001:db8::9f3a]:9187"]
        ),
        Item(
            "SASL2 continue",
            .recv,
            "<continue xmlns='urn:xmpp:sasl:2'><additional-data>dj1MbThyVHg0TnE2Qno=</additional-data>"
                + "<tasks><task>TOTP-EXAMPLE</task></tasks><text>One more step</text></continue>",
            secrets: ["Lm8rTx4Nq6Bz"]
        ),
        Item(
            "SASL2 next",
            "<next xmlns='urn:xmpp:sasl:2' task='TOTP'><totp xmlns='urn:totp:example' n='Ee2yKp5sVa'>719304</totp></next>",
            secrets: ["Ee2yKp5sVa", "719304"]
        ),
        Item(
            "SCRAM upgrade",
            "<task-data xmlns='urn:xmpp:sasl:2'><hash xmlns='urn:xmpp:scram-upgrade:0'>BzOnw3Pc5H4bOLlPZ8J=</hash>"
                + "<text>Uu7jBw3gXn</text></task-data>",
            secrets: ["BzOnw3Pc5H4bOLlPZ8J=", "Uu7jBw3gXn"]
        ),
        Item(
            "SASL2 of an earlier version",
            "<authenticate xmlns='urn:xmpp:sasl:1' mechanism='PLAIN'><initial-response>"
                + Base64.encode(Array("\0romeo\0Gg4tQm9zRw".utf8)) + "</initial-response></authenticate>",
            secrets: ["Gg4tQm9zRw"]
        ),
        Item(
            "instant resumption",
            .recv,
            "<enabled xmlns='urn:xmpp:sm:3'><isr-enabled xmlns='https://xmpp.org/extensions/isr/0' "
                + "token='a0b9162d-0981-4c7d-9174-1f55aedd1f52' location='isr-Yy3.vrn-q8x.test:9187'/></enabled>",
            secrets: ["a0b9162d-0981-4c7d-9174-1f55aedd1f52", "isr-Yy3.vrn-q8x.test:9187"]
        ),
    ]

    private static let legacy: [Item] = [
        Item(
            "iq-auth with a password",
            iq("<query xmlns='jabber:iq:auth'><username>romeo</username><password>Calli0pe-47</password>"),
            secrets: ["Calli0pe-47"]
        ),
        Item(
            "iq-auth with a digest",
            iq(
                "<query xmlns='jabber:iq:auth'><username>romeo</username><digest>48fc78be9ec8f86d8ce1c39c320c97c2</digest>"
            ),
            secrets: ["48fc78be9ec8f86d8ce1c39c320c97c2"]
        ),
        Item(
            "iq-auth of old",
            iq(
                "<query xmlns='jabber:iq:auth'><username>romeo</username><hash>Aa1wXq6kTd</hash><sequence>99</sequence>"
            ),
            secrets: ["Aa1wXq6kTd"]
        ),
        Item(
            "registration",
            iq(
                "<query xmlns='jabber:iq:register'><username>bill</username><password>m1cro$oft-Vz</password>"
                    + "<key>106c0a7b5510f192a408a1d0e4f5c0ed</key>"
            ),
            secrets: ["m1cro$oft-Vz", "106c0a7b5510f192a408a1d0e4f5c0ed"]
        ),
        Item(
            "component handshake",
            "<handshake xmlns='jabber:component:accept'>aaee83c26aeeafcbabeabfcbcd50df997e0a2a1e</handshake>",
            secrets: ["aaee83c26aeeafcbabeabfcbcd50df997e0a2a1e"]
        ),
        Item(
            "dialback result",
            "<db:result xmlns:db='jabber:server:dialback' from='a' to='b'>1e701f120f66824b57303384e83b51feba858024</db:result>",
            secrets: ["1e701f120f66824b57303384e83b51feba858024"]
        ),
        Item(
            "dialback verify",
            "<db:verify xmlns:db='jabber:server:dialback' from='a' to='b' id='D60'>b4835385f37fe2895af6c196b59097b1</db:verify>",
            secrets: ["b4835385f37fe2895af6c196b59097b1"]
        ),
    ]

    private static let handles: [Item] = [
        Item(
            "SM enabled",
            .recv,
            "<enabled xmlns='urn:xmpp:sm:3' id='Mm8vCs5uHj' resume='1'/>",
            secrets: ["Mm8vCs5uHj"]
        ),
        Item("SM resume", "<resume xmlns='urn:xmpp:sm:3' h='1' previd='Ss2oFy7eLb'/>", secrets: ["Ss2oFy7eLb"]),
        Item(
            "SM resumed",
            .recv,
            "<resumed xmlns='urn:xmpp:sm:2' h='1' previd='Ii9rNt3aWk'/>",
            secrets: ["Ii9rNt3aWk"]
        ),
        Item(
            "BOSH",
            "<body xmlns='http://jabber.org/protocol/httpbind' rid='1' sid='Oo4xJv8cPq' key='6f825e81f4532b2c' newkey='113f58a37245ec9637266cf2fb6e48bfeaf7964e'/>",
            secrets: ["Oo4xJv8cPq", "6f825e81f4532b2c", "113f58a37245ec9637266cf2fb6e48bfeaf7964e"]
        ),
    ]

    static func iq(_ query: String, end: String = "</query>") -> String {
        "<iq xmlns='jabber:client' type='set' id='i1'>\(query)\(end)</iq>"
    }
}
