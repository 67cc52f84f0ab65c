import TapTestKit
import Testing

@testable import TapRecord

@Suite struct SpanUnionTests {
    @Test func `Unions cover exactly the bytes of their spans, in order and without overlap`() {
        var random = SeededGenerator(seed: 29)
        for _ in 0..<2000 {
            let spans = (0..<Int.random(in: 0...8, using: &random)).map { _ in
                let start = Int.random(in: 0..<40, using: &random)
                return start..<(start + Int.random(in: 0...15, using: &random))
            }
            let unions = SpanUnion.join(spans)
            #expect(Set(unions.flatMap(\.range)) == Set(spans.flatMap { $0 }))
            #expect(SpanUnion.areSeparate(spans.count) { spans[$0] } == (unions.map(\.range) == spans))
            for (one, next) in zip(unions, unions.dropFirst()) { #expect(one.range.upperBound < next.range.lowerBound) }
            for (range, longest) in unions {
                let inside = spans.filter { !$0.isEmpty && range.contains($0.lowerBound) }
                #expect(spans[longest].count == inside.map(\.count).max())
            }
        }
    }
}
