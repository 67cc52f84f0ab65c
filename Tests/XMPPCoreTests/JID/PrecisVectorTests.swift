import Foundation
import TapTestKit
import Testing

@testable import XMPPCore

/// Tests the vectors of precis_i18n for the two profiles and two classes that addresses use; its other vectors are for
/// nicknames, case-preserving names and the older case folding.
@Suite(.enabled(if: Corpus.isAvailable, "XMPPTAP_CORPUS is not set"))
struct PrecisVectorTests {
    private struct Vector: Decodable {
        let profile: String
        let input: String?
        let output: String?
        let error: String?
    }

    /// Vectors with a different result, by profile and input, with the reason.
    private let exceptions: [String: String] = [:]

    @Test(arguments: [
        "UsernameCaseMapped", "UsernameCaseMapped:ToLower", "OpaqueString", "IdentifierClass", "FreeFormClass",
    ])
    func `every PRECIS vector has the expected output or error`(profile: String) throws {
        // Two inputs are lone surrogates, which neither UTF-8 nor strings can represent.
        let text = String(decoding: try Corpus.unzip("jids/precis-golden.json.gz"), as: UTF8.self)
            .replacing(#/"\\ud8(?:00|ff)"/#, with: "null")
        let vectors = try JSONDecoder().decode([Vector].self, from: Data(text.utf8)).filter { $0.profile == profile }
        #expect(vectors.count == 325)
        #expect(vectors.count { $0.input == nil } == 2)
        var failed: Set<String> = []
        for vector in vectors {
            guard let input = vector.input else { continue }
            let text = Array(input.unicodeScalars)
            let (output, error) = apply(profile, to: text)
            if output.map({ Array($0) }) != vector.output.map({ Array($0.unicodeScalars) }) || error != vector.error {
                let name = "\(profile) \(text.map(\.codePoint).joined(separator: " "))"
                failed.insert(name)
                if exceptions[name] == nil {
                    Issue.record("\(name): \(output ?? []) \(error ?? ""), not \(vector.output ?? vector.error ?? "")")
                }
            }
        }
        for name in exceptions.keys where name.hasPrefix("\(profile) ") {
            #expect(failed.contains(name), "holds by now: \(name)")
        }
    }

    private func apply(_ profile: String, to text: [Unicode.Scalar]) -> (output: [Unicode.Scalar]?, error: String?) {
        do throws(PreparationFault) {
            switch profile {
            case "OpaqueString": return (try Precis.opaqueString(text), nil)
            case "IdentifierClass": try Precis.check(text, isIdentifier: true)
            case "FreeFormClass": try Precis.check(text, isIdentifier: false)
            default: return (try Precis.usernameCaseMapped(text), nil)
            }
            return (text, nil)
        } catch {
            return (nil, "DISALLOWED/\(name(of: error))")
        }
    }

    /// Returns the name of a fault in the vectors.
    private func name(of fault: PreparationFault) -> String {
        switch fault {
        case .empty: "empty"
        case .bidi: "bidi_rule"
        case .unassigned: "unassigned"
        case .disallowed(let scalar, _):
            switch scalar.precisCategory {
            case .exception: "exceptions"
            case .oldHangulJamo: "old_hangul_jamo"
            case .ignorable: "precis_ignorable_properties"
            case .control: "controls"
            case .compatibility: "has_compat"
            case .otherLetterDigit: "other_letter_digits"
            case .space: "spaces"
            case .symbol: "symbols"
            case .punctuation: "punctuation"
            default: "other"
            }
        case .outOfContext(let scalar):
            switch scalar.value {
            case 0x200c: "zero_width_nonjoiner"
            case 0x200d: "zero_width_joiner"
            case 0xb7: "middle_dot"
            case 0x375: "greek_keraia"
            case 0x5f3, 0x5f4: "hebrew_punctuation"
            case 0x30fb: "katakana_middle_dot"
            case 0x660...0x669: "arabic_indic"
            default: "extended_arabic_indic"
            }
        default: "\(fault)"
        }
    }
}
