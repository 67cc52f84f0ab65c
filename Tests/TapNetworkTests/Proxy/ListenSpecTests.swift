import TapNetwork
import Testing

struct ListenSpecTests {
    @Test(arguments: ["abc", "localhost", "abc=localhost:5222"])
    func `The advice for an invalid port shows a valid one`(text: String) {
        let error = #expect(throws: EndpointError.self) { try ListenSpec(text) }
        let advice = "is not a port; write a port, as in 15222, or HOST:PORT, as in 127.0.0.1:15222"
        #expect(error?.description == "\"\(text)\" \(advice)")
    }

    @Test(
        "Two listeners on one address and port are detected in any notation",
        arguments: [
            ("5", "127.0.0.1:5", true), ("5", "[::1]:5", true), ("5", "localhost:5", true), ("5", "LocalHost.:5", true),
            ("5", "[0:0::1]:5", true), ("5", "0.0.0.0:5", true), ("[::]:5", "[2001:db8::1]:5", true),
            ("a.example:5", "A.example:5=b.example:6", true), ("5", "6", false), ("0", "0", false),
            ("127.0.0.1:5", "[::1]:5", false), ("127.0.0.1:5", "127.0.0.2:5", false), ("0.0.0.0:5", "[::1]:5", false),
            ("a.example:5", "b.example:5", false), ("5", "a.example:5", false),
        ]
    )
    func overlap(_ one: String, _ other: String, _ isOne: Bool) throws {
        #expect(try ListenSpec(one).overlaps(ListenSpec(other)) == isOne)
        #expect(try ListenSpec(other).overlaps(ListenSpec(one)) == isOne)
    }

    @Test(
        "A listener is parsed from its usual notation and printed as it was",
        arguments: [
            ("15222", ListenSpec(port: 15222)), ("0", ListenSpec(port: 0)),
            ("127.0.0.1:15222", ListenSpec(host: "127.0.0.1", port: 15222)),
            ("[::1]:0", ListenSpec(host: "::1", port: 0)),
            (
                "15222=localhost:5222",
                ListenSpec(port: 15222, upstream: .endpoint(Endpoint(host: "localhost", port: 5222)))
            ),
            ("[::]:1=[::1]:2", ListenSpec(host: "::", port: 1, upstream: .endpoint(Endpoint(host: "::1", port: 2)))),
            (
                "15222=domain:example.org",
                ListenSpec(port: 15222, upstream: .domains([try Upstream.Domain("example.org")]))
            ),
            (
                "15222=domain:a.example,b.example",
                ListenSpec(
                    port: 15222,
                    upstream: .domains([try Upstream.Domain("a.example"), try Upstream.Domain("b.example")])
                )
            ),
        ]
    )
    func listener(_ text: String, _ spec: ListenSpec) throws {
        #expect(try ListenSpec(text) == spec)
        #expect(spec.description == text)
    }

    @Test("The default listener is port 15222 on both loopback addresses")
    func standard() { #expect(ListenSpec() == ListenSpec(host: nil, port: 15222, upstream: nil)) }

    @Test(
        "A refused listener is reported in one line with the input, the fault and a remedy",
        arguments: [
            ("65536", #""65536" has the port "65536"; a port is a number from 0 to 65535"#),
            ("", "the address is empty; write HOST:PORT, as in localhost:5222"),
            ("15222=", #""15222=" has no address after "="; write PORT=HOST:PORT, as in 15222=localhost:5222"#),
            ("15222=5222", #""5222" has no host; write HOST:PORT, as in localhost:5222"#),
            ("15222=localhost:0", #""localhost:0" has the port "0"; a port is a number from 1 to 65535"#),
            (":15222", #"":15222" has no host; write HOST:PORT, as in localhost:5222"#),
            (
                "15222=domain:juliet@example.org",
                #""juliet@example.org" is not a domain: it has more parts; write the part of a JID after "@", as in example.org"#
            ),
        ]
    )
    func refusal(_ text: String, _ words: String) {
        let error = #expect(throws: EndpointError.self) { try ListenSpec(text) }
        #expect(error?.description == words)
    }
}
