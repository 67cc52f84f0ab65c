import Foundation
import TapRecord
import TapTestKit
import XMPPCore

/// Creates summaries in the same way as a session.
enum Told {
    static let header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"

    /// Returns the summary of each element in a part of a client's stream.
    static func words(_ stanzas: String, _ context: Summary.Context = .init()) -> [String?] {
        var words: [String?] = []
        each(stanzas) { words.append(Summary.text(of: $0, context)) }
        return words
    }

    /// Calls `body` with each element in a part of a client's stream.
    static func each(_ stanzas: String, _ body: (Element) -> Void) {
        var decoder = StreamDecoder(limits: .authenticated)
        decoder.append(Array((header + stanzas).utf8).span)
        var reader = ElementReader()
        while let event = decoder.next() {
            guard case .item(.element) = event.kind, let element = reader.read(decoder.bytes, in: decoder) else {
                continue
            }
            body(element)
        }
    }

    /// An example of the XEPs, from the corpus.
    struct Example: Decodable {
        var xep: String
        var n: Int
        var text: String
    }

    static func examples() throws -> [Example] {
        try Corpus.unzip("xep-examples.jsonl.gz").split(separator: 0x0A).map {
            try JSONDecoder().decode(Example.self, from: $0)
        }
    }
}
