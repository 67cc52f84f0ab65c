import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

/// The order of requests and responses (XEP-0124 §14).
struct BOSHOrderTests {
    private static func at(_ milliseconds: Int64) -> Run.Instant {
        Run.Instant(time: Timestamp(nanoseconds: 0), monotonic: milliseconds * 1_000_000)
    }

    private static func text(_ events: [BOSHOrder.Event]) -> [String] {
        events.map { event in
            switch event {
            case .request(let rid, _, _): "request \(rid)"
            case .response(let rid, _, _): "response \(rid)"
            case .repeated(let rid, _): "repeated \(rid)"
            case .missing(let direction, let rids, _): "missing \(direction) \(rids.lowerBound)-\(rids.upperBound)"
            case .outside(let rid, let answer, _): "outside \(rid)\(answer == nil ? "" : " refused")"
            }
        }
    }

    /// An order with functions that return events as text.
    private struct Scene {
        var order: BOSHOrder
        var now: Int64 = 0

        init(from rid: UInt64 = 1) { order = BOSHOrder(from: rid) }

        mutating func request(_ rid: UInt64) -> [String] {
            BOSHOrderTests.text(order.request(rid, BOSHBody(), at: BOSHOrderTests.at(now)))
        }

        mutating func response(_ rid: UInt64, isTerminate: Bool = false) -> [String] {
            var body = BOSHBody()
            body.isTerminate = isTerminate
            return BOSHOrderTests.text(order.response(to: rid, .body(body), at: BOSHOrderTests.at(now)))
        }

        mutating func release(after milliseconds: Int64) -> [String] {
            now += milliseconds
            return BOSHOrderTests.text(order.release(at: BOSHOrderTests.at(now)))
        }

        mutating func finish() -> [String] { BOSHOrderTests.text(order.finish(at: BOSHOrderTests.at(now))) }
    }

    @Test("Requests wait for earlier ones, and responses for those to earlier requests")
    func ordersBodies() {
        var scene = Scene()
        #expect(scene.request(1) == ["request 1"])
        #expect(scene.request(3) == [])
        #expect(scene.request(2) == ["request 2", "request 3"])
        #expect(scene.response(2) == [])
        #expect(scene.response(3) == [])
        #expect(scene.response(1) == ["response 1", "response 2", "response 3"])
        #expect(scene.order.waitingCount == 0)
    }

    @Test("A repeated request is reported, and the copy of its response is not read again")
    func findsRepeats() {
        var scene = Scene()
        #expect(scene.request(1) == ["request 1"])
        #expect(scene.request(1) == ["repeated 1"])
        #expect(scene.response(1) == ["response 1"])
        #expect(scene.response(1) == [])
        #expect(scene.request(1) == ["repeated 1"])
        #expect(scene.response(1) == [])
        #expect(scene.request(3) == [])
        #expect(scene.request(3) == ["repeated 3"])
    }

    @Test("A response that was lost is taken from the copy that the repeated request gets")
    func usesCopies() {
        var scene = Scene()
        _ = scene.request(1)
        _ = scene.request(2)
        #expect(scene.response(2) == [])
        #expect(scene.request(1) == ["repeated 1"])
        #expect(scene.response(1) == ["response 1", "response 2"])
    }

    @Test("A response does not wait long for one that the server holds")
    func limitsWaiting() {
        var scene = Scene()
        _ = scene.request(1)
        _ = scene.request(2)
        #expect(scene.response(2) == [])
        #expect(scene.release(after: 1_000) == [])
        #expect(scene.release(after: 1_000) == ["response 2"])
        #expect(scene.order.deadline == nil)
        #expect(scene.response(1) == ["response 1"])
        _ = scene.request(3)
        #expect(scene.response(3) == ["response 3"])
    }

    @Test("A gap is closed as missing if the server answers a later request")
    func closesGaps() {
        var scene = Scene()
        _ = scene.request(1)
        #expect(scene.request(3) == [])
        #expect(scene.request(6) == [])
        #expect(scene.response(3) == ["missing send 2-2", "request 3"])
        #expect(scene.response(1) == ["response 1", "response 3"])
        #expect(scene.response(6) == ["missing send 4-5", "request 6", "response 6"])
        #expect(scene.request(7) == ["request 7"])
        #expect(scene.response(7) == ["response 7"])
    }

    @Test("A request that is too far ahead and refused does not move the window")
    func refusesDistantRequests() {
        var scene = Scene()
        _ = scene.request(1)
        #expect(scene.request(BOSHBody.maximumRID) == [])
        #expect(scene.response(BOSHBody.maximumRID, isTerminate: true) == ["outside 9007199254740991 refused"])
        #expect(scene.response(1) == ["response 1"])
        #expect(scene.request(2) == ["request 2"])
        #expect(scene.response(9, isTerminate: true) == ["outside 9 refused"])
    }

    @Test("The number of waiting requests and responses is bounded")
    func boundsWaiting() {
        var scene = Scene()
        scene.order.window = 1_000_000
        #expect(scene.order.window == BOSHOrder.maximumWindow)
        scene.order.window = 2
        _ = scene.request(1)
        #expect(scene.request(3) == [] && scene.request(4) == [])
        #expect(scene.request(5) == ["outside 5"])
        #expect(scene.finish() == ["missing send 2-2", "request 3", "request 4"])
        var large = BOSHBody()
        large.items = [[UInt8](repeating: 0x20, count: BOSHOrder.waitingBytes + 1)]
        #expect(Self.text(scene.order.request(6, large, at: Self.at(0))) == ["outside 6"])
        var waiting: [String] = []
        for rid in 5..<40 as Range<UInt64> {
            _ = scene.request(rid)
            waiting += scene.response(rid)
            #expect(scene.order.waitingCount <= 3)
        }
        #expect(waiting.contains("missing recv 1-1") && waiting.contains("response 30"))
    }

    @Test("In any order of arrival each body is returned at most once", arguments: 0..<200)
    func survivesDisorder(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        var scene = Scene()
        var seen: [String: Int] = [:]
        for _ in 0..<60 {
            let rid = UInt64.random(in: 1...12, using: &random)
            let events =
                switch Int.random(in: 0..<8, using: &random) {
                case 0: scene.release(after: 3_000)
                case 1...4: scene.request(rid)
                default: scene.response(rid, isTerminate: Int.random(in: 0..<6, using: &random) == 0)
                }
            for event in events where event.hasPrefix("request") || event.hasPrefix("response") {
                seen[event, default: 0] += 1
            }
        }
        for event in scene.finish() where event.hasPrefix("re") { seen[event, default: 0] += 1 }
        #expect(seen.filter { !$0.key.hasPrefix("repeated") }.values.allSatisfy { $0 == 1 })
    }
}
