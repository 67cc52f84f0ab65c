import Testing

@testable import TapStreamManagement

/// Tests that peers with wrong counts are found, and correct peers are not.
@Suite struct AcknowledgementAuditTests {
    /// Returns the findings about a receiver that gets a request after each stanza and answers with `count` of the
    /// number of stanzas.
    private func findings(_ stanzas: Int, _ count: (UInt32) -> UInt32) -> [AcknowledgementFinding] {
        var ledger = StreamManagementLedger(startingAt: 0)
        return (1...UInt32(stanzas)).compactMap { number in
            ledger.pass()
            ledger.request()
            return ledger.acknowledge(count(number)).finding
        }
    }

    @Test func `a peer that counts correctly causes no finding`() {
        #expect(findings(1000) { $0 }.isEmpty)
    }

    @Test func `a peer that counts one stanza too many is reported once, at that stanza`() {
        #expect(
            findings(20) { $0 < 7 ? $0 : $0 + 1 } == [
                AcknowledgementFinding(fault: .tooHigh, count: 8, difference: 1, lastCorrect: 6, firstWrong: 7)
            ]
        )
    }

    @Test func `each additional stanza that a peer overcounts is reported`() {
        let found = findings(9) { $0 + $0 / 3 }
        #expect(found.map(\.firstWrong) == [3, 6, 9])
        #expect(found.map(\.difference) == [1, 2, 3])
    }

    @Test func `a peer whose count stays too low is reported at the first missing stanza`() {
        #expect(
            findings(20) { $0 < 7 ? $0 : $0 - 1 } == [
                AcknowledgementFinding(fault: .tooLow, count: 8, difference: 1, lastCorrect: 6, firstWrong: 7)
            ]
        )
    }

    @Test func `a late count that catches up causes no finding`() {
        #expect(findings(100) { $0 - min(1, $0 % 3) }.isEmpty)
    }

    @Test func `repeated equal counts without new stanzas cause no finding`() {
        var ledger = StreamManagementLedger(startingAt: 0)
        for _ in 0..<2 { ledger.pass() }
        for _ in 0..<10 {
            ledger.request()
            #expect(ledger.acknowledge(1).finding == nil)
        }
    }

    @Test func `a low count causes no finding if the peer also acknowledges without a request`() {
        var ledger = StreamManagementLedger(startingAt: 0)
        ledger.pass()
        _ = ledger.acknowledge(0)
        for number: UInt32 in 1...50 {
            ledger.pass()
            ledger.request()
            #expect(ledger.acknowledge(number - 1).finding == nil)
        }
    }

    @Test func `low counts cause no finding while several requests are unanswered`() {
        var ledger = StreamManagementLedger(startingAt: 0)
        for number: UInt32 in 1...50 {
            ledger.pass()
            ledger.request()
            if number > 1 { #expect(ledger.acknowledge(number - 1).finding == nil) }
        }
    }

    @Test func `a decreasing count is reported, a resumption after lost stanzas is not`() {
        var ledger = StreamManagementLedger(startingAt: 0)
        for _ in 0..<5 { ledger.pass() }
        #expect(ledger.acknowledge(4).finding == nil)
        #expect(
            ledger.acknowledge(2).finding
                == AcknowledgementFinding(fault: .backwards, count: 2, difference: 2, lastCorrect: 4, firstWrong: 5)
        )
        #expect(ledger.acknowledge(4, isAnswer: false).finding == nil)
        ledger.resume()
        ledger.pass()
        ledger.request()
        #expect(ledger.acknowledge(5).finding == nil)
    }

    @Test func `a receiver's count includes injected stanzas and excludes dropped ones`() {
        var ledger = StreamManagementLedger(startingAt: 0)
        ledger.pass()
        ledger.inject()
        ledger.drop()
        ledger.request()
        #expect(ledger.acknowledge(2).finding == nil)
        ledger.request()
        #expect(ledger.acknowledge(3).finding?.fault == .tooHigh)
    }
}
