/// A stack that keeps its places when elements leave it: going down costs nothing, and after the first few stanzas
/// going up allocates nothing.
///
/// It cannot be copied, so that no element that is added asks who else has the places.
struct ReusedArray<Element: BitwiseCopyable>: ~Copyable {
    /// Nothing before the first element.
    private var places: UnsafeMutablePointer<Element>?
    private var capacity = 0
    private(set) var count = 0

    init() {}

    deinit { places?.deallocate() }

    /// The element at `index`, which is below ``count``.
    @inline(__always)
    subscript(index: Int) -> Element {
        get {
            guard let places, index >= 0, index < count else { preconditionFailure("no such element") }
            return places[index]
        }
        set {
            guard let places, index >= 0, index < count else { preconditionFailure("no such element") }
            places[index] = newValue
        }
    }

    /// The elements.
    var elements: Span<Element> {
        @_lifetime(borrow self)
        @inline(__always)
        get {
            let span = UnsafeBufferPointer(start: places, count: count).span
            return _overrideLifetime(span, borrowing: self)
        }
    }

    @inline(__always)
    mutating func append(_ element: Element) {
        if count == capacity { grow() }
        guard let places else { return }
        (places + count).initialize(to: element)
        count &+= 1
    }

    private mutating func grow() {
        let larger = max(8, capacity &* 2)
        let new = UnsafeMutablePointer<Element>.allocate(capacity: larger)
        if let places {
            new.moveInitialize(from: places, count: count)
            places.deallocate()
        }
        places = new
        capacity = larger
    }

    /// Takes away what lies above the lowest `remaining` elements.
    @inline(__always)
    mutating func truncate(to remaining: Int) { count = max(0, min(count, remaining)) }

    /// Takes away everything; the places an unusual item took are given back.
    @inline(__always)
    mutating func removeAll() {
        count = 0
        if capacity > 64 { giveBack() }
    }

    private mutating func giveBack() {
        places?.deallocate()
        places = nil
        capacity = 0
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
