import TapRecord

// Secrets in stanzas of an established session.
extension SecretCatalogue {
    static let rooms: [Item] = [
        Item(
            "room password",
            "<presence xmlns='jabber:client' to='coven@chat.example/x'><x xmlns='http://jabber.org/protocol/muc'>"
                + "<password>Cauldr0nburn</password></x></presence>",
            secrets: ["Cauldr0nburn"]
        ),
        Item(
            "mediated invitation",
            .recv,
            message(
                "<x xmlns='http://jabber.org/protocol/muc#user'><invite from='a@b'/><password>Fillet0fSnake</password></x>"
            ),
            secrets: ["Fillet0fSnake"]
        ),
        Item(
            "direct invitation",
            .recv,
            message("<x xmlns='jabber:x:conference' jid='coven@chat.example' password='Ey3OfNewt'/>"),
            secrets: ["Ey3OfNewt"]
        ),
        Item(
            "room destroyed",
            iq(
                "<query xmlns='http://jabber.org/protocol/muc#owner'><destroy jid='a@b'><password>T0eOfFrog</password></destroy>"
            ),
            secrets: ["T0eOfFrog"]
        ),
        Item(
            "private bookmarks",
            .recv,
            iq(
                "<query xmlns='jabber:iq:private'><storage xmlns='storage:bookmarks'><conference jid='a@b'><nick>P</nick>"
                    + "<password>Wo0lOfBat</password></conference></storage>"
            ),
            secrets: ["Wo0lOfBat"]
        ),
        Item(
            "published bookmark",
            iq(
                "<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='urn:xmpp:bookmarks:1'><item id='a@b'>"
                    + "<conference xmlns='urn:xmpp:bookmarks:1'><password>T0ngueOfDog</password></conference></item></publish>",
                end: "</pubsub>"
            ),
            secrets: ["T0ngueOfDog"]
        ),
    ]

    static let forms: [Item] = [
        Item(
            "room secret",
            form(
                "<field var='muc#roomconfig_roomsecret'><value>Add3rsFork</value></field>",
                "http://jabber.org/protocol/muc#owner"
            ),
            secrets: ["Add3rsFork"]
        ),
        Item(
            "registration form",
            form(
                "<field var='username'><value>bill</value></field><field var='password'><value>Blindw0rm</value></field>"
            ),
            secrets: ["Blindw0rm"]
        ),
        Item(
            "administration form",
            form(
                "<field var='accountjid'><value>a@b</value></field><field var='password'><value>L1zardsLeg</value></field>"
                    + "<field var='password-verify'><value>L1zardsLeg2</value></field>"
            ),
            secrets: ["L1zardsLeg", "L1zardsLeg2"]
        ),
        Item(
            "private field",
            form(
                "<field type='text-private' var='x1' label='Word'>\n<desc>Magic</desc>\n<value>H0wletsWing</value>\n</field>"
            ),
            secrets: ["H0wletsWing"]
        ),
        Item(
            "private column of a table",
            .recv,
            form(
                "<reported><field var='x2' type='text-private'/></reported><item><field var='x2'><value>Sc4leOfDragon</value>"
                    + "</field></item>"
            ),
            secrets: ["Sc4leOfDragon"]
        ),
        Item(
            "field named in references",
            form("<field var='pass&#119;or&#x64;'><value>To0thOfWolf</value></field>"),
            secrets: ["To0thOfWolf"]
        ),
        Item(
            "invitation",
            .recv,
            form(
                "<field var='uri'><value>xmpp:example.org?register;preauth=Xt4oP9qLzE;ibr=y</value></field>"
                    + "<field var='landing-url'><value>https://example.org/i/Hq7vZw2nDs</value></field>"
            ),
            secrets: ["Xt4oP9qLzE", "Hq7vZw2nDs"]
        ),
        Item(
            "push enabled",
            iq(
                "<enable xmlns='urn:xmpp:push:0' jid='push.example' node='yxs32uqsflafdk3iuqo'><x xmlns='jabber:x:data' "
                    + "type='submit'><field var='secret'><value>eruio234vzxc2kla-91</value></field></x>",
                end: "</enable>"
            ),
            secrets: ["yxs32uqsflafdk3iuqo", "eruio234vzxc2kla-91"]
        ),
        Item(
            "push notification",
            iq(
                "<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='zys41vrtgmbgel4jvrp'><item><notification "
                    + "xmlns='urn:xmpp:push:0'/></item></publish><publish-options><x xmlns='jabber:x:data' type='submit'>"
                    + "<field var='secret'><value>fsvjp345wayd3lmb-82</value></field></x></publish-options>",
                end: "</pubsub>"
            ),
            secrets: ["zys41vrtgmbgel4jvrp", "fsvjp345wayd3lmb-82"]
        ),
        Item(
            "push node gone",
            .recv,
            message(
                "<pubsub xmlns='http://jabber.org/protocol/pubsub' node='azt50wsuhnchfm5kwsq'>"
                    + "<affiliation jid='a@b' affiliation='none'/></pubsub>"
            ),
            secrets: ["azt50wsuhnchfm5kwsq"]
        ),
        Item(
            "pre-authenticated subscription",
            "<presence xmlns='jabber:client' type='subscribe' to='a@b'><preauth xmlns='urn:xmpp:pars:0' token='1tMFqYDdKhfe2pwp'/></presence>",
            secrets: ["1tMFqYDdKhfe2pwp"]
        ),
        Item(
            "OAuth",
            message(
                "<oauth xmlns='urn:xmpp:oauth:0'><oauth_consumer_key>0685bd9184jfhq22</oauth_consumer_key>"
                    + "<oauth_token>ad180jjd733klru7</oauth_token><oauth_version>1.0</oauth_version></oauth>"
            ),
            secrets: ["0685bd9184jfhq22", "ad180jjd733klru7"]
        ),
        Item(
            "confirmation",
            .recv,
            message(
                "<confirm xmlns='http://jabber.org/protocol/http-auth' id='a7374jnjlalasdf82' method='GET' url='https://a'/>"
            ),
            secrets: ["a7374jnjlalasdf82"]
        ),
        Item(
            "fields of many spellings",
            form(
                "<field var='pass_word'><value>Rz4tMw8kQs</value></field><field var='passcode'><value>Dx7nVb2hLp</value></field>"
                    + "<field var='new-pass'><value>Jc9yTg5rWf</value></field><field var='credential'><value>Np3sKz6vHd</value>"
                    + "</field><field var='userPass2'><value>Bm8wRx4cYt</value></field>"
            ),
            secrets: ["Rz4tMw8kQs", "Dx7nVb2hLp", "Jc9yTg5rWf", "Np3sKz6vHd", "Bm8wRx4cYt"]
        ),
        Item(
            "registration with fields that nobody knows",
            iq(
                "<query xmlns='jabber:iq:register'><username>bill</username><unlock hint='Kw2pZn7tGx'>Vs5hQc9mRj</unlock>"
                    + "<otp xmlns='urn:example:otp' seed='Lt6yBd3kWv'><digits>Xg8rFp4zNs</digits></otp>"
            ),
            secrets: ["Kw2pZn7tGx", "Vs5hQc9mRj", "Lt6yBd3kWv", "Xg8rFp4zNs"]
        ),
        Item(
            "private column of a table that is described after its rows",
            .recv,
            form(
                "<item><field var='x3'><value>Hy7kTm2wQz</value></field></item>"
                    + "<reported><field var='x3' type='text-private'/></reported>"
            ),
            secrets: ["Hy7kTm2wQz"]
        ),
        Item(
            "key of a vCard",
            iq(
                "<vCard xmlns='vcard-temp'><FN>Juliet</FN><KEY><TYPE>PGP</TYPE><CRED>mQtNBFx7Tz4QkWv9</CRED></KEY>",
                end: "</vCard>"
            ),
            secrets: ["mQtNBFx7Tz4QkWv9"]
        ),
        Item(
            "properties",
            message(
                "<properties xmlns='http://www.jivesoftware.com/xmlns/xmpp/properties'>"
                    + "<property name='password'>Zc5vJt8nLw</property><property value='Pq3xGk7sRm' name='dbPassword'/>"
                    + "<property><name>api.key</name><value type='string'>Tw9hYd4bKz</value></property>"
                    + "<property><value type='string'>Fs6mNx2rVc</value><name>passphrase</name></property></properties>"
            ),
            secrets: ["Zc5vJt8nLw", "Pq3xGk7sRm", "Tw9hYd4bKz", "Fs6mNx2rVc"]
        ),
        Item(
            "parameters of a remote call",
            iq(
                "<query xmlns='jabber:iq:rpc'><methodCall><methodName>register</methodName><params><param><value><struct>"
                    + "<member><name>password</name><value><string>Ln4gWq7zTx</string></value></member>"
                    + "</struct></value></param></params></methodCall>"
            ),
            secrets: ["Ln4gWq7zTx"]
        ),
    ]

    static let files: [Item] = [
        Item(
            "upload slot",
            .recv,
            iq(
                "<slot xmlns='urn:xmpp:http:upload:0'><put url='https://up.example/a/b.jpg?v=4cD0mNeS7gHb'>"
                    + "<header name='Authorization'>Basic Base64Of9LpWx5</header><header name='Cookie'>foo=bar2Zt6Yk;uid=r0Me0Q</header>"
                    + "<header name='Expires'>Thu, 01 Jan 2030</header></put><get url='https://down.example/a/b.jpg?token=8VnRj3sKfA'/>",
                end: "</slot>"
            ),
            secrets: ["4cD0mNeS7gHb", "Base64Of9LpWx5", "bar2Zt6Yk;uid=r0Me0Q", "8VnRj3sKfA"]
        ),
        Item(
            "upload slot sent on",
            message("<body>https://down.example/a/b.jpg?token=8VnRj3sKfA</body>"),
            secrets: ["8VnRj3sKfA"]
        ),
        Item(
            "encrypted file",
            message("<body>aesgcm://up.example/f.jpg#8c3d050e9386ec173861778b68751a2bc8c9eba9f72c5ebf</body>"),
            secrets: ["8c3d050e9386ec173861778b68751a2bc8c9eba9f72c5ebf"]
        ),
        Item(
            "encrypted file, out of band, between words and references",
            message(
                "<body>see AESGCM&#58;//up.example/f.jpg&#35;77aa050e9386ec173861778b68751a2b now</body>"
                    + "<x xmlns='jabber:x:oob'><url><![CDATA[aesgcm://up.example/f.jpg#77aa050e9386ec173861778b68751a2b]]></url></x>"
            ),
            secrets: ["77aa050e9386ec173861778b68751a2b"]
        ),
        Item(
            "encrypted file in an attribute",
            message(
                "<html xmlns='http://jabber.org/protocol/xhtml-im'><body xmlns='http://www.w3.org/1999/xhtml'>"
                    + "<img src='aesgcm://up.example/g.png#66bb050e9386ec173861778b68751a2b'/></body></html>"
            ),
            secrets: ["66bb050e9386ec173861778b68751a2b"]
        ),
        Item(
            "invitation link in a message",
            message("<body>join me: xmpp:romeo@example.org?roster;preauth=Dk5rUe8hTb;name=R (or not)</body>"),
            secrets: ["Dk5rUe8hTb"]
        ),
        Item(
            "signed URL",
            message(
                "<body>https://s3.example/o?X-Amz-Credential=AKIA5Qw2e/us&amp;X-Amz-Signature=9f8e7d6c5b4a&amp;part=1</body>"
            ),
            secrets: ["AKIA5Qw2e/us", "9f8e7d6c5b4a"]
        ),
        Item(
            "headers of HTTP over XMPP",
            iq(
                "<req xmlns='urn:xmpp:http' method='GET' resource='/'><headers xmlns='http://jabber.org/protocol/shim'>"
                    + "<header name='Host'>example.org</header><header name='authorization'>Bearer Qm6wEt1xNv</header></headers>",
                end: "</req>"
            ),
            secrets: ["Qm6wEt1xNv"]
        ),
        Item(
            "encrypted file shared",
            message(
                "<encrypted xmlns='urn:xmpp:esfs:0' cipher='urn:xmpp:ciphers:aes-256-gcm-nopadding:0'>"
                    + "<key>SuRJ2agVmpQbJQlPqB23Xt==</key><iv>T8RDMBaiqn6Ci4Nw</iv></encrypted>"
            ),
            secrets: ["SuRJ2agVmpQbJQlPqB23Xt==", "T8RDMBaiqn6Ci4Nw"]
        ),
        Item(
            "invitation link without a name for its token",
            message("<body>Come: https://example.org/invite?Wb6tKz3nQe8y</body>"),
            secrets: ["Wb6tKz3nQe8y"]
        ),
        Item(
            "invitation link with its token in the path",
            message("<body>https://example.org/invites/Pf9kXw2cLm7s/registration</body>"),
            secrets: ["Pf9kXw2cLm7s"]
        ),
        Item(
            "upload slot whose queries have no names, and its links",
            message(
                "<slot xmlns='urn:xmpp:http:upload:0'><put url='https://files.example/u/a.jpg?Vt5mRq8sZd2x'/>"
                    + "<get url='https://files.example/u/a.jpg'/></slot><body>https://Files.example/u/%61.jpg?Vt5mRq8sZd2x.</body>"
                    + "<x xmlns='jabber:x:oob'><url>https://files.example/u/a.jpg?Kn4hYp7wGc1j</url></x>"
                    + "<file-sharing xmlns='urn:xmpp:sfs:0'><url-data xmlns='http://jabber.org/protocol/url-data' "
                    + "target='https://files.example/u/b.jpg?Qd8tLx5mSb3z'/></file-sharing>"
            ),
            secrets: ["Vt5mRq8sZd2x", "Kn4hYp7wGc1j", "Qd8tLx5mSb3z"]
        ),
        Item(
            "link to a host for uploads",
            message("<body>https://upload.example.org:5443/x/c.png?Jr3vNd6bTs9f</body>"),
            secrets: ["Jr3vNd6bTs9f"]
        ),
        Item(
            "passwords in URLs",
            message(
                "<body>https://romeo:Xq2-wherefore@example.org/ or postgres://tap:Lz8gRt5wKm@db.example/audit</body>"
                    + "<reference xmlns='urn:xmpp:reference:0' type='data' uri='ftp://u:Mc7tPy4kWd@files.example'/>"
            ),
            secrets: ["Xq2-wherefore", "Lz8gRt5wKm", "Mc7tPy4kWd"]
        ),
        Item(
            "parameters of a URL whose names are percent-encoded",
            message("<body>https://a.example/x?%74oken=Hs5gQv9zBn&amp;p%61ssw%6Frd=Zy2rJm6tKf</body>"),
            secrets: ["Hs5gQv9zBn", "Zy2rJm6tKf"]
        ),
    ]

    static let calls: [Item] = [
        Item(
            "TURN credentials",
            .recv,
            iq(
                "<services xmlns='urn:xmpp:extdisco:2'><service host='turn.example' port='3478' type='turn' "
                    + "username='1nas9dlm3hzl89d0b9v' password='jj929jkj5sadjfj93v3n' expires='2031-07-19T11:46:57Z'/>",
                end: "</services>"
            ),
            secrets: ["1nas9dlm3hzl89d0b9v", "jj929jkj5sadjfj93v3n", "2031-07-19T11:46:57Z"]
        ),
        Item(
            "call",
            iq(
                "<jingle xmlns='urn:xmpp:jingle:1' action='session-initiate' sid='s1'><content creator='initiator' name='v'>"
                    + "<description xmlns='urn:xmpp:jingle:apps:rtp:1' media='audio'><encryption>"
                    + "<crypto crypto-suite='AES_CM_128_HMAC_SHA1_80' key-params='inline:WVNfX19zZW1jdGwgKCkg' tag='1'/></encryption>"
                    + "</description><transport xmlns='urn:xmpp:jingle:transports:ice-udp:1' pwd='asd88fgpdd777uzjYhagZg' "
                    + "ufrag='8hhyUf2q'/></content>",
                end: "</jingle>"
            ),
            secrets: ["WVNfX19zZW1jdGwgKCkg", "asd88fgpdd777uzjYhagZg", "8hhyUf2q"]
        ),
    ]

    static let encryption: [Item] = [
        Item(
            "OMEMO",
            message(
                "<encrypted xmlns='urn:xmpp:omemo:2'><header sid='27183'><keys jid='a@b'><key rid='31415'>b64EncodedData0Lm=</key>"
                    + "</keys></header><payload>pAyL0adOfTheM3ss4ge=</payload></encrypted>"
            ),
            secrets: ["b64EncodedData0Lm=", "pAyL0adOfTheM3ss4ge="]
        ),
        Item(
            "OMEMO of old",
            message(
                "<encrypted xmlns='eu.siacs.conversations.axolotl'><header sid='27183'><key rid='31415'>oLdEncodedData1=</key>"
                    + "<iv>iVofTheOld7Qx=</iv></header><payload>oLdPayl0ad9Zr=</payload></encrypted>"
            ),
            secrets: ["oLdEncodedData1=", "iVofTheOld7Qx=", "oLdPayl0ad9Zr="]
        ),
        Item(
            "secret key backup",
            iq(
                "<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='urn:xmpp:openpgp:0:secret-key'><item>"
                    + "<secretkey xmlns='urn:xmpp:openpgp:0'>BASE64hOpEnPgPsEcReT</secretkey></item></publish>",
                end: "</pubsub>"
            ),
            secrets: ["BASE64hOpEnPgPsEcReT"]
        ),
        Item(
            "account data",
            iq(
                "<scram-credentials xmlns='urn:xmpp:pie:0#scram' mechanism='SCRAM-SHA-1'><iter-count>4096</iter-count>"
                    + "<server-key>0pXWGK0GZJ6TR73AIUN3ITYtA1g=</server-key><stored-key>Q6qTSbybblGCZz8e8eSfCJOQic=</stored-key>",
                end: "</scram-credentials>"
            ),
            secrets: ["0pXWGK0GZJ6TR73AIUN3ITYtA1g=", "Q6qTSbybblGCZz8e8eSfCJOQic="]
        ),
    ]

    private static func message(_ content: String) -> String {
        "<message xmlns='jabber:client' from='romeo@example.org/x' to='juliet@example.com' id='m1'>\(content)</message>"
    }

    private static func form(_ fields: String, _ namespace: String = "jabber:iq:register") -> String {
        iq("<query xmlns='\(namespace)'><x xmlns='jabber:x:data' type='submit'>\(fields)</x>")
    }
}
