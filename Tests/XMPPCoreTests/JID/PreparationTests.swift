import Glibc
import TapTestKit
import Testing

@testable import XMPPCore

/// Preparation of address parts: UsernameCaseMapped, IDNA, OpaqueString (RFC 7622 §3.2 to §3.4).
@Suite struct PreparationTests {
    @Test(arguments: [
        ("Ｊｕｌｉｅｔ@x", "juliet@x"), ("ΒόλοΣ@x", "βόλος@x"), ("ΣΑΣ@x", "σας@x"), ("İ@x", "i\u{307}@x"),
        ("E\u{301}@x", "é@x"), ("fußball@x", "fußball@x"), ("\u{212a}@x", "k@x"), ("ﾊﾟ@x", "パ@x"),
        ("l·l@x", "l·l@x"), ("שלום@x", "שלום@x"),
        ("x/a\u{3000}b\u{a0}c", "x/a b c"), ("x/Ⅳ♚", "x/Ⅳ♚"), ("x/ E\u{301}", "x/ É"), ("x/ｗｉｄｅ", "x/ｗｉｄｅ"),
        ("MÜNCHEN.example", "münchen.example"), ("xn--mnchen-3ya.example", "münchen.example"),
        ("XN--MNCHEN-3YA.Example.", "münchen.example"), ("bücher。example．org｡", "bücher.example.org"),
        ("ｅｘａｍｐｌｅ.com", "example.com"), ("faß.de", "faß.de"), ("ΒόλοΣ.example", "βόλοσ.example"),
        ("\u{13a0}.example", "\u{13a0}.example"), ("u\u{308}.example", "ü.example"), ("パ.example", "パ.example"),
        ("my_host.bücher.example", "my_host.bücher.example"), ("אבג.example", "אבג.example"),
        ("نامه\u{200c}ای.example", "نامه\u{200c}ای.example"), ("क्\u{200d}ष.example", "क्\u{200d}ष.example"),
        ("l·l.example", "l·l.example"), ("L·L.example", "l·l.example"), ("xn--ll-0ea.example", "l·l.example"),
        ("ｘｎ－－mnchen-3ya.example", "münchen.example"),
    ])
    func `addresses are prepared for comparison`(written: String, prepared: String) throws {
        let jid = try JID(parsing: written)
        #expect(Array(jid.normalized.description.unicodeScalars) == Array(prepared.unicodeScalars))
        #expect(jid.description == written)
        #expect(try jid == JID(parsing: prepared))
    }

    @Test(arguments: [
        (
            "henryⅣ@x", JIDError.Code.forbiddenCharacter, JIDError.Part.local,
            "U+2163 at byte 5, mapped to U+2173, is not"
        ),
        ("♚@x", .forbiddenCharacter, .local, "it is a symbol"),
        ("a＠b@x", .forbiddenCharacter, .local, "U+FF20 at byte 1, mapped to U+0040, is not"),
        ("a\u{e0001}@x", .forbiddenCharacter, .local, "U+E0001 at byte 1"),
        ("x/\u{1115}", .forbiddenCharacter, .resource, "Hangul"),
        ("x/\u{378}", .unassignedCharacter, .resource, "U+0378 at byte 0 is not assigned in Unicode 15.0"),
        ("a·b@x", .contextRule, .local, "U+00B7 at byte 1"),
        ("x/\u{200d}", .contextRule, .resource, "U+200D at byte 0"),
        ("\u{5d0}♚\u{5d1}@x", .forbiddenCharacter, .local, "U+265A at byte 2 is not"),
        ("1\u{5d0}@x", .bidiRule, .local, "it breaks condition 1"), ("\u{5d0}a@x", .bidiRule, .local, "condition 2"),
        ("\u{627}1\u{661}@x", .bidiRule, .local, "condition 4"),
        ("3com.אבג", .bidiRule, .domain, "label 1 breaks condition 1"),
        ("☃.com", .forbiddenCharacter, .domain, "U+2603 at byte 0"),
        ("\u{301}a.com", .badLabel, .domain, "label 1 begins with a mark"),
        ("a.xn--!.com", .forbiddenCharacter, .domain, "U+0021"),
        ("a.xn--99999999.com", .badLabel, .domain, "label 2 begins with xn-- and is not valid Punycode"),
        ("xn--abc-.com", .badLabel, .domain, "label 1"), ("xn--.com", .badLabel, .domain, "label 1"),
        ("xn--i-7iq.ws", .forbiddenCharacter, .domain, "U+2764 is not"),
        ("-a.com", .badLabel, .domain, "label 1 begins or ends"),
        ("b.a-.com", .badLabel, .domain, "label 2 begins or ends"),
        ("ab--cd.com", .badLabel, .domain, "hyphens as its third and fourth character"),
        ("-ü.com", .badLabel, .domain, "begins or ends"),
        ("üa--b.com", .badLabel, .domain, ""), ("ü。。com", .empty, .domain, "label 2 is empty"),
        ("。", .empty, .domain, "label 1 is empty"),
        ("ü..com", .empty, .domain, ""), ("_ü.com", .forbiddenCharacter, .domain, "U+005F"),
        ("［a］", .forbiddenCharacter, .domain, "U+FF3B at byte 0, mapped to U+005B, is not"),
        ("a／b.com", .forbiddenCharacter, .domain, "U+002F"),
        ("ا٠۰.com", .contextRule, .domain, "U+0660 at byte 2"),
        ("\u{200c}a.com", .contextRule, .domain, "U+200C at byte 0"),
    ])
    func `an error names the part, the violated rule and the character`(
        text: String,
        code: JIDError.Code,
        part: JIDError.Part,
        words: String
    ) {
        let error = #expect(throws: JIDError.self) { try JID(parsing: text) }
        #expect(error?.code == code)
        #expect(error?.part == part)
        #expect(error.map { words.isEmpty || $0.reason.contains(words) } == true, "\(error?.reason ?? "")")
    }

    @Test func `a part whose prepared form is too long, or exceeds a DNS label, is refused`() {
        // Lower-casing turns two bytes into three, composition seven into six.
        let grown = String(repeating: "\u{23a}", count: 400)
        #expect(Address("\(grown)@x").fault?.code == .tooLong)
        #expect(Address("x/\(grown)").fault == nil)
        #expect(Address(String(repeating: "ü", count: 57) + ".com").fault == nil)
        #expect(Address(String(repeating: "ü", count: 60) + ".com").fault?.code == .badLabel)
    }

    @Test func `a domain has an ASCII form for the DNS`() throws {
        for (written, ascii) in [
            ("a@MÜNCHEN.example./r", "xn--mnchen-3ya.example"), ("Example.COM", "example.com"), ("[::1]", "[::1]"),
            ("xn--mnchen-3ya.faß", "xn--mnchen-3ya.xn--fa-hia"),
        ] {
            let jid = try JID(parsing: written)
            #expect(jid.asciiDomain == ascii)
            #expect(try JID(domain: jid.asciiDomain) == JID(domain: jid.domain))
        }
    }

    @Test func `composition orders combining marks and composes all pairs that are not excluded`() {
        for (text, expected) in [
            ("a\u{323}\u{307}", "\u{1ea1}\u{307}"), ("a\u{307}\u{323}", "\u{1ea1}\u{307}"), ("\u{212b}", "\u{c5}"),
            ("\u{1100}\u{1161}\u{11a8}", "\u{ac01}"), ("\u{ac00}\u{11a8}", "\u{ac01}"), ("\u{958}", "\u{915}\u{93c}"),
            ("\u{344}", "\u{308}\u{301}"), ("\u{301}a", "\u{301}a"), ("", ""),
            ("a\u{305}\u{301}", "a\u{305}\u{301}"), ("\u{9c7}\u{9be}", "\u{9cb}"),
        ] {
            #expect(composed(Array(text.unicodeScalars)) == Array(expected.unicodeScalars), "\(text)")
        }
    }

    @Test func `characters added after Unicode 15.0 are refused`() {
        // All these characters were added in Unicode 16.0; the first one is the capital of a letter that existed
        // before.
        for scalar in ["\u{a7cb}", "\u{a7da}", "\u{a7db}", "\u{10d4a}"] {
            for text in ["\(scalar)@x", "x/\(scalar)", "\(scalar).example"] {
                #expect(Address(text).fault?.code == .unassignedCharacter, "\(text.unicodeScalars.map(\.codePoint))")
            }
        }
    }

    @Test func `every code point is accepted or refused, and preparation is idempotent`() {
        struct Properties: Hashable {
            let category: PrecisCategory
            let isLabelCharacter: Bool
            let combiningClass: UInt8
        }
        var counts: [PrecisCategory: Int] = [:]
        var labelCharacters = 0
        var last: Properties?
        for value in 0...0x10ffff as ClosedRange<UInt32> {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let properties = Properties(
                category: scalar.precisCategory,
                isLabelCharacter: scalar.isLabelCharacter,
                combiningClass: scalar.properties.canonicalCombiningClass.rawValue
            )
            counts[properties.category, default: 0] += 1
            if properties.isLabelCharacter { labelCharacters += 1 }
            // Debug builds test only one of several consecutive code points with equal properties, such as ideographs.
            let isLikeItsNeighbour =
                properties == last && scalar.narrowed == scalar && !scalar.properties.changesWhenNFKCCaseFolded
            last = properties
            if BuildMode.isRelease || !isLikeItsNeighbour { expectStable([scalar]) }
        }
        // Unicode 15.0 assigns 149,186 characters, which the rules of PRECIS and IDNA classify as follows.
        let expected: [PrecisCategory: Int] = [
            .valid: 134_975, .unassigned: 0x110000 - 149_186 - 65 - 66 - 137_468 - 2_048, .contextJ: 2, .contextO: 25,
            .exception: 10, .oldHangulJamo: 357, .ignorable: 467, .control: 65, .compatibility: 4_926,
            .otherLetterDigit: 989, .space: 2, .symbol: 6_766, .punctuation: 699, .other: 137_502,
        ]
        #expect(counts == expected)
        #expect(labelCharacters == 133_550)
    }

    @Test func `random text does not cause a trap, and prepared text is stable`() {
        var generator = SeededGenerator(seed: 7622)
        // Characters for which special rules exist, so that many random texts are accepted.
        let lively = Array(
            "aAlLßΣσς·ÉéİıǄǅ\u{301}\u{307}\u{323}\u{345}Ωกअ्कष\u{200c}\u{200d}אבج١۱1-.。ー・カﾊﾟＡ한\u{1100}\u{1161}\u{11a8}Ꭰꭰ\u{3000}"
                .unicodeScalars
        )
        var prepared = 0
        for round in 0..<40_000 {
            let count = Int.random(in: 1...12, using: &generator)
            let text =
                round % 2 == 0
                ? (0..<count).map { _ in lively[Int.random(in: lively.indices, using: &generator)] }
                : Array(generator.hostileText(count: count).unicodeScalars)
            prepared += expectStable(text)
            let address = Address(String(String.UnicodeScalarView(text)))
            guard let jid = address.jid else { continue }
            #expect(Address(jid.normalized.description).jid?.normalized.description == jid.normalized.description)
        }
        #expect(prepared > 5_000)
    }

    @Test func `preparation does not take quadratic time`() {
        // Texts that the rules search completely, or whose combining marks must be sorted. In quadratic time, 1008
        // bytes would take 64 times as long as 126 bytes.
        let plain = timeToPrepare("ü", bytes: 1008)
        for unit in [
            "\u{344}", "・", "ー・", "٠", "Σ\u{301}", "ب\u{200c}", "\u{323}\u{301}", "\u{1100}", "क्\u{200d}", "͵α", "א׳",
        ] {
            let (short, long) = (timeToPrepare(unit, bytes: 126), timeToPrepare(unit, bytes: 1008))
            #expect(long < 32 * short, "\(unit): \(short) ns, \(long) ns")
            #expect(long < 32 * plain, "\(unit): \(long) ns, of plain text \(plain) ns")
        }
    }

    /// Returns the processor time to prepare addresses with a text of that length, in nanoseconds: the minimum of eight
    /// measurements, to exclude cold caches.
    private func timeToPrepare(_ unit: String, bytes: Int) -> Int64 {
        let text = String(repeating: unit, count: bytes / unit.utf8.count)
        func now() -> Int64 {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
        }
        return (0..<8).reduce(.max) { least, _ in
            let start = now()
            _ = [Address("\(text)@\(text)/\(text)"), Address("x/\(text)"), Address(text)]
            return min(least, now() - start)
        }
    }

    /// Prepares a text with each profile, and the result again; returns the number of profiles that accept the text.
    @discardableResult
    private func expectStable(_ text: [Unicode.Scalar]) -> Int {
        var accepted = 0
        let profiles: [([Unicode.Scalar]) throws -> [Unicode.Scalar]] = [
            { try Precis.usernameCaseMapped($0) }, { try Precis.opaqueString($0) }, { try DomainName.prepared($0) },
        ]
        for rules in profiles {
            guard let once = try? rules(text) else { continue }
            accepted += 1
            if (try? rules(once)) != once { Issue.record("\(text.map(\.codePoint)) becomes \(once.map(\.codePoint))") }
        }
        return accepted
    }
}
