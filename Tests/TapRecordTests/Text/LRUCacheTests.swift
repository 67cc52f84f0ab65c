import Testing

@testable import TapRecord

/// A bounded cache with approximate LRU eviction.
@Suite struct LRUCacheTests {
    @Test func `The cache never exceeds its capacity and keeps values in use`() {
        var cache = LRUCache<Int, Int>(capacity: 8)
        for number in 0..<1000 {
            cache.update(number, default: 0) { $0 += 1 }
            cache.update(-1, default: 0) { $0 += 1 }
            #expect(cache.count <= 8)
        }
        #expect(cache.update(-1, default: 0) { $0 } == 1000)
    }

    @Test func `A value survives half the capacity of accesses to other keys`() {
        var cache = LRUCache<Int, Int>(capacity: 8)
        cache.update(0, default: 7) { $0 += 1 }
        for number in 1...4 { cache.update(number, default: 0) { _ in } }
        #expect(cache.contains(0) && cache.update(0, default: 0) { $0 } == 8)
        for number in 5...12 { cache.update(number, default: 0) { _ in } }
        #expect(!cache.contains(0) && cache.update(0, default: 1) { $0 } == 1)
    }
}
