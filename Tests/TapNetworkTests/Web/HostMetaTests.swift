import NIOCore
import NIOPosix
import TapSecurity
import TapTestKit
import Testing

@testable import TapNetwork

/// The files by which clients find WebSockets (XEP-0156).
struct HostMetaTests {
    private static let xrd = """
        <?xml version='1.0' encoding='utf-8'?>
        <!-- <Link/> -->
        <XRD xmlns='http://docs.oasis-open.org/ns/xri/xrd-1.0'><Subject>x</Subject>
        <Link rel="urn:xmpp:alt-connections:xbosh" href="https://a.example/bosh"/>
        <Link rel="urn:xmpp:alt-connections:websocket" href="wss://a.example/ws?a&amp;b"/>
        <Link rel="urn:xmpp:alt-connections:websocket" href="ws://a.example/ws"/>
        <Link rel="other" href="wss://b.example"/><Link rel="urn:xmpp:alt-connections:websocket"/></XRD>
        """
    private static let json = """
        {"xmpp":{"ttl":1},"links":[{"rel":"urn:xmpp:alt-connections:websocket","href":"wss:\\/\\/a.example/ws?a&b"},
        {"rel":"urn:xmpp:alt-connections:xbosh","href":"https://a.example/bosh"},{"rel":1},[],null]}
        """

    private static func report(_ xrd: String, _ json: String) -> HostMetaReport {
        HostMetaReport(
            xrd: Result { () throws(HostMetaFile.Fault) in try HostMetaFile(xrd: Array(xrd.utf8)) },
            json: Result { () throws(HostMetaFile.Fault) in try HostMetaFile(json: Array(json.utf8)) },
            domain: "a.example"
        )
    }

    @Test("Both files give the same links, those without TLS are not used, and no query is shown")
    func readsLinks() throws {
        let report = Self.report(Self.xrd, Self.json)
        #expect(report.servers.map(\.target) == ["/ws?a&b"])
        #expect(report.servers.map(\.domain) == ["a.example"])
        #expect(
            report.warnings == [
                "the files differ: only host-meta has ws://a.example/ws",
                "ws://a.example/ws: clients must not use it, since it is not wss://",
            ]
        )
        #expect(report.lines.first == "host-meta: BOSH https://a.example/bosh, wss://a.example/ws, ws://a.example/ws")
        let mark = "\u{FEFF}"
        #expect(Self.report(mark + Self.xrd, Self.json).isComplete)
    }

    @Test("A damaged file is an error or has other links, and ends nothing")
    func readsDamagedFiles() throws {
        var random = SeededGenerator(seed: 7)
        for _ in 0..<4000 {
            var (xrd, json) = (Array(Self.xrd.utf8), Array(Self.json.utf8))
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                xrd[Int.random(in: 0..<xrd.count, using: &random)] = .random(in: .min ... .max, using: &random)
                json[Int.random(in: 0..<json.count, using: &random)] = .random(in: .min ... .max, using: &random)
            }
            xrd.removeLast(Int.random(in: 0...20, using: &random))
            json.removeLast(Int.random(in: 0...5, using: &random))
            let report = HostMetaReport(
                xrd: Result { () throws(HostMetaFile.Fault) in try HostMetaFile(xrd: xrd) },
                json: Result { () throws(HostMetaFile.Fault) in try HostMetaFile(json: json) },
                domain: "a.example"
            )
            #expect(report.lines.count == 2)
            for server in report.servers { #expect(server.isSecure) }
            _ = report.warnings
        }
    }

    @Test("A WebSocket that host-meta of another domain places on this machine is not used")
    func refusesLoopback() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let listener = try await ServerBootstrap(group: loop).bind(host: "127.0.0.1", port: 0).get()
        let port = listener.localAddress?.port ?? 0
        var server = try WebServer("wss://127.0.0.1:\(port)/ws")
        server.domain = "example.org"
        let tls = try TLSContext(ServerLegTLS())
        let reason = try await loop.flatSubmit { [server] in
            let promise = loop.makePromise(of: String?.self)
            WebConnection.connect(to: server, tls, timeout: .seconds(60), on: loop) { result in
                if case .failure(let failure) = result {
                    promise.succeed("\(failure.explanation)")
                } else {
                    promise.succeed(nil)
                }
            }
            return promise.futureResult
        }.get()
        #expect(
            reason
                == "host-meta of example.org names wss://127.0.0.1:\(port)/ws, whose address 127.0.0.1 is a loopback address, "
                + "which example.org must not name; to use it, give its URL on the command line"
        )
        try await listener.close()
    }

    @Test("Redirections are resolved against the last address")
    func resolvesRedirections() throws {
        let address = try HTTPSAddress("https://a.example:8443/x?y")
        #expect(try address.redirected(to: "/z").description == "https://a.example:8443/z")
        #expect(try address.redirected(to: "//b.example/z").description == "https://b.example/z")
        #expect(try address.redirected(to: "HTTPS://[::1]/z?q").description == "https://[::1]/z")
        for wrong in ["http://a.example", "z", "", "wss://a.example", "https://", "https://u@a.example"] {
            #expect(throws: EndpointError.self) { try address.redirected(to: wrong) }
        }
    }
}
