import TapCore
import TapSecurity
import Testing

/// Tests of client and server with each other, in exchanges that succeed and that fail.
@Suite struct SCRAMTests {
    private static let families = HashAlgorithm.allCases.map { SCRAMMechanism($0) }
    private static let salt = Array("0123456789abcdef".utf8)
    private let cryptography = OpenSSLCryptography()

    private func server(
        _ mechanism: SCRAMMechanism,
        password: String = "wherefore",
        bindings: [ChannelBinding] = []
    ) throws -> SCRAMServer {
        let kept = try SCRAMCredentials(
            mechanism.algorithm,
            password: password,
            salt: Self.salt,
            cryptography: cryptography
        )
        return SCRAMServer(
            mechanism,
            settings: .init(nonce: "server", channelBindings: bindings, decoyKey: [1]) { $0 == "ro,m=eo" ? kept : nil },
            cryptography: cryptography
        )
    }

    private func client(
        _ mechanism: SCRAMMechanism,
        name: String = "ro,m=eo",
        password: String = "wherefore",
        binding: BindingClaim = .unsupported
    ) -> SCRAMClient {
        SCRAMClient(
            mechanism,
            identity: SASLIdentity(authentication: name, authorization: "x@y,z"),
            secret: .password(password),
            nonce: "client",
            binding: binding,
            cryptography: cryptography
        )
    }

    /// Runs both sides to the end; returns their last steps.
    private func run(_ client: inout SCRAMClient, _ server: inout SCRAMServer) -> (client: SASLStep, server: SASLStep) {
        var message: [UInt8]?
        while true {
            let said = client.step(message)
            guard case .send(let request) = said else { return (said, .send([])) }
            let answer = server.step(request)
            switch answer {
            case .send(let challenge): message = challenge
            case .done(let data): return (client.step(data), answer)
            case .failed: return (said, answer)
            }
        }
    }

    @Test(arguments: families)
    func `client and server authenticate each other`(mechanism: SCRAMMechanism) throws {
        var client = self.client(mechanism)
        var server = try self.server(mechanism)
        let ends = run(&client, &server)
        #expect(ends.client == .done(nil))
        #expect(server.identity == SASLIdentity(authentication: "ro,m=eo", authorization: "x@y,z"))
        #expect(SCRAMMechanism(name: server.mechanism) == mechanism)
    }

    @Test(arguments: families, [("ro,m=eo", "what"), ("nobody", "wherefore")])
    func `a wrong password and an unknown name get the same failure`(
        mechanism: SCRAMMechanism,
        credentials: (String, String)
    ) throws {
        var client = self.client(mechanism, name: credentials.0, password: credentials.1)
        var server = try self.server(mechanism)
        let ends = run(&client, &server)
        #expect(ends.server == .failed(.notAuthorized, text: "wrong user name or password"))
        #expect(server.identity == nil)
    }

    @Test func `an unknown name always gets the same salt from a server, but another one from another server`() throws {
        func challenge(key: [UInt8]) throws -> SASLStep {
            var server = SCRAMServer(
                .init(.sha256),
                settings: .init(nonce: "s", decoyKey: key) { _ in nil },
                cryptography: cryptography
            )
            return server.step(Array("n,,n=nobody,r=c".utf8))
        }
        #expect(try challenge(key: [1]) == challenge(key: [1]))
        #expect(try challenge(key: [1]) != challenge(key: [2]))
    }

    @Test func `a server that does not know the password is detected`() throws {
        let mechanism = SCRAMMechanism(.sha256)
        var client = self.client(mechanism)
        var server = try self.server(mechanism)
        guard case .send(let first) = client.step(nil), case .send(let challenge) = server.step(first),
            case .send = client.step(challenge)
        else {
            Issue.record("no exchange")
            return
        }
        let forged = Array("v=\(String(repeating: "A", count: 43))=".utf8)
        let text = "the server does not know the password: its signature is wrong"
        #expect(client.step(forged) == .failed(.notAuthorized, text: text))
    }

    @Test func `a success without the server's signature is refused at any stage`() throws {
        var early = self.client(.init(.sha1))
        _ = early.step(nil)
        #expect(early.step(nil).condition == .notAuthorized)
        var late = self.client(.init(.sha1))
        var server = try self.server(.init(.sha1))
        let first = try #require(late.step(nil).message)
        let challenge = try #require(server.step(first).message)
        _ = late.step(challenge)
        #expect(late.step(nil).condition == .notAuthorized)
    }

    // MARK: Channel binding

    @Test func `a login succeeds only if both sides bind the same connection`() throws {
        let mechanism = SCRAMMechanism(.sha256, isPlus: true)
        let here = ChannelBinding(type: "tls-exporter", data: [0, 1, 2, 255])
        let elsewhere = ChannelBinding(type: "tls-exporter", data: [0, 1, 2, 254])
        for (binding, end) in [(here, nil), (elsewhere, "channel-bindings-dont-match")] {
            var client = self.client(mechanism, binding: .bound(binding))
            var server = try self.server(mechanism, bindings: [here])
            let ends = run(&client, &server)
            if let end {
                #expect(ends.server == .failed(.malformedRequest, text: end))
            } else {
                #expect(ends.client == .done(nil))
            }
        }
    }

    @Test(arguments: [
        ("y,,", false, true, "server-does-support-channel-binding"), ("y,,", false, false, nil),
        ("n,,", false, true, nil), ("n,,", true, true, "channel-bindings-dont-match"),
        ("y,,", true, true, "channel-bindings-dont-match"),
        ("p=tls-exporter,,", false, true, "channel-binding-not-supported"),
        ("p=tls-unique,,", true, true, "unsupported-channel-binding-type"), ("p=tls-exporter,,", true, true, nil),
    ])
    func `each GS2 flag is checked against the server's offer`(
        header: String,
        isPlus: Bool,
        isBound: Bool,
        refusal: String?
    ) throws {
        let bindings = isBound ? [ChannelBinding(type: "tls-exporter", data: [1])] : []
        var server = try self.server(.init(.sha1, isPlus: isPlus), bindings: bindings)
        let step = server.step(Array("\(header)n=ro=2Cm=3Deo,r=c".utf8))
        if let refusal {
            #expect(step == .failed(.malformedRequest, text: refusal))
        } else {
            #expect(step.message != nil)
        }
    }

    @Test func `a client refuses a mechanism that contradicts its channel binding`() {
        let binding = ChannelBinding(type: "tls-exporter", data: [1])
        for (isPlus, binding) in [(true, .unsupported), (true, .notOffered), (false, .bound(binding))]
            as [(Bool, BindingClaim)]
        {
            var client = self.client(.init(.sha1, isPlus: isPlus), binding: binding)
            #expect(client.step(nil).condition == .malformedRequest)
        }
    }
}
