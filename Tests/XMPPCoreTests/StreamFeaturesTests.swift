import Testing
import XMPPCore

/// Returns the element of `xml` in a stream with the content namespace `content`.
private func element(_ xml: String, content: String = "jabber:client") throws -> Element {
    let root = " xmlns='\(content)' xmlns:stream='http://etherx.jabber.org/streams'"
    return try StanzaParser().parse(Array(xml.utf8).span, root: Array(root.utf8))
}

@Suite struct StreamFeaturesTests {
    @Test func `the stream features before a login are read`() throws {
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

    @Test func `the stream features after a login are read`() throws {
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
        #expect(features.offersRegistration)
    }

    @Test(arguments: [
        (
            "<limits xmlns='urn:xmpp:stream-limits:0'><idle-seconds>60</idle-seconds><max-bytes>262144</max-bytes></limits>",
            262144
        ),
        ("<limits xmlns='urn:xmpp:stream-limits:0'><max-bytes xmlns=''> 10000\n</max-bytes></limits>", 10000),
        ("<limits xmlns='urn:xmpp:stream-limits:0'><max-bytes>0</max-bytes></limits>", nil),
        ("<limits xmlns='urn:xmpp:stream-limits:0'><max-bytes>99999999999999999999</max-bytes></limits>", nil),
        ("<limits xmlns='urn:xmpp:stream-limits:0'><max-bytes>-5</max-bytes></limits>", nil),
        ("<limits xmlns='urn:xmpp:stream-limits:0'/>", nil),
        ("<limits><max-bytes>10000</max-bytes></limits>", nil),
    ])
    func `the announced size limit of stanzas is read`(limits: String, bytes: Int?) throws {
        let features = try #require(StreamFeatures(try element("<stream:features>\(limits)</stream:features>")))
        #expect(features.itemBytes == bytes)
        #expect(
            StreamFeatures.itemBytes(announcedIn: try element("<bidi xmlns='urn:xmpp:bidi'>\(limits)</bidi>")) == bytes
        )
    }

    @Test func `empty features offer nothing`() throws {
        let features = try #require(StreamFeatures(try element("<stream:features/>")))
        #expect(features.startTLS == .absent && features.session == .absent)
        #expect(features.mechanisms.isEmpty && features.sasl2Mechanisms == nil && features.channelBindings == nil)
        #expect(features.streamManagement == nil && !features.offersBinding && !features.offersInlineBinding)
        #expect(StreamFeatures(try element("<features/>")) == nil)
    }
}
