import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@Suite struct SessionSecretsTests {
    @Test(arguments: [Int.max, 997, 61]) func `a session with all secrets is recorded without them`(piece: Int) throws {
        let session = SecretCatalogue.session()
        var harness = SessionHarness()
        for (direction, bytes) in [(Direction.recv, session.recv), (.send, session.send)] {
            var start = 0
            while start < bytes.count {
                let end = start + min(piece, bytes.count - start)
                harness.receive(direction, Array(bytes[start..<end]))
                start = end
            }
        }
        harness.end(.client)
        harness.end(.server)
        harness.close()
        #expect(harness.toServer == session.send, "what passes is untouched")
        #expect(harness.toClient == session.recv)
        #expect(harness.told.count > 300)
        let told = try harness.written()
        #expect(SecretSearch(SecretCatalogue.items).leaks(in: told).prefix(5) == [])
        #expect(told.contains("[redacted:sasl-plain#"))
    }

    static let login =
        "<?xml version='1.0'?><stream:stream xmlns='jabber:client' version='1.0' "
        + "xmlns:stream='http://etherx.jabber.org/streams'>"

    /// Returns an open session.
    private static func open() -> SessionHarness {
        var harness = SessionHarness(
            options: SessionOptions(level: .trace, limits: StreamLimits(itemBytes: 2000))
        )
        harness.send(login + "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>")
        harness.recv(
            login
                + "<iq type='result' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>a@b/c</jid></bind></iq>"
        )
        return harness
    }

    @Test(arguments: [
        // The fault directly follows the secret, or is in an item whose beginning was discarded, or the item is torn.
        "<presence><x xmlns='http://jabber.org/protocol/muc'><password>kQ7zvR2mXw9b&bad;",
        "<message><password>\(String(repeating: "kQ7zvR2mXw9b ", count: 1000))&bad;kQ7zvR2mXw9b",
        "<message><x>\(String(repeating: "<y/>", count: 1000))<password>kQ7zvR2mXw9b<<",
        "<message><body>aesgcm://a/b#kQ7zvR2mXw9b\u{1}",
        "<iq type='set' id='kQ7z'/><message><password>kQ7zvR2mXw9b",
    ]) func `the record of a fault contains no secret`(_ input: String) throws {
        for piece in [Int.max, 500, 1] {
            var harness = Self.open()
            #expect(harness.session.info.jid == "a@b/c")
            let bytes = Array(input.utf8)
            var start = 0
            while start < bytes.count {
                let end = start + min(piece, bytes.count - start)
                harness.receive(.send, Array(bytes[start..<end]))
                start = end
            }
            harness.end(.client)
            harness.end(.server)
            harness.close()
            let told = try harness.written()
            #expect(SecretSearch(secrets: [Array("kQ7zvR2mXw9b".utf8)]).leaks(in: told) == [], "\(piece): \(told)")
        }
    }

    @Test func `a harmless fault is shown with the text around it`() throws {
        var harness = Self.open()
        harness.send("<message to='romeo@example.net'><body>Art thou not &Romeo;, and a Montague?</body></message>")
        let record = try #require(harness.told.first { $0.record.kind == .error }?.record)
        #expect(record.messageText?.contains("Art thou not &Romeo;") == true, "\(record.messageText ?? "")")
    }

    @Test func `the text of an error is shown without keys`() throws {
        var harness = Self.open()
        harness.recv(
            "<message type='error'><error type='cancel'><item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>"
                + "<text xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'>no aesgcm://a/b#kQ7zvR2mXw9b here</text></error></message>"
                + "<stream:error><policy-violation xmlns='urn:ietf:params:xml:ns:xmpp-streams'/><text "
                + "xmlns='urn:ietf:params:xml:ns:xmpp-streams'>xmpp:a@b?;preauth=kQ7zvR2mXw9b</text></stream:error>"
        )
        let messages = harness.told.compactMap(\.record.messageText)
        #expect(messages.contains("no aesgcm://a/b#[redacted:file-key#1] here"))
        #expect(messages.contains("xmpp:a@b?;preauth=[redacted:preauth-token#1]"))
        #expect(SecretSearch(secrets: [Array("kQ7zvR2mXw9b".utf8)]).leaks(in: try harness.written()) == [])
    }
}
