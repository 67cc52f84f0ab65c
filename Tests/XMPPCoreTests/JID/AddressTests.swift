import Testing
import XMPPCore

@Suite struct AddressTests {
    @Test func `what is no JID keeps its text and says why`() {
        let address = Address("user@@host")
        #expect(address.raw == "user@@host")
        #expect(address.jid == nil)
        #expect(address.fault?.code == .forbiddenCharacter)
        #expect(address == Address("user@@host"))
        #expect(address != Address("USER@@host"))
    }

    @Test func `what is a JID compares as one`() {
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
}
