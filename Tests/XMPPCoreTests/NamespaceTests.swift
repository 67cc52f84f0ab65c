import Testing
import XMPPCore

@Suite struct NamespaceTests {
    private func find(_ uri: [UInt8]) -> Namespace { Namespace(uri: uri.span) }

    @Test func `each namespace is found by its own URI only`() {
        var uris: Set<String> = []
        for namespace in Namespace.allCases where namespace != .other && namespace != .none {
            let uri = namespace.uri.description
            #expect(!uri.isEmpty && uris.insert(uri).inserted, "\(namespace)")
            let bytes = Array(uri.utf8)
            #expect(find(bytes) == namespace)
            for index in bytes.indices {
                var other = bytes
                other[index] ^= 1
                #expect(find(other) != namespace, "\(uri) with another byte at \(index)")
            }
            #expect(find(Array(bytes.dropLast())) != namespace)
            #expect(find(bytes + [0x23]) != namespace)
        }
    }

    @Test func `an empty URI has no namespace, and an unknown URI has the namespace other`() {
        #expect(find([]) == .none)
        for uri in ["x", "urn:xmpp:ping ", "URN:XMPP:PING", String(repeating: "u", count: 100_000)] {
            #expect(find(Array(uri.utf8)) == .other)
        }
    }
}
