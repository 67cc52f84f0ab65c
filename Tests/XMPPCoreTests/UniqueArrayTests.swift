import Testing

@testable import XMPPCore

@Suite struct UniqueArrayTests {
    private static func filled(_ count: Int) -> UniqueArray<UInt32> {
        var array = UniqueArray<UInt32>()
        for value in 0..<count { array.append(UInt32(value)) }
        return array
    }

    private static func values(_ array: borrowing UniqueArray<UInt32>) -> [UInt32] {
        (0..<array.count).map { array[$0] }
    }

    @Test func `Elements keep their values while the array grows`() {
        var array = Self.filled(1000)
        #expect(array.count == 1000)
        array[999] = 7
        array[0] &+= 5
        #expect(Self.values(array) == [5] + (1..<999) + [7])
        #expect(array.span.count == 1000 && array.span[998] == 998)
    }

    @Test func `Spans are appended after the other elements`() {
        var array = Self.filled(3)
        array.append(copying: [10, 11].span)
        array.append(copying: Span())
        #expect(Self.values(array) == [0, 1, 2, 10, 11])
    }

    @Test func `Removing elements keeps the others in order`() {
        var array = Self.filled(6)
        array.removeSubrange(1..<3)
        array.removeSubrange(4..<4)
        #expect(Self.values(array) == [0, 3, 4, 5])
        array.truncate(to: 9)
        array.truncate(to: 3)
        #expect(Self.values(array) == [0, 3, 4])
        array.truncate(to: -1)
        #expect(array.isEmpty && array.span.isEmpty)
    }

    @Test func `removeAll keeps memory up to the given capacity and frees larger memory`() {
        var array = UniqueArray<UInt32>(capacity: 100)
        array.removeAll(keepingCapacity: 100)
        #expect(array.capacity == 100)
        array.append(1)
        array.removeAll(keepingCapacity: 99)
        #expect(array.capacity == 0 && array.isEmpty)
        array.append(2)
        #expect(Self.values(array) == [2])
        #expect(UniqueArray<UInt8>(capacity: 0).capacity == 0)
    }

    @Test func `An unsafe buffer is clamped to the existing elements`() {
        let array = Self.filled(4)
        #expect(Array(array.unsafeBuffer(1..<3)) == [1, 2])
        #expect(Array(array.unsafeBuffer(2..<9)) == [2, 3])
        #expect(array.unsafeBuffer(7..<9).isEmpty && UniqueArray<UInt8>().unsafeBuffer(0..<1).isEmpty)
    }

    @Test func `An index or range out of bounds ends the program`() async {
        await #expect(processExitsWith: .failure) { _ = UniqueArray<UInt8>()[0] }
        await #expect(processExitsWith: .failure) { _ = UniqueArrayTests.filled(4)[4] }
        await #expect(processExitsWith: .failure) { _ = UniqueArrayTests.filled(4)[-1] }
        await #expect(processExitsWith: .failure) {
            var array = UniqueArrayTests.filled(4)
            array.truncate(to: 2)
            array[2] = 1
        }
        await #expect(processExitsWith: .failure) {
            var array = UniqueArrayTests.filled(4)
            array.removeSubrange(3..<5)
        }
    }
}
