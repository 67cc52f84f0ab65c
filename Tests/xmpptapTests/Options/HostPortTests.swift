import Testing

@testable import xmpptap

struct HostPortTests {
    @Test(
        "A host and a port are read, an IPv6 address in brackets",
        arguments: [
            ("example.org:5222", "example.org", 5222), ("192.0.2.1:1", "192.0.2.1", 1),
            ("[2001:db8::1]:65535", "2001:db8::1", 65535), ("[fe80::1%eth0]:5222", "fe80::1%eth0", 5222),
        ] as [(String, String, UInt16)]
    )
    func reading(text: String, host: String, port: UInt16) throws {
        let read = try HostPort(text)
        #expect(read == HostPort(host: host, port: port))
        #expect(read.description == text)
    }

    @Test(
        "Everything else is refused with the way out",
        arguments: [
            ("example.org", "'example.org' lacks its port; write HOST:PORT"),
            ("5222", "'5222' lacks its host; write HOST:PORT"),
            ("[::1]", "'[::1]' lacks its port; write HOST:PORT"),
            ("[::1:5222", "'[::1:5222' lacks the closing bracket"),
            ("[example.org]:5222", "in brackets stands an IPv6 address, as in [::1]:5222"),
            ("::1:5222", "write an IPv6 address in brackets, as in [::1]:5222"),
            (":5222", "'' is no host; write HOST:PORT, as in example.org:5222"),
            ("a b:5222", "'a b' is no host; write HOST:PORT, as in example.org:5222"),
            ("http://h:80", "write an IPv6 address in brackets, as in [::1]:5222"),
            ("h:0", "'0' is no port; a port is a number from 1 to 65535"),
            ("h:65536", "'65536' is no port; a port is a number from 1 to 65535"),
            ("h:+5", "'+5' is no port; a port is a number from 1 to 65535"),
            ("h:", "'' is no port; a port is a number from 1 to 65535"),
        ]
    )
    func refusing(text: String, message: String) {
        #expect(refusal { try HostPort(text) } == message)
    }
}
