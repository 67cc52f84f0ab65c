import TapCore
import TapSecurity
import Testing

/// Tests with malformed messages: each is refused with its error, and none leads to success.
@Suite struct SCRAMMessageTests {
    private let cryptography = OpenSSLCryptography()

    private func server() throws -> SCRAMServer {
        let kept = try SCRAMCredentials(
            .sha1,
            password: "pencil",
            salt: Array("salt".utf8),
            cryptography: cryptography
        )
        return SCRAMServer(
            .init(.sha1),
            settings: .init(nonce: "s", decoyKey: []) { $0 == "user" ? kept : nil },
            cryptography: cryptography
        )
    }

    private func client() -> SCRAMClient {
        SCRAMClient(
            .init(.sha1),
            identity: .init(authentication: "user"),
            secret: .password("pencil"),
            nonce: "c",
            cryptography: cryptography
        )
    }

    /// Returns the four messages of a successful exchange.
    private func exchange() throws -> [[UInt8]] {
        var client = self.client()
        var server = try self.server()
        let first = try #require(client.step(nil).message)
        let challenge = try #require(server.step(first).message)
        let final = try #require(client.step(challenge).message)
        guard case .done(let verifier?) = server.step(final) else {
            Issue.record("no exchange")
            return []
        }
        return [first, challenge, final, verifier]
    }

    @Test(arguments: [
        "", "n", "n,", "n,,", "n,,n=user", "n,,r=c,n=user", "n,,n=user,r=", "n,,n=,r=c", "x,,n=user,r=c",
        ",,n=user,r=c",
        "nn,,n=user,r=c", "p,,n=user,r=c", "p=,,n=user,r=c", "p=a_b,,n=user,r=c", "n,x,n=user,r=c", "n,a=,n=user,r=c",
        "n,a=x=2,n=user,r=c", "n,,n=us=er,r=c", "n,,n=us=2cer,r=c", "n,,n=us=,r=c", "n,,n=user,r=c d", "n,,n=user,r=ç",
        "n,,n=user,r=c,", "n,,n=user,r=c,x", "n,,n=user,r=c,1=2", "n,,m=x,n=user,r=c", "n,,n=user,r=c\0",
        "n,,n=us\u{7}er,r=c", "n,,n=user,\u{301}r=c", "biwsbj11c2Vy",
    ])
    func `a first message that violates the grammar is malformed`(message: String) throws {
        var server = try self.server()
        #expect(server.step(Array(message.utf8)).condition == .malformedRequest)
    }

    @Test(arguments: [
        ("", SASLCondition.malformedRequest), ("c=biws,r=cs", .malformedRequest), ("p=AAAA", .malformedRequest),
        ("c=biws,r=cs,p=", .notAuthorized), ("c=biws,r=cs,p=AAAA", .notAuthorized),
        ("c=biws,r=cs,p=?", .incorrectEncoding),
        ("c=b,r=cs,p=AAAA", .incorrectEncoding), ("c=eSws,r=cs,p=AAAA", .malformedRequest),
        ("c=biws,r=c,p=AAAA", .malformedRequest), ("c=biws,r=csx,p=AAAA", .malformedRequest),
        ("r=cs,c=biws,p=AAAA", .malformedRequest), ("m=1,c=biws,r=cs,p=AAAA", .malformedRequest),
        ("c=biws,r=cs,p=AAAA,x=1", .malformedRequest), ("c=biws,,r=cs,p=AAAA", .malformedRequest),
    ])
    func `an invalid final message fails with its condition`(message: String, condition: SASLCondition) throws {
        var server = try self.server()
        _ = server.step(Array("n,,n=user,r=c".utf8))
        #expect(server.step(Array(message.utf8)).condition == condition)
        #expect(server.identity == nil)
    }

    @Test(arguments: [
        "", "r=cs", "r=cs,s=QQ==", "r=c,s=QQ==,i=4096", "r=xs,s=QQ==,i=4096", "r=cs,s=,i=4096", "r=cs,s=?,i=4096",
        "r=cs,s=QQ==,i=", "r=cs,s=QQ==,i=0", "r=cs,s=QQ==,i=04096", "r=cs,s=QQ==,i=-4096", "r=cs,s=QQ==,i=4095",
        "r=cs,s=QQ==,i=1000001", "r=cs,s=QQ==,i=99999999999999999999", "s=QQ==,r=cs,i=4096", "m=x,r=cs,s=QQ==,i=4096",
        "e=invalid-encoding", "r=c s,s=QQ==,i=4096", "r=cs,s=QQ==,i=4096,",
    ])
    func `a client fails on an invalid challenge`(challenge: String) {
        var client = self.client()
        _ = client.step(nil)
        #expect(client.step(Array(challenge.utf8)).condition != nil)
    }

    @Test func `optional extensions are ignored`() throws {
        var client = self.client()
        _ = client.step(nil)
        #expect(client.step(Array("r=cs,s=QQ==,i=4096,h=abc,t=0304".utf8)).message != nil)
        var server = try self.server()
        #expect(server.step(Array("n,,n=user,r=c,x=y".utf8)).message != nil)
    }

    @Test func `an error text of the server that is not standard is replaced by other-error`() {
        for error in ["\u{1B}[2Jgone", "the password was rosaline", String(repeating: "x", count: 65), ""] {
            var client = self.client()
            _ = client.step(nil)
            #expect(
                client.step(Array("e=\(error)".utf8))
                    == .failed(.notAuthorized, text: "the server answered other-error")
            )
        }
    }

    @Test func `a standard error code of the server is reported`() {
        var client = self.client()
        _ = client.step(nil)
        #expect(
            client.step(Array("e=other-error".utf8)) == .failed(.notAuthorized, text: "the server answered other-error")
        )
    }

    @Test func `no truncated or modified message leads to success`() throws {
        let messages = try exchange()
        for (index, message) in messages.enumerated() {
            for position in message.indices {
                for change in [nil, 0, UInt8(ascii: ","), message[position] ^ 1, 0xff] as [UInt8?] {
                    var changed = message
                    if let change { changed[position] = change } else { changed.removeSubrange(position...) }
                    guard changed != message else { continue }
                    try expectNoSuccess(index, changed, of: messages)
                }
            }
        }
    }

    /// Passes one modified message to its receiver; the other messages are original.
    private func expectNoSuccess(_ index: Int, _ changed: [UInt8], of messages: [[UInt8]]) throws {
        if index.isMultiple(of: 2) {
            var server = try self.server()
            for (position, message) in [(0, messages[0]), (2, messages[2])] {
                let step = server.step(position == index ? changed : message)
                guard case .done = step else { continue }
                Issue.record("the server believed \(changed)")
            }
        } else {
            var client = self.client()
            _ = client.step(nil)
            for (position, message) in [(1, messages[1]), (3, messages[3])] {
                guard case .done = client.step(position == index ? changed : message) else { continue }
                Issue.record("the client believed \(changed)")
            }
        }
    }
}
