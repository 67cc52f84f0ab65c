import Foundation
import TapTestKit
import Testing
import XMPPCore

@Suite(.enabled(if: Corpus.isAvailable, "XMPPTAP_CORPUS is not set"))
struct JIDCorpusTests {
    /// Addresses whose result differs from jxmpp's, with the reason.
    private let exceptions = [
        "ς@example.com":
            "RFC 7622 §3.5 (after table 1): the mapping to lower case leaves the final sigma; jxmpp asks itself, too"
    ]

    @Test func `every valid address of jxmpp is parsed into its parts, with the listed exceptions`() throws {
        let entries = try self.entries(of: "jxmpp-valid-main.txt", after: "jid:\n", separators: 2)
        #expect(entries.count == 22)
        var others: Set<String> = []
        for entry in entries {
            let jid = try JID(parsing: entry[0])
            let parts = entry[1].components(separatedBy: "\u{1f}")
            if parts != [jid.normalized.local ?? "", jid.normalized.domain, jid.normalized.resource ?? ""] {
                others.insert(entry[0])
            }
        }
        #expect(others == Set(exceptions.keys))
    }

    @Test func `every invalid address of jxmpp is refused`() throws {
        let entries = try self.entries(of: "jxmpp-invalid-main.txt", after: "invalid jid:\n", separators: 1)
        #expect(entries.count == 24)
        for entry in entries { #expect(Address(entry[0]).fault != nil, "\(entry[0])") }
    }

    /// Invalid addresses in the examples of the XEPs, with the reason.
    private let faultyExamples: [String: (code: JIDError.Code, why: String)] = [
        "": (.empty, "an attribute left empty"),
        "tel:+13055195825": (.forbiddenCharacter, "a URI: XEP-0327 dials these"),
        "tel:+13058881212": (.forbiddenCharacter, "a URI"),
        "tel:+14152226789": (.forbiddenCharacter, "a URI"),
        "tel:+18003211212": (.forbiddenCharacter, "a URI"),
        "sip:other@there.com": (.forbiddenCharacter, "a URI"),
        "foo:bar": (.forbiddenCharacter, "a URI that cannot be dialled"),
        " translation.shakespeare.lit": (.forbiddenCharacter, "a space slipped in (XEP-0171)"),
        "responder@ domain": (.forbiddenCharacter, "a space slipped in (XEP-0102)"),
        "\n  primary@example.org/amr": (.forbiddenCharacter, "a line was broken (XEP-0324)"),
        "juliet@.capulet.lit": (.empty, "a label was forgotten (XEP-0471)"),
        "room@chat.commons.example\n  id=": (.forbiddenCharacter, "a quotation mark was forgotten (XEP-0513)"),
    ]

    @Test func `addresses in the examples of the XEPs are valid, with the listed exceptions`() throws {
        let examples = try Corpus.unzip("xep-examples.jsonl.gz").split(separator: 0x0a)
        var count = 0
        var faulty: [String: JIDError.Code] = [:]
        for line in examples {
            let example = try JSONDecoder().decode(Example.self, from: line)
            for match in example.text.matches(of: #/\b(?:from|to|jid|by)=(?:'([^']*)'|"([^"]*)")/#) {
                guard let raw = match.1 ?? match.2 else { continue }
                let address = Address(unescaped(String(raw)))
                if let fault = address.fault { faulty[address.raw] = fault.code }
                count += 1
                #expect(address.jid.map { Address($0.normalized.description).jid == $0 } ?? true)
            }
        }
        #expect(count > 5_000)
        #expect(faulty == faultyExamples.mapValues(\.code))
    }

    private struct Example: Decodable { let text: String }

    private func unescaped(_ text: String) -> String {
        text.replacing("&lt;", with: "<").replacing("&gt;", with: ">").replacing("&apos;", with: "'")
            .replacing("&quot;", with: "\"").replacing("&amp;", with: "&")
    }

    @Test(arguments: ["prosody-jid-inputs.txt", "xmpp-rs-jid-inputs.txt"])
    func `any text is accepted as an address, and a valid one is equal after print and parse`(file: String) throws {
        for line in try text(of: file).components(separatedBy: "\n") {
            let address = Address(line)
            #expect(address.raw == line)
            #expect((address.jid == nil) == (address.fault != nil))
            if let jid = address.jid { #expect(Address(jid.normalized.description).jid == jid) }
        }
    }

    private func text(of file: String) throws -> String {
        String(decoding: try Corpus.read("jids/\(file)"), as: UTF8.self)
    }

    /// Returns the fields of each entry. A record separator and a line feed end a field; the header of an entry is at
    /// the beginning of a line.
    private func entries(of file: String, after header: String, separators: Int) throws -> [[String]] {
        try "\n\(text(of: file))".components(separatedBy: "\n\(header)").dropFirst().compactMap { piece in
            let fields = piece.components(separatedBy: "\u{1e}\n")
            return fields.count > separators ? Array(fields.prefix(separators)) : nil
        }
    }
}
