import TapDiagnosis
import Testing

@testable import xmpptap

struct ClientTrustTests {
    @Test(arguments: [
        ("http://slixmpp.com/ver/1.8.3", "slixmpp"),
        ("http://profanity-im.github.io", "profanity"),
        ("Profanity", "profanity"),
        ("https://dino.im", "a client that uses the system's roots"),
        ("http://conversations.im", "an Android app that accepts user CAs"),
        ("http://monal-im.org/", "an app on iOS"),
        ("http://www.igniterealtime.org/projects/smack", "a Java program"),
    ])
    func `a client is recognised by its software name`(name: String, client: String) throws {
        let found = try #require(ClientTrust.matching(ClientSoftware(names: [name])))
        #expect(found.name == client)
        #expect(!found.steps(file: "/tap.pem", authority: "a.example").isEmpty)
    }

    @Test func `the latest software name that fits the TLS library selects the client`() {
        let names = ["http://slixmpp.com/ver/1.8.3", "http://profanity-im.github.io", "https://dino.im"]
        func found(_ library: ClientSoftware.Library?) -> String? {
            ClientTrust.matching(ClientSoftware(names: names, library: library))?.name
        }
        #expect(found(nil) == "slixmpp" && found(.openSSL) == "slixmpp")
        #expect(found(.gnuTLS) == "a client that uses the system's roots")
        #expect(found(.go) == "this Go program")
        #expect(found(.java) == "a Java program")
    }

    @Test(arguments: ClientSoftware.Library.allCases)
    func `each TLS library alone selects advice`(library: ClientSoftware.Library) throws {
        let found = try #require(ClientTrust.matching(ClientSoftware(names: ["urn:nobody"], library: library)))
        #expect(found.steps(file: "/tap.pem", authority: "a.example").joined().contains("/tap.pem"))
    }

    @Test func `an unknown client gets no advice`() {
        #expect(ClientTrust.matching(ClientSoftware()) == nil)
        #expect(ClientTrust.matching(ClientSoftware(names: ["urn:nobody", ""])) == nil)
    }
}
