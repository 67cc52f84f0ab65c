/// A stack that keeps its places when elements leave it: going down costs nothing, and after the first few stanzas
/// going up allocates nothing.
struct ReusedArray<Element: BitwiseCopyable> {
    private var places: [Element] = []
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

/// A growing run of plain values in unmanaged memory: the owner calls `deallocate`.
struct RawList<Value: BitwiseCopyable> {
    private var base: UnsafeMutablePointer<Value>
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
        base = .allocate(capacity: capacity)
        self.capacity = capacity
    }

    func deallocate() { base.deallocate() }

    /// Empties the list and gives back what a large item made it take.
    mutating func removeAll() {
        count = 0
        guard capacity &* MemoryLayout<Value>.stride > 64 << 10 else { return }
        base.deallocate()
        capacity = 64
        base = .allocate(capacity: capacity)
    }

    @inline(__always)
    subscript(index: Int) -> Value {
        get {
            precondition(index >= 0 && index < count, "index of a list that did not give it out")
            return base[index]
        }
        nonmutating _modify {
            precondition(index >= 0 && index < count, "index of a list that did not give it out")
            yield &base[index]
        }
    }

    func buffer(_ range: Range<Int>) -> UnsafeBufferPointer<Value> {
        let range = range.clamped(to: 0..<count)
        return UnsafeBufferPointer(start: base + range.lowerBound, count: range.count)
    }

    @inline(__always)
    mutating func append(_ value: Value) {
        if count == capacity { grow(to: count + 1) }
        (base + count).initialize(to: value)
        count &+= 1
    }

    @inline(__always)
    mutating func append(_ pointer: UnsafePointer<Value>, _ more: Int) {
        guard more > 0 else { return }
        if count + more > capacity { grow(to: count + more) }
        (base + count).initialize(from: pointer, count: more)
        count &+= more
    }

    private mutating func grow(to needed: Int) {
        let larger = max(needed, capacity * 2)
        let new = UnsafeMutablePointer<Value>.allocate(capacity: larger)
        new.moveInitialize(from: base, count: count)
        base.deallocate()
        base = new
        capacity = larger
    }
}
