/// An array with one owner. It cannot be copied, so that changes need no uniqueness check.
///
/// The only container of xmpptap with manual memory management. It checks every index and range, in release builds too,
/// and keeps its memory when elements are removed: after the first few items of a stream it does not allocate any more.
package struct UniqueArray<Element: BitwiseCopyable>: ~Copyable {
    /// Nil before the first element.
    @usableFromInline var base: UnsafeMutablePointer<Element>?
    @usableFromInline var storedCount = 0
    @usableFromInline var storedCapacity = 0

    /// Creates an empty array without memory.
    @inlinable package init() {}

    /// Creates an empty array with space for `capacity` elements.
    @inlinable package init(capacity: Int) { reserve(capacity) }

    deinit { base?.deallocate() }

    /// Number of elements.
    @inlinable package var count: Int { storedCount }
    /// Number of elements that fit without another allocation.
    @inlinable package var capacity: Int { storedCapacity }
    /// Whether the array is empty.
    @inlinable package var isEmpty: Bool { storedCount == 0 }

    /// The element at `index`, which must be below ``count``.
    @inlinable
    package subscript(index: Int) -> Element {
        @inline(__always)
        get { element(index).pointee }
        @inline(__always)
        _modify { yield &element(index).pointee }
    }

    @inlinable
    @inline(__always)
    func element(_ index: Int) -> UnsafeMutablePointer<Element> {
        guard let base, index >= 0, index < storedCount else { preconditionFailure("index out of range") }
        return base + index
    }

    /// The elements, borrowed until the next change.
    @inlinable package var span: Span<Element> {
        @_lifetime(borrow self)
        @inline(__always)
        get { _overrideLifetime(UnsafeBufferPointer(start: base, count: storedCount).span, borrowing: self) }
    }

    /// Returns the elements of `range`; a part of the range beyond the end is omitted. Valid until the next change or
    /// the end of the array's life: callers must not expose the elements any longer.
    @inlinable
    @inline(__always)
    package func unsafeBuffer(_ range: Range<Int>) -> UnsafeBufferPointer<Element> {
        let range = range.clamped(to: 0..<storedCount)
        return UnsafeBufferPointer(start: base.map { $0 + range.lowerBound }, count: range.count)
    }

    /// Appends an element.
    @inlinable
    @inline(__always)
    package mutating func append(_ element: Element) {
        reserve(1)
        guard let base else { return }
        (base + storedCount).initialize(to: element)
        storedCount &+= 1
    }

    /// Appends copies of elements.
    @inlinable
    @inline(__always)
    package mutating func append(copying elements: Span<Element>) {
        reserve(elements.count)
        elements.withUnsafeBufferPointer { elements in
            guard let base, let start = elements.baseAddress else { return }
            (base + storedCount).initialize(from: start, count: elements.count)
            storedCount &+= elements.count
        }
    }

    /// Reserves space for `more` elements, growing by doubling.
    @inlinable
    @inline(__always)
    package mutating func reserve(_ more: Int) {
        if storedCapacity &- storedCount < more { grow(to: storedCount + more) }
    }

    @usableFromInline
    mutating func grow(to needed: Int) {
        let larger = max(8, needed, 2 * storedCapacity)
        let new = UnsafeMutablePointer<Element>.allocate(capacity: larger)
        if let base {
            new.moveInitialize(from: base, count: storedCount)
            base.deallocate()
        }
        base = new
        storedCapacity = larger
    }

    /// Removes all elements except the first `remaining`; does nothing if there are fewer.
    @inlinable
    @inline(__always)
    package mutating func truncate(to remaining: Int) { storedCount = max(0, min(storedCount, remaining)) }

    /// Removes the elements of `range`, which must be within the array.
    package mutating func removeSubrange(_ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= storedCount, "range out of bounds")
        guard let base, !range.isEmpty else { return }
        (base + range.lowerBound).update(from: base + range.upperBound, count: storedCount - range.upperBound)
        storedCount -= range.count
    }

    /// Removes all elements. Memory for more than `limit` elements is freed: it was needed for an unusual item.
    @inlinable
    @inline(__always)
    package mutating func removeAll(keepingCapacity limit: Int) {
        storedCount = 0
        if storedCapacity > limit { deallocate() }
    }

    @usableFromInline
    mutating func deallocate() {
        base?.deallocate()
        base = nil
        storedCapacity = 0
    }
}

// The memory belongs to the array alone.
extension UniqueArray: @unchecked Sendable where Element: Sendable {}
