import Foundation
import TapTestKit
import Testing
import XMPPCore

/// The result of libexpat for a piece of XML, as recorded in the corpus.
struct Golden: Decodable {
    var ok: Bool
    var err: String?
    var elements: Int?
    var attrs: Int?
    /// Number of bytes of character data inside the top-level elements.
    var text: Int?
    var maxdepth: Int?
    var top: [String]?
    var comment: Int?
    var pi: Int?
    var doctype: Int?

    /// Whether the XML is well-formed, but contains constructs that RFC 6120 §11.1 forbids.
    var isRestricted: Bool { comment != nil || pi != nil || doctype != nil }
}

/// Compares the results of the parser core for third-party data with those of libexpat.
@Suite(.enabled(if: Corpus.isAvailable, "XMPPTAP_CORPUS is not set")) struct CorpusTests {
    struct Example: Decodable {
        var xep: String
        var n: Int
        var text: String
        var golden: Golden

        var name: String { "\(xep)#\(n)" }
    }

    static func examples() throws -> [Example] {
        try Corpus.unzip("xep-examples.jsonl.gz").split(separator: 0x0A).map {
            try JSONDecoder().decode(Example.self, from: $0)
        }
    }

    // MARK: Examples of the XEPs

    /// Examples that libexpat accepts, but that contain text between stanzas, such as "SEND:", HTTP headers or an
    /// ellipsis.
    static let textBetweenStanzas = table(
        """
        0022: 5-12; 0025: 5 8-9; 0042: 22; 0045: 18 24 56 77 86 93 98 102 115 124 128-129 134 137 141 145 168-171
        176-177 181 190-191 195-196; 0049: 1-5; 0083: 1-2; 0098: 1-7; 0099: 1 6 8 10; 0100: 26; 0112: 2; 0124: 1
        3-20 22-37; 0126: 1; 0127: 3; 0129: 3-4; 0140: 6 10; 0142: 3-4 12-15 19-20 26 28-32 36 38-39 43-45 48-49;
        0151: 31 43; 0154: 5; 0172: 6 8-9; 0174: 16 23; 0193: 3-10; 0206: 1-12; 0207: 2; 0220: 3 5-17 19-20;
        0225: 2-6; 0237: 2-4; 0241: 14-15; 0252: 1 7-8; 0272: 6; 0295: 3 5 7 9 11; 0305: 7-12; 0326: 13 61 71 101
        104; 0332: 12; 0336: 11; 0340: 1-8; 0344: 20; 0351: 1
        """
    )
    /// An example that closes the stream inside the wrapper element, which is an ordinary element for libexpat.
    static let endOfStreamInside: Set = ["0290#7"]

    @Test func `the decoder accepts the same examples as libexpat`() throws {
        let examples = try Self.examples()
        try #require(examples.count == 5912)
        let parser = StanzaParser()
        var textBetweenStanzas: Set<String> = []
        var endOfStreamInside: Set<String> = []
        for example in examples {
            let golden = example.golden
            let verdict = StreamVerdict(Array(example.text.utf8), parser: parser)
            #expect(verdict.contradictions == [], "\(example.name)")
            switch (golden.ok, verdict.outcome) {
            case (true, .accepted):
                #expect(!golden.isRestricted, "\(example.name) must be refused")
                #expect(verdict.counts == golden.counts, "\(example.name)")
            case (true, .refused(.comment)): #expect(golden.isRestricted, "\(example.name)")
            case (true, .refused(.textOutsideStanza)): textBetweenStanzas.insert(example.name)
            case (true, .refused(.afterStreamEnd)): endOfStreamInside.insert(example.name)
            case (true, let other): Issue.record("\(example.name) is well-formed, but \(other)")
            case (false, .accepted): Issue.record("\(example.name) is accepted, libexpat: \(golden.err ?? "")")
            case (false, _): break
            }
        }
        #expect(textBetweenStanzas.symmetricDifference(Self.textBetweenStanzas) == [])
        #expect(endOfStreamInside == Self.endOfStreamInside)
    }

    /// The errors of libexpat for refused examples, with the faults that the scanner may report for each error: an
    /// example may contain several errors, and the scanner reports the first that is an error in a stream.
    static let causes: [String: Set<StreamVerdict.Outcome>] = [
        // An XML declaration starts a new stream, but most examples contain no stream header after it, and others
        // contain an earlier error.
        "XML or text declaration not at start of entity": [
            .refused(.notAStream), .refused(.documentType), .refused(.comment), .refused(.textOutsideStanza),
            .refused(.mismatchedTag), .unfinished,
        ],
        "not well-formed (invalid token)": [
            .refused(.malformedTag), .refused(.malformedName), .refused(.invalidReference),
            .refused(.textOutsideStanza), .refused(.comment), .refused(.documentType),
            // The example has content after `</stream:stream>`.
            .refused(.afterStreamEnd),
        ],
        "no element found": [.unfinished, .refused(.textOutsideStanza), .refused(.comment)],
        "mismatched tag": [.refused(.mismatchedTag), .refused(.textOutsideStanza), .refused(.comment)],
        "undefined entity": [.refused(.entityReference)],
        "unbound prefix": [.refused(.unboundPrefix), .refused(.textOutsideStanza)],
        "duplicate attribute": [.refused(.duplicateAttribute)],
        "junk after document element": [.refused(.textOutsideStanza)],
    ]

    @Test func `refused examples are refused for the same reason as by libexpat`() throws {
        let parser = StanzaParser()
        var causes: [String: Set<StreamVerdict.Outcome>] = [:]
        for example in try Self.examples() where !example.golden.ok {
            let outcome = StreamVerdict(Array(example.text.utf8), parser: parser).outcome
            causes[example.golden.err ?? "", default: []].insert(outcome)
        }
        #expect(causes == Self.causes)
    }

    @Test func `the parser alone accepts the examples that are one element`() throws {
        let parser = StanzaParser()
        let root = Array(StreamVerdict.declarations.utf8)
        for example in try Self.examples() {
            let golden = example.golden
            let text = Array(example.text.trimmingCharacters(in: .whitespacesAndNewlines).utf8)
            let isElement = golden.ok && !golden.isRestricted && golden.top?.count == 1
            // libxml2 does not report text after the last tag; items never contain any.
            guard StreamVerdict(text, parser: parser).outcome != .refused(.textOutsideStanza) else { continue }
            let element = try? parser.parse(text.span, root: root)
            #expect((element != nil) == isElement, "\(example.name)")
        }
    }

    // MARK: Documents of libxml2

    /// Well-formed documents that are refused for reasons other than restricted XML.
    static let documents: [String: StreamVerdict.Outcome] = [
        // RFC 6120 §11.6 treats a byte order mark as a character, and thus as text between stanzas.
        "japancrlf.xml": .refused(.textOutsideStanza), "utf8bom.xml": .refused(.textOutsideStanza),
        // Names of more than 1 KiB.
        "bigname.xml": .refused(.nameTooLong), "bigname2.xml": .refused(.nameTooLong),
    ]

    @Test func `the decoder accepts the same documents as libexpat`() throws {
        let parser = StanzaParser()
        let lines = String(decoding: try Corpus.read("libxml2-golden.tsv"), as: UTF8.self).split(separator: "\n")
        try #require(lines.count == 200)
        var disagreements: [String: StreamVerdict.Outcome] = [:]
        var accepted = 0
        for line in lines.dropFirst() {
            let fields = line.split(separator: "\t")
            let name = String(fields[0])
            let golden = try JSONDecoder().decode(Golden.self, from: Data(fields[2].utf8))
            let document = Document(Array(try Corpus.read("libxml2/\(name)")))
            guard document.isUTF8 else {
                // These documents are checked from the first byte, like a stream in their encoding.
                let outcome = StreamVerdict(stream: document.bytes, parser: parser).outcome
                #expect(outcome == .refused(.unsupportedEncoding), "\(name)")
                continue
            }
            let verdict = StreamVerdict(document.bytes, parser: parser)
            #expect(verdict.contradictions == [], "\(name)")
            switch (golden.ok, verdict.outcome) {
            case (true, .accepted):
                accepted += 1
                #expect(!golden.isRestricted, "\(name) must be refused")
                var expected = golden.counts
                expected.top = expected.top.map { String($0.split(separator: " ").last ?? "") }
                #expect(verdict.counts == expected, "\(name)")
            case (true, .refused(.comment)), (true, .refused(.processingInstruction)), (true, .refused(.documentType)):
                #expect(golden.isRestricted, "\(name)")
            case (true, let other):
                disagreements[name] = other
            case (false, .accepted): disagreements[name] = .accepted
            case (false, _): break
            }
        }
        #expect(accepted == 45)
        #expect(disagreements == Self.documents)
    }

    // MARK: UTF-8

    /// Valid UTF-8 sequences of characters that XML 1.0 forbids.
    static let forbiddenCharacters: Set = ["00", "EF BF BE", "EF BF BF"]

    /// Overlong forms that libxml2 accepts in CDATA. The scanner rejects them before libxml2 gets the item.
    static let takenByLibxml2: Set = [
        "C0 AF in <a><![CDATA[", "C1 BF in <a><![CDATA[", "E0 80 AF in <a><![CDATA[", "E0 9F BF in <a><![CDATA[",
        "F0 80 80 AF in <a><![CDATA[",
    ]

    @Test func `UTF-8 sequences are judged as by Prosody`() throws {
        let lines = String(decoding: try Corpus.read("prosody-utf8_sequences.txt"), as: UTF8.self)
            .split(separator: "\n").filter { $0.hasPrefix("Should ") }
        try #require(lines.count > 40)
        let root = Array(StreamVerdict.declarations.utf8)
        var disagreements: Set<String> = []
        for line in lines {
            let isValid = line.hasPrefix("Should pass:")
            let hexadecimal = line.dropFirst(12).prefix { $0 != "#" }.trimmingCharacters(in: .whitespaces)
            let sequence = hexadecimal.split(separator: " ").compactMap { UInt8($0, radix: 16) }
            let expected: StreamVerdict.Outcome =
                !isValid
                ? .refused(.invalidUTF8)
                : Self.forbiddenCharacters.contains(hexadecimal) ? .refused(.invalidCharacter) : .accepted
            for (before, after) in [("<a>", "</a>"), ("<a b='", "'/>"), ("<a><![CDATA[", "]]></a>")] {
                let piece = Array(before.utf8) + sequence + Array(after.utf8)
                #expect(StreamVerdict(piece).outcome == expected, "\(line)")
                let isParsed = (try? StanzaParser().parse(piece.span, root: root)) != nil
                if isParsed != (expected == .accepted) { disagreements.insert("\(hexadecimal) in \(before)") }
            }
        }
        #expect(disagreements == Self.takenByLibxml2)
    }

    /// Parses `0045: 1 3-4; 0046: 2` into "0045#1", "0045#3" and so on.
    private static func table(_ text: String) -> Set<String> {
        var names: Set<String> = []
        for group in text.split(separator: ";") {
            let parts = group.split(separator: ":")
            let xep = parts[0].filter { !$0.isWhitespace }
            for run in parts[1].split(whereSeparator: \.isWhitespace) {
                let ends = run.split(separator: "-").compactMap { Int($0) }
                guard let first = ends.first, let last = ends.last else { continue }
                for number in first...last { names.insert("\(xep)#\(number)") }
            }
        }
        return names
    }
}

extension Golden {
    var counts: StreamVerdict.Counts {
        StreamVerdict.Counts(
            elements: elements ?? 0,
            attributes: attrs ?? 0,
            text: text ?? 0,
            maximumDepth: maxdepth ?? 0,
            top: top ?? []
        )
    }
}

/// A document; its XML declaration is removed if it only declares UTF-8, so that the rest can be placed inside a
/// stream.
private struct Document {
    var bytes: [UInt8]
    var isUTF8: Bool

    init(_ document: [UInt8]) {
        bytes = document
        isUTF8 =
            !document.prefix(2).contains(0) && !document.starts(with: [0xFE, 0xFF])
            && !document.starts(with: [0xFF, 0xFE])
        guard document.starts(with: Array("<?xml".utf8)), let end = document.firstIndex(of: 0x3E) else { return }
        let declaration = String(decoding: document[...end], as: UTF8.self).lowercased()
        guard !declaration.contains("encoding") || declaration.contains("utf-8") else {
            isUTF8 = false
            return
        }
        bytes.removeFirst(end + 1)
    }
}
