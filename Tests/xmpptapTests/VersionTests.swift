import Testing

@testable import xmpptap

struct VersionTests {
    @Test func `The version text has the versions of the loaded libraries`() throws {
        let text = Version.text
        #expect(
            text.wholeMatch(of: /xmpptap \d+\.\d+\.\d+ \(libxml2 2\.\d+\.\d+, OpenSSL 3\.\d+\.\d+\S*\)/) != nil,
            "\(text)"
        )
    }
}
