import Foundation
import Testing

@testable import XMPPCore

private let folder = "/usr/share/unicode"

/// Compares computed and listed Unicode properties with the Unicode Character Database in Debian's package
/// unicode-data.
@Suite(.enabled(if: FileManager.default.fileExists(atPath: folder), "unicode-data is not installed"))
struct UnicodeTests {
    /// AHOM CONSONANT SIGN MEDIAL RA, which became a spacing mark in Unicode 16.0.
    private static let changedLater: Set<UInt32> = [0x1171e]

    @Test func `composition returns NFC for every normalisation vector`() throws {
        var count = 0
        var single: Set<Unicode.Scalar> = []
        var isFirstPart = false
        for line in try unpack("\(folder)/NormalizationTest.txt.bz2").split(separator: "\n")
        where !line.hasPrefix("#") {
            guard !line.hasPrefix("@") else {
                isFirstPart = line.hasPrefix("@Part1")
                continue
            }
            let fields = line.split(separator: ";").prefix(5).map { field in
                field.split(separator: " ").compactMap { UInt32($0, radix: 16).flatMap(Unicode.Scalar.init) }
            }
            try #require(fields.count == 5)
            if isFirstPart { single.formUnion(fields[0]) }
            // NFC of the source, of NFC and of NFD equals NFC; NFC of NFKC and of NFKD equals NFKC.
            let results = fields.map(composed)
            let holds = results[0...2].allSatisfy { $0 == fields[1] } && results[3...4].allSatisfy { $0 == fields[3] }
            if !holds { Issue.record("\(line)") }
            count += 1
        }
        #expect(count > 18_000)
        // Code points that are not listed in part 1 are equal to their NFC.
        for value in 0...0x10ffff as ClosedRange<UInt32> {
            guard let scalar = Unicode.Scalar(value), !single.contains(scalar) else { continue }
            if composed([scalar]) != [scalar] { Issue.record("\(scalar.codePoint)") }
        }
    }

    @Test func `code points that NFKC changes have the category compatibility`() throws {
        let changed = try properties(in: "DerivedNormalizationProps.txt", ["NFKC_QC"], column: 2)
        #expect(changed.count > 4_000)
        for scalar in assigned() {
            let expected = changed[scalar.value] == "N"
            switch scalar.precisCategory {
            case .compatibility: if !expected { Issue.record("\(scalar.codePoint)") }
            case .exception, .ignorable, .control, .oldHangulJamo: break
            default: if expected { Issue.record("\(scalar.codePoint)") }
            }
        }
    }

    @Test func `the listed ranges of Greek and Hebrew match the Unicode scripts`() throws {
        let (greek, hebrew) = (Self.greek, Self.hebrew)
        for scalar in assigned() {
            let text = String(scalar)
            if scalar.isGreek != text.contains(greek) { Issue.record("\(scalar.codePoint)") }
            if scalar.isHebrew != text.contains(hebrew) { Issue.record("\(scalar.codePoint)") }
        }
    }

    private static var greek: Regex<Substring> { #/\p{Script=Greek}/#.matchingSemantics(.unicodeScalar) }
    private static var hebrew: Regex<Substring> { #/\p{Script=Hebrew}/#.matchingSemantics(.unicodeScalar) }

    @Test func `wide and narrow characters are mapped to their decompositions`() throws {
        var usual: [UInt32: Unicode.Scalar] = [:]
        for fields in try lines(of: "UnicodeData.txt")
        where ["<wide>", "<narrow>"].contains(fields[5].split(separator: " ").first) {
            let target = UInt32(fields[5].split(separator: " ")[1], radix: 16).flatMap(Unicode.Scalar.init)
            usual[try #require(UInt32(fields[0], radix: 16))] = target
        }
        #expect(usual.count == 226)
        for scalar in assigned() where scalar.narrowed != usual[scalar.value] ?? scalar {
            Issue.record("\(scalar.codePoint) becomes \(scalar.narrowed.codePoint)")
        }
    }

    @Test func `joining types equal those of the Unicode database`() throws {
        let types = try properties(in: "extracted/DerivedJoiningType.txt")
        #expect(types.count > 2_500)
        for scalar in assigned() where !Self.changedLater.contains(scalar.value) {
            let type = types[scalar.value] ?? "U"
            let holds =
                scalar.isTransparentToJoining == (type == "T") && scalar.joinsNext == (type == "L" || type == "D")
                && scalar.joinsPrevious == (type == "R" || type == "D")
            if !holds { Issue.record("\(scalar.codePoint) is of type \(type)") }
        }
    }

    @Test func `Bidi classes equal those of the Unicode database for all characters under the Bidi rule`() throws {
        let classes = try properties(in: "extracted/DerivedBidiClass.txt")
        var count = 0
        for scalar in assigned() where !Self.changedLater.contains(scalar.value) {
            switch scalar.precisCategory {
            case .valid, .contextJ, .contextO: break
            default: if !scalar.isLabelCharacter { continue }
            }
            count += 1
            let expected: BidiClass =
                switch classes[scalar.value] {
                case "R", "AL": .rightToLeft
                case "AN": .arabicNumber
                case "EN": .europeanNumber
                case "NSM": .nonspacingMark
                case "L": .leftToRight
                default: .neutral
                }
            if scalar.bidiClass != expected { Issue.record("\(scalar.codePoint) is \(expected)") }
        }
        #expect(count > 100_000)
    }

    // MARK: Database files

    private func assigned() -> some Sequence<Unicode.Scalar> {
        (0...0x10ffff as ClosedRange<UInt32>).lazy.compactMap(Unicode.Scalar.init)
            .filter { $0.precisCategory != .unassigned }
    }

    /// Returns the values of the listed code points from the lines whose second field is one of `names`, or from all
    /// lines.
    private func properties(in file: String, _ names: [String]? = nil, column: Int = 1) throws -> [UInt32: String] {
        var values: [UInt32: String] = [:]
        for fields in try lines(of: file) where fields.count > column && names?.contains(fields[1]) ?? true {
            let bounds = fields[0].split(separator: ".").compactMap { UInt32($0, radix: 16) }
            guard let first = bounds.first, let last = bounds.last else { continue }
            for value in first...last { values[value] = fields[column] }
        }
        return values
    }

    private func lines(of file: String) throws -> [[String]] {
        try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8).split(separator: "\n").compactMap {
            line in
            let text = line.prefix { $0 != "#" }
            let fields = text.split(separator: ";", omittingEmptySubsequences: false).map {
                $0.trimmingCharacters(in: .whitespaces)
            }
            return fields.count > 1 ? fields : nil
        }
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
