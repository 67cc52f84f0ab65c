import Foundation
import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// The items of the XEPs' examples that redaction changes.
enum RedactedExamples {
    private struct Example: Decodable {
        var xep: String
        var n: Int
        var text: String
    }

    /// Redacts all examples, checks that each item keeps its elements and attributes, and calls `body` with the place
    /// of the example, the redacted item and its text.
    ///
    /// - Returns: The number of redacted items.
    static func forEach(
        of policy: RedactionPolicy,
        _ body: (_ place: String, _ element: Element, _ text: String) throws -> Void
    ) throws -> Int {
        let namespaces = " xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'"
        let redactor = Redactor(policy: policy, registry: SecretRegistry())
        let parser = StanzaParser()
        var count = 0
        for line in try Corpus.unzip("xep-examples.jsonl.gz").split(separator: 0x0A) {
            let example = try JSONDecoder().decode(Example.self, from: line)
            let place = "XEP-\(example.xep) #\(example.n)"
            var decoder = StreamDecoder(limits: .authenticated)
            decoder.append(Array("<stream:stream\(namespaces)>\(example.text)".utf8).span)
            while let event = decoder.next() {
                guard case .item(.element) = event.kind,
                    case .redacted(let redaction) = redactor.disclose(event, of: decoder)
                else { continue }
                count += 1
                let before = skeleton(try parser.parse(decoder))
                let after = try parser.parse(redaction.bytes.span, root: Array(namespaces.utf8))
                #expect(before == skeleton(after), "\(place)")
                let text = String(decoding: redaction.bytes, as: UTF8.self)
                #expect(!text.contains("[redacted:item#"), "\(place)")
                try body(place, after, text)
            }
        }
        return count
    }

    private static func skeleton(_ element: Element) -> String {
        "<\(element.name) \(element.attributes.map(\.name))>" + element.children.map(skeleton).joined() + "</>"
    }
}
