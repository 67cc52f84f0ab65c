import NIOCore
import TapSecurity
import TapTestKit
import Testing

/// Tests of the reported TLS messages, with their names and lengths.
@Suite(.enabled(if: TestProgram.areInstalled(.openssl), "openssl is missing")) struct TLSMessagesTests {
    @Test func `the messages of a TLS 1.3 handshake are listed with their direction on request`()
        async throws
    {
        var pair = try await EngineFixture.common.pair()
        pair.client.keepMessages()
        pair.pump()
        let messages = pair.client.takeMessages()
        let names = messages.map(\.name).filter { $0 != "ChangeCipherSpec" }
        #expect(
            Array(names.prefix(6))
                == [
                    "ClientHello", "ServerHello", "EncryptedExtensions", "Certificate", "CertificateVerify", "Finished",
                ]
        )
        // The session ticket arrives with the first plaintext.
        #expect(!names.contains("NewSessionTicket"))
        pair.server.write(ByteBuffer(string: "plaintext"))
        pair.server.write(ByteBuffer(string: " and more"))
        pair.pump()
        #expect(pair.client.takeMessages().map(\.name) == ["NewSessionTicket"])
        #expect(String(buffer: pair.atClient) == "plaintext and more")
        #expect(messages.first?.isReceived == false && messages.first { $0.name == "ServerHello" }?.isReceived == true)
        #expect(messages.allSatisfy { $0.length > 0 } && pair.client.takeMessages().isEmpty)
        #expect(pair.server.takeMessages().isEmpty)
        pair.server.finish()
        pair.pump()
        #expect(pair.client.takeMessages().map(\.name) == ["Alert close_notify"])
    }

    @Test func `the messages of a TLS 1.2 handshake are listed, including the final alert`() async throws {
        var pair = try await EngineFixture.common.pair(domain: "other.example") { $0.maximumVersion = .tls12 }
        pair.server.keepMessages()
        pair.pump()
        let names = pair.server.takeMessages().map(\.name)
        #expect(
            names == [
                "ClientHello", "ServerHello", "Certificate", "ServerKeyExchange", "ServerHelloDone",
                "Alert bad_certificate",
            ],
            "\(names)"
        )
    }
}
