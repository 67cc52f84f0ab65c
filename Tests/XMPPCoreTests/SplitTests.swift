import TapTestKit
import Testing
import XMPPCore

/// Tests that the events do not depend on how the input is split into reads.
@Suite struct SplitTests {
    @Test(arguments: GoldenSession.all) func `a session split at any byte gives the same items`(
        _ session: GoldenSession
    ) {
        #expect(DecoderTranscript(session.bytes).lines.count == session.items)
        if let difference = DecoderVerifier.checkEachBoundary(session.bytes) { Issue.record("\(difference)") }
    }

    /// Uses a limit that nearly every item exceeds, so that fragments are split too.
    @Test(arguments: GoldenSession.all) func `items beyond the limit have the same events for any split`(
        _ session: GoldenSession
    ) {
        for itemBytes in [1, 20, 60, 100] {
            let limits = StreamLimits(itemBytes: itemBytes)
            if let difference = DecoderVerifier.checkEachBoundary(session.bytes, limits: limits) {
                Issue.record("limit \(itemBytes), \(difference)")
            }
        }
    }

    @Test func `limits are exceeded at the same byte for any split`() {
        let limits = StreamLimits(itemBytes: 50, tagBytes: 130, depth: 3, attributes: 4, nameBytes: 9, namespaces: 3)
        for session in GoldenSession.all {
            if let difference = DecoderVerifier.checkEachBoundary(session.bytes, limits: limits) {
                Issue.record("\(difference)")
            }
        }
    }
}

/// Splits all input of the corpora at random, which takes minutes in a debug build.
@Suite(.enabled(if: BuildMode.isRelease && Corpus.isAvailable, "release builds with XMPPTAP_CORPUS only"))
struct SplitLongTests {
    @Test(arguments: 0..<8) func `XEP examples split at random give the same items`(_ part: Int) throws {
        var generator = SeededGenerator(seed: 2026 + UInt64(part))
        for (index, example) in try CorpusTests.examples().enumerated() where index % 8 == part {
            let input = Array("<stream:stream\(StreamVerdict.declarations)>\(example.text)</stream:stream>".utf8)
            let limits = StreamLimits(itemBytes: index % 3 == 0 ? 300 : 1 << 20)
            if let difference = DecoderVerifier.checkRandom(input, rounds: 20, limits: limits, using: &generator) {
                Issue.record("\(example.name): \(difference)")
            }
        }
    }

    @Test func `libxml2 documents split at random give the same items`() throws {
        var generator = SeededGenerator(seed: 2027)
        for line in String(decoding: try Corpus.read("libxml2-golden.tsv"), as: UTF8.self).split(separator: "\n")
            .dropFirst()
        {
            let document = Array(try Corpus.read("libxml2/\(line.split(separator: "\t")[0])"))
            for input in [document, Array("<stream:stream\(StreamVerdict.declarations)>".utf8) + document] {
                if let difference = DecoderVerifier.checkRandom(input, rounds: 30, using: &generator) {
                    Issue.record("\(line): \(difference)")
                }
            }
        }
    }

    @Test(arguments: GoldenSession.all) func `a session split at two bytes gives the same items`(
        _ session: GoldenSession
    ) {
        let whole = DecoderTranscript(session.bytes)
        let count = session.bytes.count
        for first in stride(from: 1, to: count, by: 2) {
            for second in stride(from: first + 1, to: count, by: 3) {
                guard DecoderTranscript(session.bytes, cuts: [first, second]) != whole else { continue }
                Issue.record("cut at \(first) and \(second)")
            }
        }
    }
}
