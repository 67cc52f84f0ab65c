import NIOCore
import NIOPosix
import Synchronization
import TapSecurity
import TapTestKit
import Testing

/// The TLS handler on real sockets, with OpenSSL's client and server tools.
@Suite(.enabled(if: TestProgram.openssl.isInstalled), .serialized) struct OpenSSLToolTests {
    /// The events of a channel, accessible from any thread.
    private final class Witness: Sendable {
        struct Sight {
            var text = ""
            var parameters: TLSParameters?
            var exporter: [UInt8]?
            var fault: TLSFault?
            var isTruncated = false
            var isInputClosed = false
            var isOver = false
        }

        private let state = Mutex(Sight())

        var sight: Sight { state.withLock { $0 } }

        func note(_ change: (inout Sight) -> Void) { state.withLock { change(&$0) } }

        func wait(for what: String, _ isThere: (Sight) -> Bool) async throws -> Sight {
            let end = ContinuousClock.now + .seconds(30)
            while ContinuousClock.now < end {
                let sight = self.sight
                if isThere(sight) { return sight }
                try await Task.sleep(for: .milliseconds(10))
            }
            throw KitError("no \(what) after 30 seconds; seen: \(sight)")
        }
    }

    /// Records events, answers each line, and closes on failure or end.
    private final class Peer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        let tls: TLSHandler
        let witness: Witness
        let greeting: String
        let answers: Bool

        init(_ tls: TLSHandler, _ witness: Witness, greeting: String, answers: Bool) {
            self.tls = tls
            self.witness = witness
            self.greeting = greeting
            self.answers = answers
        }

        func channelActive(context: ChannelHandlerContext) { tls.start() }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let text = String(buffer: unwrapInboundIn(data))
            witness.note { $0.text += text }
            if answers {
                context.write(wrapOutboundOut(ByteBuffer(string: "got " + text)), promise: nil)
                context.writeAndFlush(wrapOutboundOut(ByteBuffer()), promise: nil)
                context.close(mode: .output, promise: nil)
            }
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            switch event {
            case TLSHandler.Event.opened:
                witness.note {
                    $0.parameters = tls.engine.parameters()
                    $0.exporter = tls.engine.channelBinding(.exporter)
                }
                if !greeting.isEmpty {
                    context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: greeting)), promise: nil)
                }
            case TLSHandler.Event.failed(let fault):
                witness.note { $0.fault = fault }
                context.close(promise: nil)
            case TLSHandler.Event.truncated: witness.note { $0.isTruncated = true }
            case ChannelEvent.inputClosed:
                witness.note { $0.isInputClosed = true }
                context.close(mode: .output, promise: nil)
            default: break
            }
        }

        func channelInactive(context: ChannelHandlerContext) { witness.note { $0.isOver = true } }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// Starts a server on a free port.
    private func listen(
        _ fixture: EngineFixture,
        _ witness: Witness,
        offer: ClientLegOffer? = nil
    ) async throws -> (any Channel, port: Int) {
        let offer = offer ?? ClientLegOffer(identity: fixture.identity)
        let context = fixture.serverContext
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let tls = TLSHandler(try TLSEngine(context, for: offer))
                    try channel.pipeline.syncOperations.addHandlers([
                        tls, Peer(tls, witness, greeting: "", answers: true),
                    ])
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return (channel, try #require(channel.localAddress?.port))
    }

    /// Connects a client to a port.
    private func connect(_ port: UInt16, _ context: TLSContext, _ target: ServerLegTarget, _ witness: Witness)
        async throws -> any Channel
    {
        try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let tls = TLSHandler(try TLSEngine(context, to: target))
                    try channel.pipeline.syncOperations.addHandlers([
                        tls, Peer(tls, witness, greeting: "abc\n", answers: false),
                    ])
                }
            }
            .connect(host: "127.0.0.1", port: Int(port)).get()
    }

    private func client(_ port: Int, _ arguments: [String], input: String) throws -> ToolProcess {
        try ToolProcess(
            TestProgram.openssl.rawValue,
            ["s_client", "-connect", "127.0.0.1:\(port)", "-servername", "example.org"] + arguments,
            input: input
        )
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `openssl s_client connects, verifies the leaf, and derives the same keys`(version: String)
        async throws
    {
        let fixture = try await EngineFixture.common
        let witness = Witness()
        var offer = ClientLegOffer(identity: fixture.identity)
        offer.protocols = .chosen(["xmpp-client"])
        let (channel, port) = try await listen(fixture, witness, offer: offer)
        let tool = try client(
            port,
            [
                version, "-CAfile", fixture.authority.root, "-verify_return_error", "-verify_hostname", "example.org",
                "-alpn", "h2,xmpp-client", "-keymatexport", "EXPORTER-Channel-Binding", "-keymatexportlen", "32",
                "-ign_eof",
            ],
            input: "hello\n"
        )
        #expect(try await tool.ending() == .exited(0))
        let output = tool.text(of: .standardOutput)
        #expect(output.contains("Verify return code: 0 (ok)"))
        #expect(output.contains("ALPN protocol: xmpp-client"))
        #expect(output.contains("got hello"))
        let sight = try await witness.wait(for: "end") { $0.isOver }
        #expect(sight.text == "hello\n")
        #expect(sight.parameters?.serverName == "example.org")
        #expect(sight.parameters?.applicationProtocol == "xmpp-client")
        #expect(!sight.isTruncated)
        // Before TLS 1.3 the tool omits the context, but RFC 9266 requires an empty one.
        if version == "-tls1_3" {
            let line = try #require(output.split(separator: "\n").first { $0.contains("Keying material: ") })
            let digits = line.split(separator: " ").last.map(String.init) ?? ""
            let ours = try #require(sight.exporter).map { byte in
                (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
            #expect(digits == ours.joined())
        }
        try await channel.close()
    }

    @Test func `a client that does not trust the authority is recognised by its alert`() async throws {
        let fixture = try await EngineFixture.common
        let other = try await TestAuthority(name: "Another")
        let witness = Witness()
        let (channel, port) = try await listen(fixture, witness)
        let tool = try client(port, ["-CAfile", other.root, "-verify_return_error"], input: "")
        let sight = try await witness.wait(for: "failure") { $0.fault != nil }
        #expect(sight.fault?.code == .alertReceived(.unknownCA))
        #expect(sight.fault?.isRefusedCertificate == true)
        #expect(
            sight.fault?.explanation(peer: "the client")
                == "the client does not trust the issuer of the certificate (alert unknown_ca)"
        )
        try await tool.ending()
        try await channel.close()
    }

    @Test func `a TLS session is resumed with a ticket, and renegotiation is refused`() async throws {
        let fixture = try await EngineFixture.common
        let folder = try TemporaryFolder()
        for version in ["-tls1_2", "-tls1_3"] {
            let file = folder.path(of: "session" + version)
            for isSecond in [false, true] {
                let witness = Witness()
                let (channel, port) = try await listen(fixture, witness)
                let tool = try client(
                    port,
                    [version, "-ign_eof", isSecond ? "-sess_in" : "-sess_out", file],
                    input: "hello\n"
                )
                #expect(try await tool.ending() == .exited(0))
                let sight = try await witness.wait(for: "end") { $0.isOver }
                #expect(sight.parameters?.isResumed == isSecond)
                #expect(tool.text(of: .standardOutput).contains(isSecond ? "Reused, " : "New, "))
                try await channel.close()
            }
        }
        let witness = Witness()
        let (channel, port) = try await listen(fixture, witness)
        let tool = try client(port, ["-tls1_2"], input: "R\n")
        try await tool.ending()
        #expect(tool.text(of: .standardError).contains("no renegotiation"))
        #expect(try await witness.wait(for: "end") { $0.isOver }.text == "")
        try await channel.close()
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `xmpptap connects to openssl s_server and presents its client certificate`(version: String) async throws {
        let fixture = try await EngineFixture.common
        let leaf = try await fixture.authority.leaf(names: ["DNS:example.org"], key: ["-algorithm", "RSA"])
        let ours = try await fixture.authority.leaf(names: ["DNS:proxy.example"], subject: "proxy")
        let port = try FreePort.next()
        let tool = try ToolProcess(
            TestProgram.openssl.rawValue,
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-cert", leaf.certificate, "-key", leaf.key, "-rev",
                version, "-alpn", "xmpp-client", "-Verify", "2", "-verify_return_error", "-CAfile",
                fixture.authority.root,
            ]
        )
        _ = try await tool.line(of: .standardOutput) { $0.hasPrefix("ACCEPT") }
        var options = ServerLegTLS()
        options.trust = .file(fixture.authority.root)
        options.identity = try TLSIdentity(certificateFile: ours.certificate, keyFile: ours.key)
        var target = try ServerLegTarget(reference: ServerReference(domain: "example.org"))
        target.protocols = ["xmpp-client"]
        let witness = Witness()
        let channel = try await connect(port, TLSContext(options), target, witness)
        let sight = try await witness.wait(for: "answer") { $0.text.contains("\n") }
        #expect(sight.text == "cba\n")
        #expect(sight.parameters?.applicationProtocol == "xmpp-client")
        #expect(sight.parameters?.certificate?.key == "RSA 2048")
        try await channel.close()
        try await tool.terminate()
        #expect(tool.text(of: .standardError).contains("CN = proxy"), "\(tool.text(of: .standardError))")
    }

    @Test func `a server that requires a client certificate is recognised by its alert`() async throws {
        let fixture = try await EngineFixture.common
        let leaf = try await fixture.authority.leaf(names: ["DNS:example.org"])
        let port = try FreePort.next()
        let tool = try ToolProcess(
            TestProgram.openssl.rawValue,
            [
                "s_server", "-accept", "127.0.0.1:\(port)", "-cert", leaf.certificate, "-key", leaf.key, "-rev",
                "-Verify", "2", "-verify_return_error",
            ]
        )
        _ = try await tool.line(of: .standardOutput) { $0.hasPrefix("ACCEPT") }
        let witness = Witness()
        let target = try ServerLegTarget(reference: ServerReference(domain: "example.org"))
        _ = try await connect(port, fixture.clientContext, target, witness)
        let sight = try await witness.wait(for: "failure") { $0.fault != nil }
        #expect(sight.fault?.code == .alertReceived(TLSAlert(code: 116)))
        try await tool.terminate()
    }
}
