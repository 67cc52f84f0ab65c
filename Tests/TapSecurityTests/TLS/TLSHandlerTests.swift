import NIOCore
import NIOEmbedded
import TapSecurity
import TapTestKit
import Testing

@Suite(.enabled(if: TestProgram.openssl.isInstalled)) struct TLSHandlerTests {
    /// Two in-memory channels with TLS, and the events that their handlers fire.
    private final class Pair {
        let client: EmbeddedChannel
        let server: EmbeddedChannel
        let clientTLS: TLSHandler
        let serverTLS: TLSHandler
        let atClient = Witness()
        let atServer = Witness()

        init(_ engines: EnginePair) throws {
            client = EmbeddedChannel()
            server = EmbeddedChannel()
            clientTLS = TLSHandler(engines.client)
            serverTLS = TLSHandler(engines.server)
            try client.pipeline.syncOperations.addHandlers([clientTLS, atClient])
            try server.pipeline.syncOperations.addHandlers([serverTLS, atServer])
            for channel in [client, server] {
                try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
            }
        }

        deinit {
            _ = try? client.finish(acceptAlreadyClosed: true)
            _ = try? server.finish(acceptAlreadyClosed: true)
        }

        /// Transfers bytes until there are none left; returns the number of pieces.
        @discardableResult
        func pump() throws -> Int {
            var pieces = 0
            var before = -1
            while pieces != before {
                before = pieces
                while let bytes = try client.readOutbound(as: ByteBuffer.self) {
                    pieces += 1
                    try server.writeInbound(bytes)
                }
                while let bytes = try server.readOutbound(as: ByteBuffer.self) {
                    pieces += 1
                    try client.writeInbound(bytes)
                }
            }
            return pieces
        }
    }

    /// Records events in order.
    private final class Witness: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private(set) var events: [String] = []

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            events.append("read " + String(buffer: unwrapInboundIn(data)))
        }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            switch event {
            case let event as TLSHandler.Event: events.append("\(event)".replacing("TLSHandler.Event.", with: ""))
            case ChannelEvent.inputClosed: events.append("input closed")
            default: events.append("\(event)")
            }
        }
    }

    /// Waits for a future, which never blocks, because the in-memory channels complete promises at once.
    private func outcome(of future: EventLoopFuture<Void>) throws { try future.wait() }

    @Test func `the handshake is reported before data, and earlier writes wait for it`() async throws {
        let pair = try Pair(await EngineFixture.common.pair())
        let promise = pair.client.eventLoop.makePromise(of: Void.self)
        pair.client.writeAndFlush(ByteBuffer(string: "early"), promise: promise)
        pair.clientTLS.start()
        pair.serverTLS.start()
        try pair.pump()
        try outcome(of: promise.futureResult)
        #expect(pair.atClient.events == ["opened"])
        #expect(pair.atServer.events == ["opened", "read early"])
        #expect(pair.clientTLS.engine.parameters()?.version == "TLS 1.3")
    }

    @Test func `bytes received before the handler was added are processed, in any pieces`() async throws {
        let engines = try await EngineFixture.common.pair()
        var nothing = ByteBuffer()
        engines.client.advance(into: &nothing)
        let hello = try #require(engines.client.takeOutput())
        let pair = try Pair(engines)
        try pair.server.writeInbound(try #require(hello.getSlice(at: 100, length: hello.readableBytes - 100)))
        #expect(pair.atServer.events.isEmpty)
        pair.serverTLS.start(early: nil)
        #expect(pair.atServer.events.first?.hasPrefix("failed") == true)

        let second = try await EngineFixture.common.pair()
        second.client.advance(into: &nothing)
        let bytes = try #require(second.client.takeOutput())
        let whole = try Pair(second)
        whole.serverTLS.start(early: bytes.getSlice(at: 0, length: 100))
        try whole.server.writeInbound(try #require(bytes.getSlice(at: 100, length: bytes.readableBytes - 100)))
        whole.clientTLS.start()
        try whole.pump()
        #expect(whole.atServer.events == ["opened"])
        #expect(whole.atClient.events == ["opened"])
    }

    @Test func `writes between flushes are sent in one piece`() async throws {
        let pair = try Pair(await EngineFixture.common.pair())
        pair.clientTLS.start()
        pair.serverTLS.start()
        try pair.pump()
        let promises = (0..<3).map { _ in pair.client.eventLoop.makePromise(of: Void.self) }
        for (number, promise) in promises.enumerated() {
            pair.client.write(ByteBuffer(string: "\(number)"), promise: promise)
        }
        #expect(try pair.client.readOutbound(as: ByteBuffer.self) == nil)
        pair.client.flush()
        #expect(try pair.pump() == 1)
        for promise in promises { try outcome(of: promise.futureResult) }
        #expect(pair.atServer.events.last == "read 012")
    }

    @Test func `closing the output sends close_notify, which the peer reports once as the end of input`() async throws {
        let pair = try Pair(await EngineFixture.common.pair())
        pair.clientTLS.start()
        pair.serverTLS.start()
        try pair.pump()
        // In-memory channels do not support half-closure; only the bytes sent before it matter.
        pair.client.close(mode: .output, promise: nil)
        try pair.pump()
        #expect(pair.atServer.events == ["opened", "input closed"])
        pair.server.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(pair.atServer.events == ["opened", "input closed"])
        pair.server.writeAndFlush(ByteBuffer(string: "answer"), promise: nil)
        try pair.pump()
        #expect(pair.atClient.events == ["opened", "read answer"])
    }

    @Test func `an end without close_notify is reported as truncated`() async throws {
        let pair = try Pair(await EngineFixture.common.pair())
        pair.clientTLS.start()
        pair.serverTLS.start()
        try pair.pump()
        pair.clientTLS.sendsCloseNotify = false
        pair.client.close(mode: .output, promise: nil)
        #expect(try pair.pump() == 0)
        pair.server.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(pair.atServer.events == ["opened", "truncated", "input closed"])
    }

    @Test func `a connection that ends during the handshake fails it`() async throws {
        let pair = try Pair(await EngineFixture.common.pair())
        pair.serverTLS.start()
        pair.server.pipeline.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
        #expect(pair.atServer.events.count == 2)
        #expect(pair.serverTLS.engine.state.fault?.code == .endedInHandshake)
        let client = try Pair(await EngineFixture.common.pair())
        client.clientTLS.start()
        let promise = client.client.eventLoop.makePromise(of: Void.self)
        client.client.write(ByteBuffer(string: "never"), promise: promise)
        try outcome(of: client.client.close())
        #expect(throws: ChannelError.self) { try outcome(of: promise.futureResult) }
        #expect(client.clientTLS.engine.state.fault?.code == .endedInHandshake)
    }

    @Test func `the alert is sent before the failure is reported, and later writes fail`() async throws {
        let pair = try Pair(await EngineFixture.common.pair(domain: "other.example"))
        pair.clientTLS.start()
        pair.serverTLS.start()
        try pair.pump()
        #expect(pair.atClient.events.count == 1)
        #expect(pair.clientTLS.engine.state.fault?.alertSent == .badCertificate)
        #expect(pair.serverTLS.engine.state.fault?.isRefusedCertificate == true)
        let promise = pair.client.eventLoop.makePromise(of: Void.self)
        pair.client.writeAndFlush(ByteBuffer(string: "x"), promise: promise)
        #expect(throws: ChannelError.self) { try outcome(of: promise.futureResult) }
    }
}
