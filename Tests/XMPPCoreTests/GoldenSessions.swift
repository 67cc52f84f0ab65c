import Testing

/// One direction of a complete session, as input of the tests that split it into reads.
struct GoldenSession: Sendable, CustomTestStringConvertible {
    var name: String
    var text: String
    /// Number of items in the session; consecutive white space is one item.
    var items: Int

    var bytes: [UInt8] { Array(text.utf8) }
    var testDescription: String { name }

    private static let declaration = "<?xml version='1.0'?>"
    private static let client =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>"
    private static let server =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' id='s1' from='localhost' "
        + "version='1.0' xml:lang='en'>"

    static let all: [GoldenSession] = [
        GoldenSession(
            name: "plain login, client",
            text: declaration + client
                + "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>AHJvbWVvAHNlY3JldA==</auth>"
                + declaration + client
                + "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>orchard</resource></bind></iq>"
                + "<iq type='get' id='r1'><query xmlns='jabber:iq:roster'/></iq><presence/>"
                + "<message to='juliet@localhost' type='chat' id='m1'><body>Wherefore &lt;art&gt; thou?</body></message>"
                + "</stream:stream>",
            items: 10
        ),
        GoldenSession(
            name: "plain login, server",
            text: declaration + server
                + "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism>"
                + "</mechanisms></stream:features><success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>" + declaration
                + server + "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>"
                + "<iq type='result' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>romeo@localhost/orchard"
                + "</jid></bind></iq><stream:error><conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>"
                + "</stream:stream>",
            items: 10
        ),
        GoldenSession(
            name: "SASL2 with inline binding, pipelined",
            text: declaration + client
                + "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='SCRAM-SHA-1-PLUS'><initial-response>cD10bHMtZXhwb3J0"
                + "</initial-response><user-agent id='d4565fa7-4d72-4749-b3d3-740edbf87770'><software>x</software>"
                + "</user-agent><bind xmlns='urn:xmpp:bind:0'><tag>x</tag><enable xmlns='urn:xmpp:sm:3'/></bind>"
                + "</authenticate><response xmlns='urn:xmpp:sasl:2'>Yz1iaXdz</response><r xmlns='urn:xmpp:sm:3'/>",
            items: 5
        ),
        GoldenSession(
            name: "STARTTLS, server side, and the stream after it",
            text: declaration + server
                + "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>"
                + "</stream:features><proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>" + server
                + "<stream:features/>",
            items: 6
        ),
        GoldenSession(
            name: "component",
            text: declaration
                + "<stream:stream xmlns='jabber:component:accept' xmlns:stream='http://etherx.jabber.org/streams' "
                + "to='plays.shakespeare.lit'>"
                + "<handshake>aaee83c26aeeafcbabeabfcbcd50df997e0a2a1e</handshake>"
                + "<message from='a.shakespeare.lit' to='b@x'><body>hi</body></message></stream:stream>",
            items: 5
        ),
        GoldenSession(
            name: "server to server with dialback",
            text: "<?xml version='1.0' encoding='UTF-8' standalone='yes'?>"
                + "<stream:stream xmlns:stream='http://etherx.jabber.org/streams' xmlns='jabber:server' "
                + "xmlns:db='jabber:server:dialback' from='a.example' to='b.example' version='1.0'>"
                + "<db:result from='a.example' to='b.example'>b4835385f37fe2895af6c196b59097b16862406db80559900d96</db:result>"
                + "<db:verify from='b.example' to='a.example' id='D60000229F' type='valid'/>"
                + "<presence from='a@a.example' to='b@b.example' type='subscribe'/>",
            items: 5
        ),
        GoldenSession(
            name: "pre-1.0: no declaration, no version, authentication by iq",
            text: "<stream:stream to='x' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
                + "<iq type='set' id='a1'><query xmlns='jabber:iq:auth'><username>bill</username><password>Calli0pe"
                + "</password><resource>globe</resource></query></iq></stream:stream>",
            items: 3
        ),
        GoldenSession(
            name: "white space where none may stand: between / and >",
            text: " \r\n" + declaration + "\n\n<stream:stream\n\txmlns = 'jabber:client'\r\n  xmlns:stream\t=\""
                + "http://etherx.jabber.org/streams\" version='1.0' >\n \t<presence \n/ > <a ></a\t> \n\n</stream:stream\n>\n ",
            items: 6
        ),
        GoldenSession(
            name: "white space that is allowed everywhere it may stand",
            text: " \r\n" + declaration + "\n\n<stream:stream\n\txmlns = 'jabber:client'\r\n  xmlns:stream\t=\""
                + "http://etherx.jabber.org/streams\" version='1.0' >\n \t<presence \n/> <a ></a\t> \n\n</stream:stream\n>\n ",
            items: 11
        ),
        GoldenSession(
            name: "CDATA, brackets and signs in text and attributes",
            text: client
                + "<message><body>]] ] >]&gt; <![CDATA[<not a='tag'> ]] ]>  ]]]]><![CDATA[>]]><![CDATA[]]>&amp;</body>"
                + "<x a='>' b=\"'/>\" c='\"=' d='&#x3c;&#60;&quot;&apos;'/></message><![CDATA[x]]>",
            items: 3
        ),
        GoldenSession(
            name: "characters of two, three and four bytes in names, values and text",
            text: client
                + "<message to='żółw@例え.テスト/🐢' ключ='значение'><тело>naïve € 👍🏽 ﷽</тело><ä:ö xmlns:ä='urn:ä' ä:ü='1'/>"
                + "</message><𐀀/></stream:stream>",
            items: 4
        ),
        GoldenSession(
            name: "namespaces: other prefixes, shadowing, undeclaring, unknown ones",
            text: "<s:stream xmlns:s='http://etherx.jabber.org/streams' xmlns:c='jabber:client' xmlns:q='u&amp;v'>"
                + "<c:iq id='1'><q:a xmlns:q='w'><q:b/><b xmlns='urn:x'><c xmlns=''/><d/></b></q:a><q:a/></c:iq>"
                + "<q:stream/><x:message xmlns:x='jabber:client' xml:lang='de'/><xml:a/></s:stream>",
            items: 6
        ),
    ]
}
