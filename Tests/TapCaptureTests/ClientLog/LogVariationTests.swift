import Foundation
import TapTestKit
import Testing

@testable import TapCapture

/// Logs with missing or reordered lines: a diagnosis must not blame a side for events that the log does not show.
struct LogVariationTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Samples")
    private static let variations = 3

    /// Samples without a failed login. Left out is that of SASL2, which shows the bound resource on a line within an item: without that line
    /// nothing was bound. Tigase's shows a refused login of another client, whose end makes it a part of no session.
    static let files = LogSampleTests.outcomes.filter { file, outcomes in
        outcomes.contains { $0.hasPrefix("ready") } && outcomes.allSatisfy { $0.hasPrefix("ready") || $0 == "open" }
            && !file.contains("sasl2") && file != "tigase-packets.log"
    }
    .keys.sorted()

    @Test(arguments: files)
    func `Missing, repeated or swapped lines do not turn a successful login into a failure`(file: String) throws {
        let text = try Data(contentsOf: Self.folder.appending(path: file))
        let lines = text.split(separator: 0x0A, omittingEmptySubsequences: false)
        var generator = SeededGenerator(seed: UInt64(lines.count))
        for number in 0..<Self.variations {
            var variation = lines
            let line = Int.random(in: 0..<lines.count, using: &generator)
            switch number % 4 {
            case 0: variation = Array(lines[...line])
            case 1: variation.remove(at: line)
            case 2: variation.insert(lines[line], at: line)
            default: variation.swapAt(line, min(line + 1, lines.count - 1))
            }
            let bytes = Array(variation.joined(separator: [0x0A]))
            // A log may be cut in front of its first item.
            guard let outcomes = try? LogConversation.outcomes(bytes: bytes) else { continue }
            let failures = outcomes.filter { !$0.hasPrefix("ready") && $0 != "open" && !$0.hasSuffix("\n") }
            #expect(failures.isEmpty, "variation \(number), line \(line + 1)")
        }
    }
}
