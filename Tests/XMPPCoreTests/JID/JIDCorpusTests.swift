import Foundation
import TapTestKit
import Testing
import XMPPCore

@Suite(.enabled(if: Corpus.isAvailable, "XMPPTAP_CORPUS is not set"))
struct JIDCorpusTests {
    /// Invalid by character classes of PRECIS, which syntax does not know: needs preparation.
    private let needPreparation: Set<String> = ["henryⅣ@example.com", "♚@example.com", "xsf@muc.xmpp.org/\u{061c}x"]

    /// Normalised by a mapping beyond lower case (final sigma to sigma): needs preparation.
    private let foldedFurther: Set<String> = ["ς@example.com"]

    @Test func `every valid address of jxmpp parses into its parts`() throws {
        let entries = try self.entries(of: "jxmpp-valid-main.txt", after: "jid:\n", separators: 2)
        #expect(entries.count >= 20)
        for entry in entries {
            let jid = try JID(parsing: entry[0])
            guard !foldedFurther.contains(entry[0]) else { continue }
            let parts = entry[1].components(separatedBy: "\u{1f}")
            #expect(parts == [jid.normalized.local ?? "", jid.normalized.domain, jid.normalized.resource ?? ""])
        }
    }

    @Test func `every invalid address of jxmpp is refused, but for those that need preparation`() throws {
        let entries = try self.entries(of: "jxmpp-invalid-main.txt", after: "invalid jid:\n", separators: 1)
        #expect(entries.count == 24)
        let accepted = entries.map { $0[0] }.filter { Address($0).jid != nil }
        #expect(Set(accepted) == needPreparation)
    }

    @Test(arguments: ["prosody-jid-inputs.txt", "xmpp-rs-jid-inputs.txt"])
    func `every input is taken, and what parses prints and parses again as the same`(file: String) throws {
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

    /// The fields of each entry; a field ends with a record separator and a line feed, the header begins a line.
    private func entries(of file: String, after header: String, separators: Int) throws -> [[String]] {
        try "\n\(text(of: file))".components(separatedBy: "\n\(header)").dropFirst().compactMap { piece in
            let fields = piece.components(separatedBy: "\u{1e}\n")
            return fields.count > separators ? Array(fields.prefix(separators)) : nil
        }
    }
}
