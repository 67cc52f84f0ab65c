import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import TapNetwork

@Suite(.timeLimit(.minutes(1)))
struct SharedLookupTests {
    @Test func `Concurrent requests for one name share a lookup, and later requests start a new one`() async throws {
        let (asked, gate) = (Counter(), Gate())
        let lookup = SharedLookup<String, String> { question in
            asked.add()
            gate.pass()
            return "\(question)!"
        }
        let loops = Array(MultiThreadedEventLoopGroup.singleton.makeIterator())
        let first = (0..<100).map { lookup.ask("a", on: loops[$0 % loops.count]) }
        gate.open()
        for future in first { #expect(try await future.map(\.answer).get() == "a!") }
        #expect(asked.value == 1)
        #expect(try await lookup.ask("a", on: loops[0]).map(\.answer).get() == "a!")
        #expect(try await lookup.ask("b", on: loops[0]).map(\.answer).get() == "b!")
        #expect(asked.value == 3)
    }
}

private final class Counter: Sendable {
    private let count = Atomic(0)

    var value: Int { count.load(ordering: .sequentiallyConsistent) }
    func add() { count.add(1, ordering: .sequentiallyConsistent) }
}

/// Blocks threads until it is opened.
private final class Gate: Sendable {
    private let isOpen = Mutex(false)

    func open() { isOpen.withLock { $0 = true } }
    func pass() { while !isOpen.withLock({ $0 }) {} }
}
