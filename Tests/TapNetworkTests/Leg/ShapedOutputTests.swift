import Testing

@testable import TapCore
@testable import TapNetwork

/// Tests the pieces of a shaped leg's output, and their times.
struct ShapedOutputTests {
    private static let second: Int64 = 1_000_000_000

    /// Returns the pieces of the waiting data, each with its time in nanoseconds since `start`.
    private static func pieces(_ output: inout ShapedOutput, from start: Int64 = 7) -> [(at: Int64, text: String)] {
        var now = start
        var pieces: [(Int64, String)] = []
        while let (piece, next) = output.takePiece(at: now) {
            if !piece.isEmpty { pieces.append((now - start, String(decoding: piece, as: UTF8.self))) }
            guard let next else { break }
            now = max(now, next)
        }
        return pieces
    }

    private static func append(_ text: String, to output: inout ShapedOutput) {
        let bytes = Array(text.utf8)
        output.append(bytes.span)
    }

    @Test func `Slices are sent one at a time and in order`() {
        var output = ShapedOutput(LinkShape(slice: 2, sliceEvery: 7))
        Self.append("abc", to: &output)
        Self.append("de", to: &output)
        #expect(output.count == 5)
        let pieces = Self.pieces(&output)
        #expect(pieces.map(\.text) == ["ab", "cd", "e"] && pieces.map(\.at) == [0, 7, 14])
        #expect(output.count == 0 && !output.isOver)
    }

    @Test func `After its shape is removed, an output still sends its waiting bytes in that shape`() {
        var output = ShapedOutput(LinkShape(slice: 1, sliceEvery: 7))
        Self.append("ab", to: &output)
        output.change(to: nil)
        #expect(!output.isOver)
        #expect(Self.pieces(&output).map(\.text) == ["a", "b"])
        #expect(output.isOver)
    }

    @Test func `A rate applies to many small writes and to one large write`() {
        for writes in [1, 100] {
            var output = ShapedOutput(LinkShape(bytesPerSecond: 2000))
            for _ in 0..<writes { Self.append(String(repeating: "x", count: 10_000 / writes), to: &output) }
            let pieces = Self.pieces(&output)
            #expect(pieces.map(\.text.count).reduce(0, +) == 10_000)
            // The pause after the last piece does not delay that piece.
            #expect(pieces.last?.at == 5 * Self.second - Self.second / 20)
            #expect(pieces.allSatisfy { $0.text.count == 100 })
        }
    }

    @Test func `With a rate and a slice interval, the slower one applies`() {
        var output = ShapedOutput(LinkShape(bytesPerSecond: 10, slice: 1, sliceEvery: 1))
        Self.append("abc", to: &output)
        #expect(Self.pieces(&output).map(\.at) == [0, Self.second / 10, Self.second / 5])
        output = ShapedOutput(LinkShape(bytesPerSecond: 1000, slice: 1, sliceEvery: Self.second))
        Self.append("abc", to: &output)
        #expect(Self.pieces(&output).map(\.at) == [0, Self.second, 2 * Self.second])
    }

    @Test func `A rate ignores idle time, and compensates for a late timer`() {
        var output = ShapedOutput(LinkShape(bytesPerSecond: 100, slice: 100))
        Self.append(String(repeating: "a", count: 100), to: &output)
        #expect(Self.pieces(&output, from: 0).map(\.at) == [0])
        Self.append(String(repeating: "b", count: 300), to: &output)
        // Ten seconds later, the first piece is sent at once, and then one per second.
        #expect(Self.pieces(&output, from: 10 * Self.second).map(\.at) == [0, Self.second, 2 * Self.second])
        Self.append(String(repeating: "c", count: 300), to: &output)
        _ = output.takePiece(at: 20 * Self.second)
        // The timer is two seconds late: both pieces are sent at once.
        #expect(Self.pieces(&output, from: 22 * Self.second).map(\.at) == [0, 0])
        Self.append(String(repeating: "d", count: 300), to: &output)
        _ = output.takePiece(at: 40 * Self.second)
        output.rest()
        #expect(Self.pieces(&output, from: 50 * Self.second).map(\.at) == [0, Self.second])
    }

    @Test func `A new shape applies to later data, and nil ends shaping after the waiting data`() {
        var output = ShapedOutput(LinkShape(slice: 1, sliceEvery: 5))
        Self.append("ab", to: &output)
        output.change(to: LinkShape(slice: 2, sliceEvery: 1))
        Self.append("cdef", to: &output)
        output.change(to: nil)
        #expect(!output.isOver)
        Self.append("ghijk", to: &output)
        let pieces = Self.pieces(&output)
        #expect(pieces.map(\.text) == ["a", "b", "cd", "ef", "ghijk"] && pieces.map(\.at) == [0, 5, 10, 11, 12])
        #expect(output.isOver)
        output.change(to: LinkShape(slice: 1))
        #expect(!output.isOver)
        Self.append("lm", to: &output)
        #expect(Self.pieces(&output).map(\.text) == ["l", "m"])
    }

    @Test func `All waiting data can be taken at once and in order`() {
        var output = ShapedOutput(LinkShape(slice: 1))
        Self.append("ab", to: &output)
        output.change(to: LinkShape(bytesPerSecond: 1))
        Self.append("cd", to: &output)
        _ = output.takePiece(at: 0)
        #expect(output.takeAll() == Array("bcd".utf8) && output.count == 0)
        Self.append("xy", to: &output)
        #expect(Self.pieces(&output).map(\.at) == [0, Self.second])
    }

    @Test func `A shape with zeros still sends data`() {
        var output = ShapedOutput(LinkShape(bytesPerSecond: 0, slice: 0, sliceEvery: 0))
        Self.append("ab", to: &output)
        #expect(Self.pieces(&output).map(\.text) == ["a", "b"])
    }
}
