/// A stack whose lowest `inlineCount` elements need no memory of their own.
///
/// What a scanner keeps of an ordinary stanza fits in place: no allocation, and none of the checks that writing to an
/// array costs. What does not fit goes to an array.
struct SmallStack<let inlineCount: Int, Element: BitwiseCopyable> {
    private(set) var count = 0
    private var inline: InlineArray<inlineCount, Element>
    private var overflow: [Element] = []

    /// An empty stack; `filler` stands in the places that are not used.
    init(filler: Element) {
        inline = InlineArray(repeating: filler)
    }

    @inline(__always)
    subscript(index: Int) -> Element {
        get { index < inlineCount ? inline[index] : overflow[index &- inlineCount] }
        set {
            if index < inlineCount { inline[index] = newValue } else { overflow[index &- inlineCount] = newValue }
        }
    }

    @inline(__always)
    mutating func append(_ element: Element) {
        if count < inlineCount { inline[count] = element } else { overflow.append(element) }
        count &+= 1
    }

    /// Takes away what lies above the lowest `remaining` elements.
    @inline(__always)
    mutating func truncate(to remaining: Int) {
        guard remaining < count else { return }
        if count > inlineCount { overflow.removeLast(count &- max(remaining, inlineCount)) }
        count = max(0, remaining)
    }

    /// Takes away everything; what an unusual item took is given back.
    @inline(__always)
    mutating func removeAll() {
        if count > inlineCount { overflow = [] }
        count = 0
    }
}
