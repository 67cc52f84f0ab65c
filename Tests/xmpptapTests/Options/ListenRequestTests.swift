import Testing

@testable import xmpptap

struct ListenRequestTests {
    @Test(
        "A port, a host before it, a server behind it",
        arguments: [
            ("15222", ListenRequest(port: 15222)),
            ("0", ListenRequest(port: 0)),
            ("127.0.0.1:0", ListenRequest(host: "127.0.0.1", port: 0)),
            ("[::1]:15222", ListenRequest(host: "::1", port: 15222)),
            (
                "15222=example.org:5222",
                ListenRequest(port: 15222, upstream: HostPort(host: "example.org", port: 5222))
            ),
            (
                "[::1]:1=[2001:db8::1]:5222",
                ListenRequest(host: "::1", port: 1, upstream: HostPort(host: "2001:db8::1", port: 5222))
            ),
        ] as [(String, ListenRequest)]
    )
    func reading(text: String, request: ListenRequest) throws {
        #expect(try ListenRequest(text) == request)
    }

    @Test(
        "Everything else is refused with the way out",
        arguments: [
            ("", "'' is no port; a port is a number up to 65535, or 0 for any free one"),
            ("70000", "'70000' is no port; a port is a number up to 65535, or 0 for any free one"),
            ("localhost", "'localhost' lacks its port; write HOST:PORT"),
            ("15222=", "'' lacks its port; write HOST:PORT"),
            ("15222=example.org", "'example.org' lacks its port; write HOST:PORT"),
            ("15222=h:0", "'0' is no port; a port is a number from 1 to 65535"),
            (
                "15222=domain:example.org",
                "domain:NAME is not in this version; name the server itself, as in example.org:5222"
            ),
        ]
    )
    func refusing(text: String, message: String) {
        #expect(refusal { try ListenRequest(text) } == message)
    }

    @Test(
        "Only loopback is local",
        arguments: [
            (nil, true), ("localhost", true), ("LOCALHOST", true), ("127.0.0.1", true), ("127.255.0.9", true),
            ("::1", true), ("0.0.0.0", false), ("::", false), ("192.168.1.1", false), ("127.0.0", false),
            ("127.0.0.1.example.org", false), ("example.org", false), ("127.0.0.256", false),
        ] as [(String?, Bool)]
    )
    func locality(host: String?, isLocal: Bool) {
        #expect(ListenRequest(host: host).isLocal == isLocal)
    }
}
