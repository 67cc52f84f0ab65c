import Foundation
import TapTestKit
import Testing

@testable import XMPPCore

/// UAX #15 against the vectors that come with the tables, from Debian's package unicode-data.
@Suite struct NormalizationTests {
    private static let vectors = "/usr/share/unicode/NormalizationTest.txt.bz2"
    private static let hasVectors = FileManager.default.fileExists(atPath: vectors)

    @Test func `marks are ordered, pairs composed, and what is excluded stays apart`() {
        for (text, composed) in [
            ("a\u{323}\u{307}", "\u{1ea1}\u{307}"), ("a\u{307}\u{323}", "\u{1ea1}\u{307}"), ("\u{212b}", "\u{c5}"),
            ("\u{1100}\u{1161}\u{11a8}", "\u{ac01}"), ("\u{ac00}\u{11a8}", "\u{ac01}"), ("\u{958}", "\u{915}\u{93c}"),
            ("\u{344}", "\u{308}\u{301}"), ("\u{301}a", "\u{301}a"), ("", ""),
            ("a\u{305}\u{301}", "a\u{305}\u{301}"), ("\u{9c7}\u{9be}", "\u{9cb}"),
        ] {
            #expect(compose(text) == Array(composed.unicodeScalars), "\(text)")
        }
    }

    @Test(.enabled(if: hasVectors, "unicode-data is not installed"))
    func `every vector of the Unicode Character Database holds`() throws {
        let lines = try unpack(Self.vectors).split(separator: "\n")
        let version = try #require(lines.first)
        #expect(version.contains(UnicodeData.version), "other tables than those of \(version)")
        var count = 0
        var single: Set<Unicode.Scalar> = []
        var isFirstPart = false
        for line in lines where !line.hasPrefix("#") {
            guard !line.hasPrefix("@") else {
                isFirstPart = line.hasPrefix("@Part1")
                continue
            }
            let fields = line.split(separator: ";").prefix(5).map { field in
                field.split(separator: " ").compactMap { UInt32($0, radix: 16).flatMap(Unicode.Scalar.init) }
            }
            try #require(fields.count == 5)
            if isFirstPart { single.formUnion(fields[0]) }
            // NFC of the source, of NFC and of NFD is NFC; NFC of NFKC and of NFKD is NFKC.
            let results = fields.map(UnicodeTables.shared.composed)
            let holds = results[0...2].allSatisfy { $0 == fields[1] } && results[3...4].allSatisfy { $0 == fields[3] }
            if !holds { Issue.record("\(line)") }
            count += 1
        }
        #expect(count > 18_000)
        // A code point that part 1 does not list is its own NFC.
        for value in 0...0x10ffff as ClosedRange<UInt32> {
            guard let scalar = Unicode.Scalar(value), !single.contains(scalar) else { continue }
            if UnicodeTables.shared.composed([scalar]) != [scalar] { Issue.record("\(scalar.codePoint)") }
        }
    }

    private func compose(_ text: String) -> [Unicode.Scalar] {
        UnicodeTables.shared.composed(Array(text.unicodeScalars))
    }

    private func unpack(_ path: String) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["bzip2", "-dc", path]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self)
    }
}
