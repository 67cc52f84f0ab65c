import Testing

@testable import TapCore
@testable import TapStreamManagement

/// Tests that stream management ledgers are passed by value from a session to the session that resumes it.
@Suite struct ResumptionLedgerTests {
    private let table = ResumptionTable()

    private func key(_ id: String) -> ResumptionTable.Key { table.key(id: id, account: "juliet@example.org") }

    private func enable(_ key: ResumptionTable.Key, session: UInt64 = 1) {
        table.enable(
            key,
            ResumptionTable.Suspended(jid: "juliet@example.org/a", session: session, client: nil),
            seconds: 60
        )
    }

    /// Returns the ledgers of a session in which `dropped` stanzas of the client were dropped.
    private func ledgers(dropped: Int = 1) -> StreamManagementLedgers {
        var ledgers = StreamManagementLedgers()
        ledgers.send = StreamManagementLedger(startingAt: 0)
        ledgers.recv = StreamManagementLedger(startingAt: 0)
        for _ in 0..<dropped { ledgers.send.drop() }
        return ledgers
    }

    /// Returns the result of a claim as text; for ledgers, the number of stanzas that the client sent.
    private func claim(_ key: ResumptionTable.Key, by session: UInt64 = 2, at second: Int64 = 0) -> String {
        switch table.claim(key, by: session, at: second * 1_000_000_000) {
        case .unknown: "unknown"
        case .ready(let ledgers): "\(ledgers.send.sent)"
        case .connected(let session): "connected \(session)"
        case .unlisted: "unlisted"
        case .lost: "lost"
        }
    }

    @Test func `the ledgers of a suspended session are kept until it is resumed`() {
        let key = key("a")
        #expect(claim(key) == "unknown")
        enable(key)
        table.suspend(key, of: 1, at: 0, leaving: ledgers(dropped: 3))
        #expect(table.ledgerByteCount > 0)
        #expect(claim(key) == "3")
        // A failed resumption removes nothing.
        #expect(claim(key, by: 3) == "3")
        #expect(table.resume(key, by: 3, at: 0)?.session == 1)
        #expect(table.ledgerByteCount == 0)
        #expect(claim(key, by: 3) == "unknown")
        #expect(claim(key, by: 4) == "unknown")
    }

    @Test func `a connected session blocks a resumption only if its counts differ`() {
        let key = key("a")
        enable(key)
        #expect(claim(key) == "unknown")
        #expect(table.diverge(key, of: 7) == nil)
        #expect(claim(key) == "unknown")
        #expect(table.diverge(key, of: 1) == nil)
        #expect(claim(key) == "connected 1" && claim(key, by: 1) == "unknown")
        table.suspend(key, of: 1, at: 0, leaving: ledgers(dropped: 2))
        #expect(claim(key) == "2")
        _ = table.resume(key, by: 2, at: 0)
        #expect(claim(key, by: 3) == "connected 2")
        // The end of the old connection has no effect.
        table.suspend(key, of: 1, at: 0, leaving: ledgers(dropped: 9))
        #expect(claim(key, by: 2) == "unknown")
    }

    @Test func `a session suspended without ledgers has no counts to translate`() {
        let key = key("a")
        enable(key)
        table.suspend(key, of: 1, at: 0)
        #expect(claim(key) == "unknown")
    }

    @Test(arguments: [(0, "unknown"), (1, "lost")])
    func `an expired session with different counts is remembered as lost`(dropped: Int, outcome: String) {
        let key = key("a")
        enable(key)
        table.suspend(key, of: 1, at: 0, leaving: ledgers(dropped: dropped))
        #expect(claim(key, at: 60) == "\(dropped)")
        #expect(claim(key, at: 61) == outcome)
        #expect(table.count == 0 && table.ledgerByteCount == 0)
        // A session that was closed properly cannot be resumed at all.
        let other = self.key("b")
        enable(other)
        table.suspend(other, of: 1, at: 0, leaving: ledgers(dropped: dropped))
        table.end(other, of: 1)
        #expect(claim(other) == "unknown")
    }

    @Test func `if the table is full, the oldest ledgers are removed and remembered as lost`() {
        var large = ledgers()
        for number: UInt16 in 0..<300 {
            large.recv.drop(StreamManagementLedger.Mark(fingerprint: number))
            large.recv.pass()
        }
        let count = ResumptionTable.ledgerByteCapacity / large.byteCount + 100
        let keys = (0..<count).map { key("\($0)") }
        for key in keys {
            enable(key)
            table.suspend(key, of: 1, at: 0, leaving: large)
        }
        #expect(table.ledgerByteCount <= ResumptionTable.ledgerByteCapacity)
        #expect(claim(keys[0]) == "lost" && claim(keys[99]) == "lost")
        #expect(claim(keys[count - 1]) == "1")
        #expect(table.count == count - 100)
    }

    @Test func `a session that does not fit into the table is remembered as lost when it is suspended`() {
        for number in 0..<ResumptionTable.capacity { enable(key("\(number)")) }
        enable(key("more"))
        table.suspend(key("more"), of: 1, at: 0, leaving: ledgers())
        #expect(claim(key("more")) == "lost")
    }

    @Test func `lost sessions are remembered up to a limit, and the oldest are forgotten first`() {
        let keys = (0..<(ResumptionTable.lostCapacity + 10)).map { key("\($0)") }
        for key in keys { table.suspend(key, of: 1, at: 0, leaving: ledgers()) }
        #expect(claim(keys[9]) == "unknown" && claim(keys[10]) == "lost")
        #expect(claim(keys[keys.count - 1]) == "lost")
    }
}
