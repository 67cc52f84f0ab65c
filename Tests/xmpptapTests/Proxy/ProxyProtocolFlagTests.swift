import TapNetwork
import Testing

@testable import xmpptap

struct ProxyProtocolFlagTests {
    @Test(
        "--proxy-protocol accepts words together and in repeated flags",
        arguments: [
            ([], ProxyProtocol()), (["accept"], ProxyProtocol(accepts: true)), (["send"], ProxyProtocol(sends: .v2)),
            (["send-v1"], ProxyProtocol(sends: .v1)), (["accept,send"], ProxyProtocol(accepts: true, sends: .v2)),
            (["send-v1", "accept"], ProxyProtocol(accepts: true, sends: .v1)),
        ]
    )
    func words(_ texts: [String], _ meaning: ProxyProtocol) throws {
        let flags = try texts.map { text throws(Failure) in try ProxyProtocolFlag(text) }
        #expect(try ProxyProtocolFlag.join(flags) == meaning)
    }

    @Test(arguments: ["", "accept,", "v2", "Accept", "send v1"])
    func `--proxy-protocol refuses other words`(_ text: String) {
        #expect(
            refusal { try ProxyProtocolFlag(text) } == "write accept, send or send-v1, or several separated by commas"
        )
    }

    @Test func `send and send-v1 exclude each other`() throws {
        let flags = [try ProxyProtocolFlag("send"), try ProxyProtocolFlag("send-v1")]
        #expect(
            refusal { try ProxyProtocolFlag.join(flags) }
                == "--proxy-protocol send and send-v1 exclude each other; leave one out"
        )
    }

    @Test func `Allowed senders of headers need --proxy-protocol accept`() throws {
        let range = try #require(AddressRange("192.0.2.0/24"))
        let joined = try ProxyProtocolFlag.join([ProxyProtocolFlag("accept")], from: [range])
        #expect(joined == ProxyProtocol(accepts: true, senders: [range]))
        #expect(
            refusal { try ProxyProtocolFlag.join([ProxyProtocolFlag("send")], from: [range]) }
                == "--proxy-protocol-from needs --proxy-protocol accept; add it"
        )
        let anyone = ProxyProtocol(accepts: true)
        let server = Endpoint(host: "example.org", port: 5222)
        #expect(
            try ProxyPlan(listen: [], upstream: server, proxyProtocol: anyone, allowRemote: true).warnings.count == 1
        )
        #expect(try ProxyPlan(listen: [], upstream: server, proxyProtocol: joined, allowRemote: true).warnings.isEmpty)
        #expect(try ProxyPlan(listen: [], upstream: nil, proxyProtocol: anyone).warnings.isEmpty)
    }

    @Test func `send is refused for the built-in server`() throws {
        #expect(
            refusal { try ProxyPlan(listen: [], upstream: nil, proxyProtocol: ProxyProtocol(sends: .v2)) }
                == "--proxy-protocol send: the built-in server does not support it; name a server that does with --upstream"
        )
        #expect(try ProxyPlan(listen: [], upstream: nil, proxyProtocol: ProxyProtocol(accepts: true)).needsServer)
    }
}
