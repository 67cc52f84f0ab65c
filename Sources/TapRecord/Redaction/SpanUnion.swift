/// Joins spans of a text that overlap or touch.
///
/// Secrets may overlap: a secret attribute may contain a URL with another secret, and a part that cannot be cut out of
/// its text hides the whole text. A placeholder replaces the union of such spans, so that all parts are hidden.
enum SpanUnion {
    /// Returns whether spans are in ascending order with gaps between them. This is true in nearly all cases: then no
    /// spans have to be joined.
    @inline(__always)
    static func areSeparate(_ count: Int, _ span: (Int) -> Range<Int>) -> Bool {
        guard count > 0 else { return true }
        var end = span(0).upperBound
        guard !span(0).isEmpty else { return false }
        for index in 1..<max(1, count) {
            let next = span(index)
            guard next.lowerBound > end, !next.isEmpty else { return false }
            end = next.upperBound
        }
        return true
    }

    /// Returns the unions in ascending order, each with the index of its longest span; the first one if several are
    /// equally long.
    static func join(_ spans: [Range<Int>]) -> [(range: Range<Int>, longest: Int)] {
        let order = spans.indices.sorted { (spans[$0].lowerBound, $0) < (spans[$1].lowerBound, $1) }
        var unions: [(range: Range<Int>, longest: Int)] = []
        unions.reserveCapacity(spans.count)
        for index in order where !spans[index].isEmpty {
            let span = spans[index]
            guard let last = unions.last, span.lowerBound <= last.range.upperBound else {
                unions.append((span, index))
                continue
            }
            let end = max(last.range.upperBound, span.upperBound)
            let longest = spans[last.longest].count < span.count ? index : last.longest
            unions[unions.count - 1] = (last.range.lowerBound..<end, longest)
        }
        return unions
    }
}
