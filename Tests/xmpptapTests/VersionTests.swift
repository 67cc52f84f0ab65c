import Testing

@testable import xmpptap

struct VersionTests {
    @Test func `The versions are those of the libraries that are loaded`() throws {
        let text = Version.text
        #expect(
            text.wholeMatch(of: /xmpptap \d+\.\d+\.\d+ \(libxml2 2\.\d+\.\d+, OpenSSL 3\.\d+\.\d+\S*\)/) != nil,
            "\(text)"
        )
    }
}
