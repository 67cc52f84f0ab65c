import Foundation
import Testing

/// Tests that the invariants of stream management hold whatever is dropped, injected or lost between the endpoints.
@Suite struct StreamManagementPropertyTests {
    /// The number of random sessions; `XMPPTAP_LEDGER_RUNS` sets another number.
    private static let runs =
        ProcessInfo.processInfo.environment["XMPPTAP_LEDGER_RUNS"].flatMap { UInt64($0) } ?? 20_000

    @Test(arguments: 0..<2)
    func `translated counts neither lose nor duplicate stanzas, and never are too high or decrease`(part: UInt64) {
        var diverged: UInt64 = 0
        for seed in stride(from: part, to: Self.runs, by: 2) {
            do { if try StreamManagementModel.play(seed: seed, .counts) { diverged += 1 } } catch {
                Issue.record("seed \(seed): \(error)")
                return
            }
        }
        #expect(diverged > Self.runs / 3)
    }

    @Test func `elements edited by a translator neither lose nor duplicate stanzas`() {
        for seed in 1_000_000..<(1_000_000 + Self.runs / 40) {
            do { try StreamManagementModel.play(seed: seed, .elements) } catch {
                Issue.record("seed \(seed): \(error)")
                return
            }
        }
    }

    @Test(arguments: [StreamManagementModel.Medium.counts, .elements])
    func `without translation most sessions violate stream management`(medium: StreamManagementModel.Medium) {
        var broken = 0
        for seed: UInt64 in 0..<200 {
            do { try StreamManagementModel.play(seed: seed, medium, translates: false) } catch { broken += 1 }
        }
        #expect(broken > 150)
    }
}
