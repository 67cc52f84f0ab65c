import TapCore
import TapRecord
import TapSecurity
import Testing

/// A server's signatures of its offer (XEP-0474, XEP-0515), and how a client checks them.
struct SignedOfferTests {
    private static let cryptography = OpenSSLCryptography()
    /// The offer in the examples of both XEPs, in another order.
    private static let offer = LoginOffer(
        mechanisms: ["SCRAM-SHA-1-PLUS", "SCRAM-SHA-1"],
        bindingTypes: ["tls-server-end-point", "tls-exporter"],
        tlsVersion: 0x0304
    )
    private static let hash = "G6k/rBLDqgOhRRaCuuatSDFkJ08="

    @Test func `the signed list is sorted, and has the hash of the example in XEP-0474`() throws {
        let expected = "SCRAM-SHA-1\u{1e}SCRAM-SHA-1-PLUS\u{1f}tls-exporter\u{1e}tls-server-end-point"
        #expect(Self.offer.signedList == Array(expected.utf8))
        let hash = try Self.cryptography.digest(.sha1, of: Self.offer.signedList)
        #expect(Base64.encode(hash) == Self.hash)
    }

    @Test func `the signed list has binding types only if the server sent a list, even an empty one`() {
        #expect(LoginOffer(mechanisms: ["B", "A"]).signedList == Array("A\u{1e}B".utf8))
        #expect(LoginOffer(mechanisms: ["A"], bindingTypes: []).signedList == Array("A\u{1f}".utf8))
        #expect(LoginOffer(mechanisms: []).signedVersion == nil)
        #expect(LoginOffer(mechanisms: [], tlsVersion: 0x0303).signedVersion == "0303")
    }

    /// The exchange of the example in XEP-0515, from both sides.
    @Test func `client and server send the messages of the example in XEP-0515`() throws {
        let nonces = ("12C4CD5C-E38E-4A98-8F6D-15C38F51CCC6", "a09117a6-ac50-4f2f-93f1-93799c2bddf6")
        let binding = ChannelBinding(type: "tls-exporter", data: Array("THIS IS FAKE CB DATA".utf8))
        let plus = SCRAMMechanism(.sha1, isPlus: true)
        let kept = try SCRAMCredentials(
            .sha1,
            password: "pencil",
            salt: Base64.decode("QSXCR+Q6sek8bf92") ?? [],
            cryptography: Self.cryptography
        )
        var client = SCRAMClient(
            plus,
            identity: .init(authentication: "user"),
            secret: .password("pencil"),
            nonce: nonces.0,
            binding: .bound(binding),
            offer: Self.offer,
            cryptography: Self.cryptography
        )
        var server = SCRAMServer(
            plus,
            settings: .init(nonce: nonces.1, channelBindings: [binding], decoyKey: [], offer: Self.offer) { _ in kept },
            cryptography: Self.cryptography
        )
        let clientFirst = Array("p=tls-exporter,,n=user,r=\(nonces.0)".utf8)
        let serverFirst = Array("r=\(nonces.0)\(nonces.1),s=QSXCR+Q6sek8bf92,i=4096,h=\(Self.hash),t=0304".utf8)
        let clientFinal = Array(
            ("c=cD10bHMtZXhwb3J0ZXIsLFRISVMgSVMgRkFLRSBDQiBEQVRB,r=\(nonces.0)\(nonces.1),p=KHUfN8dSy1K95crT4D5y1ItLJfs=")
                .utf8
        )
        let serverFinal = Array("v=3w34ZIMVRkx2f2Ozb3/ecRPVdv4=".utf8)
        #expect(client.step(nil) == .send(clientFirst))
        #expect(server.step(clientFirst) == .send(serverFirst))
        #expect(client.step(serverFirst) == .send(clientFinal))
        #expect(server.step(clientFinal) == .done(serverFinal))
        #expect(client.step(serverFinal) == .done(nil))
    }

    @Test(arguments: [
        (",h=\(hash)", nil as String?), (",t=0304", nil), (",x=1", nil), (",d=c29tZXRoaW5n", nil),
        (",h=AAAA", "mechanisms or channel bindings"), (",t=0303", "TLS version"), (",t=0304x", "TLS version"),
        (",h=", "mechanisms or channel bindings"),
    ])
    func `a client continues only if the signed hash matches the received offer`(attributes: String, refusal: String?) {
        var client = SCRAMClient(
            SCRAMMechanism(.sha1),
            identity: .init(authentication: "user"),
            secret: .password("pencil"),
            nonce: "abc",
            offer: Self.offer,
            cryptography: Self.cryptography
        )
        _ = client.step(nil)
        let answer = client.step(Array("r=abcdef,s=QSXCR+Q6sek8bf92,i=4096\(attributes)".utf8))
        switch (answer, refusal) {
        case (.send, nil): break
        case (.failed(.notAuthorized, let text), let refusal?): #expect(text.contains(refusal))
        default: Issue.record("\(answer) after \(attributes)")
        }
        #expect((client.mechanismSignature == .altered) == (refusal == "mechanisms or channel bindings"))
        #expect((client.versionSignature == .altered) == (refusal == "TLS version"))
        #expect((client.mechanismSignature == .genuine) == attributes.hasPrefix(",h=\(Self.hash)"))
    }
}
