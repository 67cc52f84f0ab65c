import TapCore
import TapSecurity
import Testing

@Suite struct PlainTests {
    private func server() -> PlainServer {
        PlainServer { names, password in names.authentication == "romeo" && password == "wherefore" }
    }

    @Test func `a client logs in with and without an initial response`() throws {
        for asks in [false, true] {
            var client = PlainClient(identity: SASLIdentity(authentication: "romeo"), password: "wherefore")
            var server = self.server()
            if asks { #expect(server.step(nil) == .send([])) }
            let message = try #require(client.step(asks ? [] : nil).message)
            #expect(message == Array("\0romeo\0wherefore".utf8))
            #expect(server.step(message) == .done(nil))
            #expect(server.identity == SASLIdentity(authentication: "romeo"))
            #expect(client.step(nil) == .done(nil))
        }
    }

    @Test func `the authorization identity is returned for the caller to check`() {
        var server = self.server()
        #expect(server.step(Array("juliet@localhost\0romeo\0wherefore".utf8)) == .done(nil))
        #expect(server.identity?.authorization == "juliet@localhost")
    }

    @Test func `a wrong password is not authorized, and authenticates no identity`() {
        var server = self.server()
        let step = server.step(Array("\0romeo\0whatever".utf8))
        #expect(step == .failed(.notAuthorized, text: "wrong user name or password"))
        #expect(server.identity == nil)
        #expect(server.step(Array("\0romeo\0wherefore".utf8)).condition != nil)
    }

    @Test(arguments: [
        "", "\0", "romeo\0wherefore", "\0romeo\0", "\0\0wherefore", "\0romeo\0wherefore\0", "\0ro\u{7}meo\0wherefore",
    ])
    func `a message that violates the grammar is malformed`(message: String) {
        var server = self.server()
        #expect(server.step(Array(message.utf8)).condition == .malformedRequest)
        #expect(server.identity == nil)
    }

    @Test func `a message that is not UTF-8 is refused`() {
        var server = self.server()
        #expect(server.step([0, 0xff, 0, 0x61]).condition == .malformedRequest)
    }

    @Test(arguments: [("", "x"), ("a\0b", "x"), ("romeo", ""), ("romeo", "x\0y")])
    func `a client refuses names and passwords that PLAIN cannot contain`(name: String, password: String) {
        var client = PlainClient(identity: SASLIdentity(authentication: name), password: password)
        #expect(client.step(nil).condition == .malformedRequest)
    }
}
