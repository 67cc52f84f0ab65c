import TapNetwork
import Testing

struct EndpointTests {
    @Test(
        "An endpoint is parsed from its usual notation and printed as it was",
        arguments: [
            ("localhost:5222", "localhost", 5222), ("127.0.0.1:1", "127.0.0.1", 1), ("[::1]:65535", "::1", 65535),
            ("xmpp-1.example_net.org:5223", "xmpp-1.example_net.org", 5223),
            ("b\u{FC}cher.example:5222", "b\u{FC}cher.example", 5222),
        ]
    )
    func endpoint(_ text: String, _ host: String, _ port: Int) throws {
        let endpoint = try Endpoint(text)
        #expect(endpoint == Endpoint(host: host, port: port))
        #expect(endpoint.description == text)
    }

    @Test(
        "A server's default port is 5222",
        arguments: [
            ("example.org", "example.org", 5222), ("example.org:5223", "example.org", 5223), ("[::1]", "::1", 5222),
            ("127.0.0.1", "127.0.0.1", 5222),
        ]
    )
    func server(_ text: String, _ host: String, _ port: Int) throws {
        #expect(try Endpoint.server(text) == Endpoint(host: host, port: port))
    }

    @Test("An invalid server address is refused", arguments: ["5222", "", "[::1", "::1", "[::1]x", "a b", "x:"])
    func noServer(_ text: String) { #expect(throws: EndpointError.self) { try Endpoint.server(text) } }

    @Test(
        "A refused endpoint is reported in one line with the input, the fault and a remedy",
        arguments: [
            ("", "the address is empty; write HOST:PORT, as in localhost:5222"),
            ("localhost", #""localhost" has no port; write HOST:PORT, as in localhost:5222"#),
            ("localhost:", #""localhost:" has the port ""; a port is a number from 1 to 65535"#),
            ("localhost:0", #""localhost:0" has the port "0"; a port is a number from 1 to 65535"#),
            ("localhost:65536", #""localhost:65536" has the port "65536"; a port is a number from 1 to 65535"#),
            ("localhost:+1", #""localhost:+1" has the port "+1"; a port is a number from 1 to 65535"#),
            (":5222", #"":5222" has no host; write HOST:PORT, as in localhost:5222"#),
            ("::1", #""::1" is an IPv6 address; write it in brackets, as in [::1]:5222"#),
            ("::1:5222", #""::1:5222" is an IPv6 address; write it in brackets, as in [::1]:5222"#),
            ("[::1:5222", #""[::1:5222" has no closing bracket; write [v6]:PORT, as in [::1]:5222"#),
            ("[::1]", #""[::1]" has no port; write HOST:PORT, as in localhost:5222"#),
            (
                "[127.0.0.1]:1",
                #""[127.0.0.1]:1" has "127.0.0.1" in brackets, which is not an IPv6 address; write [v6]:PORT, as in [::1]:5222"#
            ),
            ("xmpp://localhost:5222", #""xmpp://localhost:5222" is a URL; write HOST:PORT, as in localhost:5222"#),
            (
                "domain:example.org",
                #""domain:example.org" names a domain; write HOST:PORT, as in localhost:5222"#
            ),
            (
                "a b:5222",
                #""a b:5222" has the host "a b", which is neither a host name nor an address; write HOST:PORT"#
            ),
            (
                "a\u{1B}:5222",
                #""a\u{1b}:5222" has the host "a\u{1b}", which is neither a host name nor an address; write HOST:PORT"#
            ),
        ]
    )
    func refusal(_ text: String, _ words: String) {
        let error = #expect(throws: EndpointError.self) { try Endpoint(text) }
        #expect(error?.description == words)
    }
}
