import Testing

@testable import TapCore

/// Tests that a client that keeps reconnecting is distinguished from many clients of one account.
@Suite struct ReconnectWatchTests {
    @Test func `a continuing reconnect loop is reported each time its count doubles`() {
        let watch = ReconnectWatch()
        let client = ReconnectWatch.Client(account: "a@b", resource: "r", agent: nil, remote: "192.0.2.1:1")
        let told = (0..<200).compactMap { watch.recordDrop(of: client.key, at: Int64($0) * 10_000_000_000) }
        #expect(told.map(\.count) == [5, 10, 20, 40, 80, 160])
        #expect(told.last?.span == 1_590_000_000_000)
        // After a pause, a new loop begins.
        let later = (300..<306).compactMap { watch.recordDrop(of: client.key, at: Int64($0) * 10_000_000_000) }
        #expect(later.map(\.count) == [5])
        #expect(later.first?.span == 40_000_000_000)
    }

    @Test func `distant drops or drops of different clients do not form a loop, and memory is bounded`() {
        func key(_ account: String) -> ReconnectWatch.Key {
            ReconnectWatch.Client(account: account, resource: nil, agent: nil, remote: nil).key
        }
        let watch = ReconnectWatch()
        for number in 0..<20 { #expect(watch.recordDrop(of: key("a@b"), at: Int64(number) * 20_000_000_000) == nil) }
        for number in 0..<(ReconnectWatch.capacity * 3) {
            #expect(watch.recordDrop(of: key("\(number)@b"), at: 0) == nil)
            #expect(watch.count <= ReconnectWatch.capacity)
        }
        // The most recent clients are still known.
        for _ in 0..<4 { #expect(watch.recordDrop(of: key("new@b"), at: 1) == nil) }
        #expect(watch.recordDrop(of: key("new@b"), at: 1)?.count == 5)
    }
}
