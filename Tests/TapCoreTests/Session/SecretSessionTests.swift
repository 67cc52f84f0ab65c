import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// Returns all bytes that a record of one direction may show: each item, each head, and each attribute.
private func tell(
    _ input: [UInt8],
    _ direction: Direction,
    _ redactor: Redactor,
    chunk: Int
) throws -> (output: [UInt8], items: Int) {
    let parser = StanzaParser()
    var decoder = StreamDecoder(limits: .authenticated)
    var authentication = SASLDecoder(policy: redactor.policy)
    var output: [UInt8] = []
    var items = 0
    var start = 0
    while start < input.count {
        let end = min(start + chunk, input.count)
        decoder.append(input.span.extracting(start..<end))
        start = end
        while let event = decoder.next() {
            if case .fault(let fault) = event.kind { throw fault }
            items += 1
            var head = event.head
            var shown: [UInt8] = []
            switch redactor.disclose(event, of: decoder) {
            case .verbatim: shown.append(decoder.bytes)
            case .redacted(let redaction):
                shown = redaction.bytes
                head = redaction.carry(event.head)
            case .withheld: Issue.record("a whole item is withheld")
            }
            output += shown
            for attribute in [head.id, head.type, head.from, head.to] {
                if let attribute { output.append(shown.span.slice(attribute.range)) }
            }
            guard case .item(.element) = event.kind else { continue }
            if let step = authentication.decode(try parser.parse(decoder), direction) { output += "\(step)".utf8 }
        }
    }
    return (output, items)
}

@Suite struct SecretSessionTests {
    @Test(arguments: [1 << 20, 997, 7]) func `no output for a session contains a secret`(chunk: Int) throws {
        let session = SecretCatalogue.session()
        let search = SecretSearch(SecretCatalogue.items)
        let redactor = Redactor(policy: .secrets, registry: SecretRegistry())
        for (direction, input) in [(Direction.send, session.send), (.recv, session.recv)] {
            #expect(!search.leaks(in: input).isEmpty, "the search finds what is there")
            let told = try tell(input, direction, redactor, chunk: chunk)
            #expect(search.leaks(in: told.output).prefix(5) == [])
            #expect(told.items > 100)
        }
    }

    @Test func `the search finds a secret in any encoding`() {
        let secret = Array("kQ7zvR2mXw9b".utf8)
        let search = SecretSearch(secrets: [secret])
        for before in 0..<4 {
            let text = [UInt8](repeating: 0x41, count: before) + secret + [0x42, 0x43]
            #expect(!search.leaks(in: Base64.encode(text)).isEmpty, "base64 after \(before) bytes")
            #expect(!search.leaks(in: text).isEmpty)
            for part in 0...6 {
                #expect(!search.leaks(in: Base64.encode(Array(text[(before + part)..<(before + part + 6)]))).isEmpty)
            }
        }
        #expect(!search.leaks(in: "6b51377a7652326d5877").isEmpty, "hexadecimal")
        #expect(!search.leaks(in: "51377A7652326D58773962").isEmpty, "hexadecimal in capitals")
        #expect(search.leaks(in: "6b51377a7652326d").isEmpty, "sixteen digits, as a digest may have them")
        #expect(search.leaks(in: "kQ7zv R2mXw 9b").isEmpty, "five bytes are no leak")
    }

    @Test func `the search finds no secret by chance in digests and times`() {
        let secrets = SecretCatalogue.items.flatMap(\.secrets)
        // This is much more than the longest test searches.
        #expect(SecretSearch(secrets: secrets, besideTimes: true).chance(in: 1 << 28) < 1e-9)
        // The secret consists of hexadecimal digits, and other digests contain six of these digits by chance.
        let digest = "1e701f120f66824b57303384e83b51feba858024"
        let search = SecretSearch(secrets: [Array(digest.utf8)], besideTimes: true)
        #expect(search.leaks(in: "\"digest\":\"9a1f120f00b57303384e83c0\"").isEmpty)
        #expect(!search.leaks(in: "x\(digest.dropFirst(7).prefix(18))x").isEmpty)
        #expect(!search.leaks(in: Base64.encode(Array(digest.utf8))).isEmpty)
        // A short secret is found only as a whole.
        let key = "6f825e81f4532b2c"
        let whole = SecretSearch(secrets: [Array(key.utf8)], besideTimes: true)
        #expect(!whole.leaks(in: "key='\(key)'").isEmpty && whole.leaks(in: "key='\(key.dropLast())'").isEmpty)
    }
}
