import NIOCore
import Testing

@testable import TapNetwork

struct AddressRangeTests {
    @Test(
        "A range contains exactly the addresses with its prefix",
        arguments: [
            ("192.0.2.7", "192.0.2.7", true), ("192.0.2.7", "192.0.2.6", false), ("192.0.2.0/24", "192.0.2.255", true),
            ("192.0.2.0/24", "192.0.3.0", false), ("192.0.2.128/25", "192.0.2.127", false),
            ("192.0.2.128/25", "192.0.2.128", true), ("10.32.0.0/11", "10.63.255.255", true),
            ("10.32.0.0/11", "10.64.0.0", false), ("0.0.0.0/0", "203.0.113.9", true), ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::1", true), ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::", false), ("192.0.2.7", "::ffff:192.0.2.7", true),
            ("::ffff:192.0.2.7", "192.0.2.7", true), ("::1", "::1", true), ("::1", "127.0.0.1", false),
        ]
    )
    func contains(_ range: String, _ address: String, _ isIn: Bool) throws {
        let range = try #require(AddressRange(range))
        #expect(range.contains(try SocketAddress(ipAddress: address, port: 1)) == isIn)
    }

    @Test(
        "An invalid address range is refused",
        arguments: [
            "", "/", "localhost", "192.0.2", "192.0.2.0/33", "192.0.2.0/", "192.0.2.0/+8", "192.0.2.0/8/8", "::/129",
            "fe80::1%lo", "::ffff:192.0.2.0/120", "192.0.2.0/99999999999999999999",
        ]
    )
    func refused(_ text: String) { #expect(AddressRange(text) == nil) }
}
