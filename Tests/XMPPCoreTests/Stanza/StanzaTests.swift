import Testing
import XMPPCore

/// The element of `xml`, in a stream of the content namespace `content`.
private func element(_ xml: String, content: String = "jabber:client") throws -> Element {
    let root = " xmlns='\(content)' xmlns:stream='http://etherx.jabber.org/streams'"
    return try StanzaParser().parse(Array(xml.utf8).span, root: Array(root.utf8))
}

@Suite struct StanzaTests {
    @Test func aStanzaIsToldByNamespaceAndNameInEachContentNamespace() throws {
        for content in ["jabber:client", "jabber:server", "jabber:component:accept", "jabber:component:connect"] {
            #expect(IQ(try element("<iq/>", content: content)) != nil)
            #expect(Message(try element("<x:message xmlns:x='\(content)'/>", content: content)) != nil)
            #expect(Presence(try element("<presence/>", content: content)) != nil)
        }
        #expect(IQ(try element("<iq xmlns='urn:x'/>")) == nil)
        #expect(IQ(try element("<message/>")) == nil)
        #expect(Message(try element("<presence/>")) == nil)
        #expect(Presence(try element("<iq/>")) == nil)
    }

    @Test func addressesAreReadAsJIDsAndLeftOutWhereTheyAreNone() throws {
        let message = try #require(Message(try element("<message to='a@b/c' from='@x' id='1' xml:lang='de'/>")))
        #expect(message.to == JID("a@b/c"))
        #expect(message.from == nil)
        #expect(message.id == "1")
        #expect(message.language == "de")
        #expect(message.error == nil)
    }

    @Test func anIQIsARequestOrAResponse() throws {
        let get = try #require(IQ(try element("<iq type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>")))
        #expect(get.type == .get)
        #expect(get.isRequest)
        #expect(!get.isResponse)
        #expect(get.payload?.matches("ping", .ping) == true)
        let result = try #require(IQ(try element("<iq type='result' id='1'/>")))
        #expect(result.isResponse)
        #expect(result.payload == nil)
        let odd = try #require(IQ(try element("<iq type='GET'/>")))
        #expect(odd.type == nil)
        #expect(!odd.isRequest && !odd.isResponse)
    }

    @Test func anErrorSaysWhatAndWhatToDo() throws {
        let iq = try #require(
            IQ(
                try element(
                    "<iq type='error' id='1'><error type='cancel' code='404' by='b'><text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>"
                        + "gone</text><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/><own xmlns='urn:own'/></error>"
                        + "<query xmlns='jabber:iq:roster'/></iq>"
                )
            )
        )
        let error = try #require(iq.error)
        #expect(error.type == .cancel)
        #expect(error.condition == "item-not-found")
        #expect(error.text == "gone")
        #expect(error.code == 404)
        #expect(error.by == JID("b"))
        #expect(error.applicationCondition?.namespaceURI == "urn:own")
        #expect(iq.payload?.matches("query", .roster) == true)
    }

    @Test func anErrorFromBeforeTheRFCsHasANumberAndWords() throws {
        let stanza = try element("<presence type='error'><error code='404'>Not Found</error></presence>")
        let error = try #require(Presence(stanza)?.error)
        #expect(error.condition == nil)
        #expect(error.type == nil)
        #expect(error.code == 404)
        #expect(error.text == "Not Found")
        #expect(Presence(try element("<presence><error code='404'/></presence>"))?.error == nil)
    }

    @Test func aMessageHasDefaultsAndLanguages() throws {
        let message = try #require(
            Message(
                try element(
                    "<message xml:lang='en' type='odd'><body xml:lang='de-AT'>Servus</body><body>Hello</body><subject/>"
                        + "<body xmlns='http://www.w3.org/1999/xhtml'>x</body><thread parent='p'>t</thread>"
                        + "<composing xmlns='http://jabber.org/protocol/chatstates'/></message>"
                )
            )
        )
        #expect(message.type == .normal)
        #expect(message.body == "Hello")
        #expect(message.body(in: "DE") == "Servus")
        #expect(message.body(in: "en") == "Hello")
        #expect(message.body(in: "d") == nil)
        #expect(message.subject == "")
        #expect(message.thread == "t")
        #expect(message.parentThread == "p")
        #expect(message.chatState == .composing)
        let bare = try #require(Message(try element("<message type='chat'/>")))
        #expect(bare.type == .chat)
        #expect(bare.body == nil && bare.subject == nil && bare.thread == nil && bare.chatState == nil)
    }

    @Test(arguments: [("5", 5), ("-128", -128), (" 7\n", 7), ("128", 0), ("x", 0), ("", 0)])
    func aPriorityIsAByteOrNothing(_ text: String, _ priority: Int) throws {
        #expect(Presence(try element("<presence><priority>\(text)</priority></presence>"))?.priority == priority)
    }

    @Test func aPresenceIsAvailableUnlessItSaysOtherwise() throws {
        let presence = try #require(
            Presence(
                try element(
                    "<presence><show>xa</show><status>out</status><status xml:lang='de'>fort</status></presence>"
                )
            )
        )
        #expect(presence.type == .available)
        #expect(presence.show == .xa)
        #expect(presence.status == "out")
        #expect(presence.status(in: "de") == "fort")
        #expect(presence.priority == 0)
        #expect(Presence(try element("<presence type='subscribe'/>"))?.type == .subscribe)
        #expect(Presence(try element("<presence type='invisible'/>"))?.type == nil)
        #expect(Presence(try element("<presence><show>online</show></presence>"))?.show == nil)
    }
}

@Suite struct NonzaTests {
    @Test func streamFeaturesOfALoginAreRead() throws {
        let features = try #require(
            StreamFeatures(
                try element(
                    "<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'><required/></starttls>"
                        + "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>SCRAM-SHA-1</mechanism>"
                        + "<mechanism>PLAIN</mechanism></mechanisms>"
                        + "<authentication xmlns='urn:xmpp:sasl:2'><mechanism>SCRAM-SHA-256</mechanism><inline>"
                        + "<bind xmlns='urn:xmpp:bind:0'/><fast xmlns='urn:xmpp:fast:0'><mechanism>HT-SHA-256-NONE</mechanism>"
                        + "</fast></inline></authentication>"
                        + "<sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'><channel-binding type='tls-exporter'/>"
                        + "</sasl-channel-binding></stream:features>"
                )
            )
        )
        #expect(features.startTLS == .required)
        #expect(features.mechanisms == ["SCRAM-SHA-1", "PLAIN"])
        #expect(features.sasl2Mechanisms == ["SCRAM-SHA-256"])
        #expect(features.inlineFeatures.count == 2)
        #expect(features.offersInlineBinding)
        #expect(features.tokenMechanisms == ["HT-SHA-256-NONE"])
        #expect(features.channelBindings == ["tls-exporter"])
        #expect(!features.offersBinding)
    }

    @Test func streamFeaturesAfterALoginAreRead() throws {
        let features = try #require(
            StreamFeatures(
                try element(
                    "<f:features xmlns:f='http://etherx.jabber.org/streams'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>"
                        + "<session xmlns='urn:ietf:params:xml:ns:xmpp-session'><optional/></session><sm xmlns='urn:xmpp:sm:2'/>"
                        + "<sm xmlns='urn:xmpp:sm:3'/><csi xmlns='urn:xmpp:csi:0'/><ver xmlns='urn:xmpp:features:rosterver'/>"
                        + "<compression xmlns='http://jabber.org/features/compress'><method>zlib</method></compression>"
                        + "<register xmlns='http://jabber.org/features/iq-register'/><auth xmlns='http://jabber.org/features/iq-auth'/>"
                        + "</f:features>"
                )
            )
        )
        #expect(features.offersBinding)
        #expect(features.session == .optional)
        #expect(features.streamManagement == .streamManagement)
        #expect(features.offersClientState)
        #expect(features.offersRosterVersions)
        #expect(features.compressionMethods == ["zlib"])
        #expect(features.offersRegistration)
        #expect(features.offersIQAuthentication)
    }

    @Test func emptyFeaturesOfferNothing() throws {
        let features = try #require(StreamFeatures(try element("<stream:features/>")))
        #expect(features.startTLS == .absent && features.session == .absent)
        #expect(features.mechanisms.isEmpty && features.sasl2Mechanisms == nil && features.channelBindings == nil)
        #expect(features.streamManagement == nil && !features.offersBinding && !features.offersInlineBinding)
        #expect(StreamFeatures(try element("<features/>")) == nil)
    }

    @Test func aStreamErrorSaysWhyAndWhereToGo() throws {
        let error = try #require(
            StreamError(
                try element(
                    "<stream:error><see-other-host xmlns='urn:ietf:params:xml:ns:xmpp-streams'>[::1]:5222</see-other-host>"
                        + "<text xmlns='urn:ietf:params:xml:ns:xmpp-streams'>moved</text><own xmlns='urn:own'/></stream:error>"
                )
            )
        )
        #expect(error.condition == .seeOtherHost)
        #expect(error.otherHost == "[::1]:5222")
        #expect(error.text == "moved")
        #expect(error.applicationCondition?.name == "own")
        let unknown = try #require(
            StreamError(try element("<stream:error><odd xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>"))
        )
        #expect(unknown.condition == nil)
        #expect(unknown.conditionName == "odd")
        #expect(unknown.otherHost == nil)
        #expect(StreamError(try element("<stream:error>Disconnected</stream:error>"))?.text == "Disconnected")
        #expect(StreamError(try element("<error/>")) == nil)
    }
}
