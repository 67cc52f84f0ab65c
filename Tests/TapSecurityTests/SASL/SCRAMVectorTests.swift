import Foundation
import TapCore
import TapSecurity
import TapTestKit
import Testing

/// The exchanges printed in RFC 5802 and RFC 7677, message by message from both sides.
@Suite(.enabled(if: Corpus.isAvailable, "XMPPTAP_CORPUS is not set"))
struct SCRAMVectorTests {
    private struct Vector: Decodable {
        let mech: String
        let user: String
        let password: String
        let client_first: String
        let server_first: String
        let client_final: String
        let server_final: String

        /// Returns the value of an attribute in a message.
        func value(_ name: String, of message: String) throws -> String {
            let piece = message.components(separatedBy: ",").first { $0.hasPrefix("\(name)=") }
            return String(try #require(piece).dropFirst(2))
        }
    }

    @Test func `client and server send the messages of the RFCs' examples`() throws {
        let vectors = try JSONDecoder().decode([Vector].self, from: Corpus.read("scram-vectors.json"))
        #expect(vectors.count == 2)
        for vector in vectors { try check(vector) }
    }

    private func check(_ vector: Vector) throws {
        let cryptography = OpenSSLCryptography()
        let mechanism = try #require(SCRAMMechanism(name: vector.mech))
        let clientNonce = try vector.value("r", of: vector.client_first)
        let nonce = try vector.value("r", of: vector.server_first)
        let salt = try #require(Data(base64Encoded: vector.value("s", of: vector.server_first)))
        let kept = try SCRAMCredentials(
            mechanism.algorithm,
            password: vector.password,
            salt: Array(salt),
            cryptography: cryptography
        )

        var client = SCRAMClient(
            mechanism,
            identity: .init(authentication: vector.user),
            secret: .password(vector.password),
            nonce: clientNonce,
            cryptography: cryptography
        )
        let serverNonce = String(nonce.dropFirst(clientNonce.count))
        var server = SCRAMServer(
            mechanism,
            settings: .init(nonce: serverNonce, decoyKey: []) { _ in kept },
            cryptography: cryptography
        )

        #expect(client.step(nil) == .send(Array(vector.client_first.utf8)))
        #expect(server.step(Array(vector.client_first.utf8)) == .send(Array(vector.server_first.utf8)))
        #expect(client.step(Array(vector.server_first.utf8)) == .send(Array(vector.client_final.utf8)))
        #expect(server.step(Array(vector.client_final.utf8)) == .done(Array(vector.server_final.utf8)))
        #expect(client.step(Array(vector.server_final.utf8)) == .done(nil))
    }
}
