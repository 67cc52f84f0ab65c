import Testing
import XMPPCore

@Suite struct AddressTests {
    @Test func `an invalid address keeps its text and has a fault`() {
        let address = Address("user@@host")
        #expect(address.raw == "user@@host")
        #expect(address.jid == nil)
        #expect(address.fault?.code == .forbiddenCharacter)
        #expect(address == Address("user@@host"))
        #expect(address != Address("USER@@host"))
    }

    @Test func `a valid address is compared as a JID`() {
        #expect(Address("USER@host") == Address("user@HOST."))
        #expect(Address("user@host").fault == nil)
        #expect(Address("user@host") != Address("user@"))
        #expect(Set([Address("A@b"), Address("a@B")]).count == 1)
    }

    @Test func `bytes that are not UTF-8 are replaced and reported`() {
        let address = Address(utf8: [0x61, 0xff, 0x40, 0x62].span)
        #expect(address.raw == "a\u{fffd}@b")
        #expect(address.fault?.code == .notUTF8)
        #expect(Address(utf8: Array("a@b".utf8).span).jid == JID("a@b"))
    }

    @Test(
        arguments: [
            ("♚@Host/r/s@t", "♚", "Host", "r/s@t", "♚@Host"), ("user@@host", "user", "@host", nil, "user@@host"),
            ("@host/", "", "host", "", "@host"), ("/x", nil, "", "x", ""), ("", nil, "", nil, ""),
            ("a@b/c", "a", "b", "c", "a@b"),
        ] as [(String, String?, String, String?, String)]
    )
    func `an address is split into parts whether it is valid or not`(
        text: String,
        local: String?,
        domain: String,
        resource: String?,
        bare: String
    ) {
        let address = Address(text)
        #expect(address.local == local)
        #expect(address.domain == domain)
        #expect(address.resource == resource)
        #expect(address.bare.raw == bare)
    }

    @Test func `the valid parts of an invalid address are compared in prepared form`() {
        let faulty = Address("♚@Example.com/r")
        #expect(faulty.jid == nil)
        #expect(faulty.matches(Address("♚@example.COM./r")))
        #expect(faulty.matches(Address("example.com"), in: .domain))
        #expect(faulty.matches(Address("♚@EXAMPLE.com/s"), in: .bare))
        #expect(!faulty.matches(Address("♛@example.com/r"), in: .bare))
        #expect(!faulty.matches(Address("♚@example.com/R")))
        #expect(Address("Juliet@x/\u{378}").matches(Address("juliet@X"), in: .bare))
        #expect(Address("A@b/c").matches(Address("a@B/c")))
    }

    @Test func `hashes of the bare address and of the domain are equal exactly if those parts match`() {
        let texts = [
            "a@b/c", "A@B./c", "a@b/C", "b", "B", "b/c", "a@b", "♚@Example.com/r", "♚@example.COM./r", "♚@example.com",
            "juliet@X", "Juliet@x/\u{378}", "a@bücher", "a@xn--bcher-kva", "", "@", "user@@host",
        ]
        for one in texts.map(Address.init) {
            for other in texts.map(Address.init) {
                let (mine, theirs) = (one.bareHashes(), other.bareHashes())
                #expect(one.matches(other, in: .bare) == (mine.bare == theirs.bare), "\(one) \(other)")
                #expect(one.matches(other, in: .domain) == (mine.domain == theirs.domain), "\(one) \(other)")
            }
        }
    }
}
