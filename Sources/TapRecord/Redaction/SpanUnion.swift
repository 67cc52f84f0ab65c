/// Spans of a text that overlap or touch, as one.
///
/// Secrets may overlap: an attribute that is a secret may contain a URL that is another, and a part that cannot be cut out of
/// its text hides all of the text. A placeholder replaces the union of such spans, so that no part of any is shown.
enum SpanUnion {
    /// Returns the unions in ascending order, each with the index of the longest span in it, the first of several.
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
