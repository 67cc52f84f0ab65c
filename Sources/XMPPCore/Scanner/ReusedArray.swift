/// A stack that keeps its places when elements leave it: going down costs nothing, and after the first few stanzas
/// going up allocates nothing.
struct ReusedArray<Element: BitwiseCopyable> {
    private var places: [Element] = []
    /// Number of elements.
    private(set) var count = 0

    /// The element at `index`, which is below ``count``.
    @inline(__always)
    subscript(index: Int) -> Element {
        get { places[index] }
        set { places[index] = newValue }
    }

    @inline(__always)
    mutating func append(_ element: Element) {
        if count < places.count { places[count] = element } else { places.append(element) }
        count &+= 1
    }

    /// Takes away what lies above the lowest `remaining` elements.
    @inline(__always)
    mutating func truncate(to remaining: Int) { count = max(0, min(count, remaining)) }

    /// Takes away everything; the places an unusual item took are given back.
    @inline(__always)
    mutating func removeAll() {
        if places.count > 64 { places = [] }
        count = 0
    }
}
