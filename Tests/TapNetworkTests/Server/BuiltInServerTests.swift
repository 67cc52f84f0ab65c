import NIOCore
import NIOPosix
import TapSecurity
import TapTestKit
import Testing

@testable import TapNetwork

/// Tests the built-in server on real sockets.
@Suite struct BuiltInServerTests {
    private static let settings = ServerSettings(
        accounts: [.init(name: "romeo", password: "wherefore"), .init(name: "juliet", password: "balcony")],
        softwareVersion: "1"
    )

    /// Runs `body` with a server on a free port, and stops it afterwards.
    private func withServer(_ body: (_ port: Int, _ server: BuiltInServer) async throws -> Void) async throws {
        let server = try await BuiltInServer.start(
            port: 0,
            settings: Self.settings,
            cryptography: OpenSSLCryptography(),
            group: MultiThreadedEventLoopGroup.singleton
        )
        let port = try #require(server.address?.port)
        do {
            try await body(port, server)
        } catch {
            try await server.stop()
            throw error
        }
        try await server.stop()
    }

    private func client(_ name: String = "romeo", password: String = "wherefore") throws -> DemoClient {
        try DemoClient(account: "\(name)@localhost", password: password, cryptography: OpenSSLCryptography())
    }

    @Test func `the demo's client completes all its steps`() async throws {
        try await withServer { port, _ in
            let steps = try await client().run(
                host: "127.0.0.1",
                port: port,
                group: MultiThreadedEventLoopGroup.singleton
            )
            #expect(
                steps.map(\.title) == ["stream", "login", "bind", "roster", "presence", "ping", "message", "close"]
            )
            #expect(steps[2].detail == "romeo@localhost/demo")
            #expect(steps[3].detail == "2 contacts: juliet@localhost, nurse@localhost")
            #expect(steps.map(\.time) == steps.map(\.time).sorted())
        }
    }

    @Test func `a connection beyond the limit is refused, and others continue`() async throws {
        var settings = Self.settings
        settings.connectionLimit = 1
        let server = try await BuiltInServer.start(
            port: 0,
            settings: settings,
            cryptography: OpenSSLCryptography(),
            group: MultiThreadedEventLoopGroup.singleton
        )
        let port = UInt16(try #require(server.address?.port))
        let first = try RawConnection(port: port)
        _ = try await first.write(ServerHarness.header)
        _ = try await first.read(through: "</stream:features>")
        let second = try RawConnection(port: port)
        #expect(try await second.read(through: "</stream:stream>").contains("<stream:error><resource-constraint "))
        _ = try await first.write("</stream:stream>")
        _ = try await first.read(through: "</stream:stream>")
        try await server.stop()
    }

    @Test func `connections that have not requested their WebSocket count for the limit`() async throws {
        var settings = Self.settings
        settings.connectionLimit = 2
        let server = try await BuiltInServer.start(
            at: [
                .init(endpoint: Endpoint(host: "127.0.0.1", port: 0), access: WebAccess(options: .init(), ownHost: ""))
            ],
            settings: settings,
            identity: nil,
            cryptography: OpenSSLCryptography(),
            group: MultiThreadedEventLoopGroup.singleton
        ) { _ in nil }
        let port = UInt16(try #require(server.addresses.first??.port))
        let request =
            "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            + "Sec-WebSocket-Protocol: xmpp\r\n\r\n"
        let first = try RawConnection(port: port)
        try await first.write(request)
        try await first.read(through: "\r\n\r\n")
        let second = try RawConnection(port: port)
        try await second.write("GET / HTTP/1.1\r\nHost: ")
        let third = try RawConnection(port: port)
        try await third.write(request)
        #expect(try await third.drain().count == 0)
        try await second.write("localhost\r\n\r\n")
        #expect(try await second.read(through: "\r\n\r\n").hasPrefix("HTTP/1.1 426 "))
        second.close()
        // The place is free as soon as the server has noticed the end.
        var answer = ""
        for _ in 0..<1000 where answer.isEmpty {
            let fourth = try RawConnection(port: port)
            try await fourth.write(request)
            answer = (try? await fourth.read(through: "\r\n\r\n")) ?? ""
        }
        #expect(answer.hasPrefix("HTTP/1.1 101 "))
        first.close()
        try await server.stop()
    }

    @Test func `fifty concurrent clients are served`() async throws {
        try await withServer { port, _ in
            try await withThrowingTaskGroup(of: Int.self) { group in
                // Each of the two accounts always uses the same resource, so that a later login of the account may end
                // an earlier one.
                for index in 0..<50 {
                    group.addTask {
                        let client = try self.client(
                            index.isMultiple(of: 2) ? "romeo" : "juliet",
                            password: index.isMultiple(of: 2) ? "wherefore" : "balcony"
                        )
                        let steps = try? await client.run(
                            host: "127.0.0.1",
                            port: port,
                            group: MultiThreadedEventLoopGroup.singleton
                        )
                        return steps?.count ?? 0
                    }
                }
                let finished = try await group.reduce(0) { $0 + ($1 == 8 ? 1 : 0) }
                #expect(finished >= 2)
            }
            let steps = try await client().run(
                host: "127.0.0.1",
                port: port,
                group: MultiThreadedEventLoopGroup.singleton
            )
            #expect(steps.count == 8)
        }
    }

    @Test func `a wrong password is reported with the step that failed`() async throws {
        try await withServer { port, _ in
            let error = await #expect(throws: DemoError.self) {
                try await self.client(password: "wrong").run(
                    host: "127.0.0.1",
                    port: port,
                    group: MultiThreadedEventLoopGroup.singleton
                )
            }
            #expect(error?.description == "login: the server answered not-authorized: wrong user name or password")
        }
    }

    @Test func `stopping the server closes its connections, and a client without a server fails`() async throws {
        try await withServer { port, server in
            let silent = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: "127.0.0.1", port: port).get()
            try await server.stop()
            try await silent.closeFuture.get()
        }
        await #expect(throws: (any Error).self) {
            try await self.client().run(host: "127.0.0.1", port: 1, group: MultiThreadedEventLoopGroup.singleton)
        }
    }

    @Test func `a client times out if its server never answers`() async throws {
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(listener.localAddress?.port)
        let error = await #expect(throws: DemoError.self) {
            try await self.client().run(
                host: "127.0.0.1",
                port: port,
                group: MultiThreadedEventLoopGroup.singleton,
                timeout: .milliseconds(100)
            )
        }
        #expect(error?.description == "stream: no answer")
        try await listener.close()
    }

    @Test(arguments: ["0.0.0.0", "::", "192.0.2.1"])
    func `the built-in server refuses addresses that other machines reach`(host: String) async {
        let error = await #expect(throws: BuiltInServerError.self) {
            try await BuiltInServer.start(
                host: host,
                port: 0,
                settings: Self.settings,
                cryptography: OpenSSLCryptography(),
                group: MultiThreadedEventLoopGroup.singleton
            )
        }
        #expect(error?.description.contains(host) == true)
    }

    @Test func `after any malformed beginning, the next client is served`() async throws {
        try await withServer { port, _ in
            let beginnings: [[UInt8]] = [
                [], Array("GET / HTTP/1.1\r\n\r\n".utf8), [0x16, 3, 1, 0, 1, 0], Array("<stream:str".utf8),
                Array("<stream:stream xmlns:stream='http://etherx.jabber.org/streams' ".utf8)
                    + Array(repeating: 0x20, count: 200_000),
                [0xff, 0xfe, 0x3c, 0], Array(repeating: 0x3c, count: 100_000),
                Array("<!DOCTYPE a [<!ENTITY b 'c'>]>".utf8),
                Array(String(repeating: "<a>", count: 100_000).utf8),
            ]
            for bytes in beginnings {
                let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                    .connect(host: "127.0.0.1", port: port).get()
                // The server may close the connection before everything is written.
                try? await channel.writeAndFlush(ByteBuffer(bytes: bytes)).get()
                try? await channel.close()
            }
            let steps = try await client().run(
                host: "127.0.0.1",
                port: port,
                group: MultiThreadedEventLoopGroup.singleton
            )
            #expect(steps.count == 8)
        }
    }
}
