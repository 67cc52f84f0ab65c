import TapCore
import TapTestKit
import Testing
import XMPPCore

struct OpeningReaderTests {
    private static let header =
        "<?xml version='1.0'?> <s:stream xmlns='jabber:client' xmlns:s='http://etherx.jabber.org/streams' "

    /// Returns the result after reading these bytes in two pieces.
    private func read(_ bytes: [UInt8], cut: Int = 0) -> OpeningReader.Result {
        var reader = OpeningReader()
        _ = reader.append(bytes.span.extracting(0..<cut))
        return reader.append(bytes.span.extracting(cut..<bytes.count))
    }

    @Test func `The domain of a stream header is read once the header is complete, however it is split`() {
        let bytes = Array((Self.header + "to='caf&#xe9;.example' version='1.0'>").utf8)
        for cut in 0..<bytes.count {
            var reader = OpeningReader()
            #expect(reader.append(bytes.span.extracting(0..<cut)) == .needMore)
            #expect(reader.append(bytes.span.extracting(cut..<bytes.count)) == .header(to: "café.example"))
        }
        #expect(read(Array((Self.header + "version='1.0'>").utf8)) == .header(to: nil))
        #expect(read(Array((Self.header + "to=''>").utf8)) == .header(to: ""))
    }

    @Test func `The server name of a ClientHello is read once it is complete, however it is split`() {
        let named = TestHello.bytes(serverName: "a.example")
        for cut in 0..<named.count { #expect(read(named, cut: cut) == .hello(serverName: "a.example")) }
        #expect(read(TestHello.bytes(serverName: nil)) == .hello(serverName: nil))
        #expect(read(Array(named.dropLast())) == .needMore)
    }

    @Test(
        "Bytes that are neither a stream nor TLS are recognised at once",
        arguments: [
            ("GET / HTTP/1.1\r\n", StreamErrorCondition.notWellFormed), ("<a xmlns='b'/>", .invalidNamespace),
            ("<!DOCTYPE a>", .restrictedXML), ("\u{16}\u{3}\u{1}\u{0}\u{0}", .badFormat), ("\u{16}ab", .badFormat),
        ]
    )
    func neither(_ text: String, _ condition: StreamErrorCondition) {
        guard case .neither(let found, let words) = read(Array(text.utf8)) else {
            Issue.record("\(text) was taken for one: \(read(Array(text.utf8)))")
            return
        }
        #expect(found == condition)
        #expect(!words.isEmpty)
    }

    @Test func `A client that names no domain within the byte limit is refused`() {
        var reader = OpeningReader()
        var result = OpeningReader.Result.needMore
        let spaces = [UInt8](repeating: 0x20, count: 1000)
        for _ in 0..<65 { result = reader.append(spaces.span) }
        #expect(result == .needMore)
        guard case .neither(.policyViolation, _) = reader.append(spaces.span) else {
            Issue.record("more than \(OpeningReader.limit) bytes were listened to")
            return
        }
    }
}

/// A small ClientHello of TLS 1.2.
enum TestHello {
    static func bytes(serverName: String?) -> [UInt8] {
        func vector(_ bytes: [UInt8]) -> [UInt8] { [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes }
        let name = serverName.map { [0, 0] + vector(vector([0] + vector(Array($0.utf8)))) } ?? []
        let body =
            [3, 3] + [UInt8](repeating: 7, count: 32) + [0] + vector([0xC0, 0x2F]) + [1, 0] + vector(name)
        return [0x16, 3, 1] + vector([1, 0] + vector(body))
    }
}
