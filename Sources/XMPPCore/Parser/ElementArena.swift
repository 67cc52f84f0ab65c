/// The flat storage of one parsed item: nodes in document order, attributes, and the bytes of all names and values.
///
/// Filled by libxml2's callbacks through raw buffers, which costs next to nothing over parsing itself where arrays and
/// objects would double it. Never changed once an ``Element`` of it is out: the parser takes a fresh arena if any
/// element still refers to the old one.
final class ElementArena {
    /// An element or a run of text.
    struct Node: BitwiseCopyable {
        /// Index of the enclosing node, -1 for the item itself.
        var parent: Int32
        /// Index behind the last node inside this one.
        var end: Int32
        var name: ByteRange
        /// Of an element.
        var uri: ByteRange
        var namespace: Namespace
        var firstAttribute: Int32
        var attributeCount: Int32
        /// The name is text, not the name of an element.
        var isText: Bool
    }

    struct Attribute: BitwiseCopyable {
        var name: ByteRange
        var uri: ByteRange
        var namespace: Namespace
        var value: ByteRange
    }

    private(set) var nodes: RawList<Node> = RawList(capacity: 16)
    private(set) var attributes: RawList<Attribute> = RawList(capacity: 16)
    private(set) var bytes: RawList<UInt8> = RawList(capacity: 512)
    private var openNode: Int32 = -1
    private var textNode: Int32 = -1

    deinit {
        nodes.deallocate()
        attributes.deallocate()
        bytes.deallocate()
    }

    func reset() {
        nodes.removeAll()
        attributes.removeAll()
        bytes.removeAll()
        openNode = -1
        textNode = -1
    }

    func append(_ pointer: UnsafePointer<UInt8>, _ count: Int) -> ByteRange {
        let start = bytes.count
        bytes.append(pointer, count)
        return ByteRange(start, bytes.count)
    }

    func begin(name: ByteRange, uri: ByteRange, namespace: Namespace) {
        textNode = -1
        let index = Int32(truncatingIfNeeded: nodes.count)
        nodes.append(
            Node(
                parent: openNode,
                end: index + 1,
                name: name,
                uri: uri,
                namespace: namespace,
                firstAttribute: Int32(truncatingIfNeeded: attributes.count),
                attributeCount: 0,
                isText: false
            )
        )
        openNode = index
    }

    func addAttribute(_ attribute: Attribute) {
        attributes.append(attribute)
        nodes[Int(openNode)].attributeCount += 1
    }

    func end() {
        textNode = -1
        guard openNode >= 0 else { return }
        nodes[Int(openNode)].end = Int32(truncatingIfNeeded: nodes.count)
        openNode = nodes[Int(openNode)].parent
    }

    /// Adds character data, joined to that which came just before.
    func addText(_ pointer: UnsafePointer<UInt8>, _ count: Int) {
        guard openNode >= 0 else { return }
        if textNode >= 0 {
            bytes.append(pointer, count)
            nodes[Int(textNode)].name.end = Int32(truncatingIfNeeded: bytes.count)
            return
        }
        textNode = Int32(truncatingIfNeeded: nodes.count)
        nodes.append(
            Node(
                parent: openNode,
                end: textNode + 1,
                name: append(pointer, count),
                uri: .empty,
                namespace: .none,
                firstAttribute: 0,
                attributeCount: 0,
                isText: true
            )
        )
    }

    /// The bytes of a range; `range` must be one this arena gave out.
    func text(_ range: ByteRange) -> String {
        String(decoding: bytes.buffer(range.range), as: UTF8.self)
    }

    func equals(_ range: ByteRange, _ text: StaticString) -> Bool {
        guard range.count == text.utf8CodeUnitCount else { return false }
        let other = text.utf8Start
        for (index, byte) in bytes.buffer(range.range).enumerated() where byte != other[index] { return false }
        return true
    }
}

/// A growing run of plain values in memory of its own, owned by hand: the owner calls `deallocate`.
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

    subscript(index: Int) -> Value {
        get {
            precondition(index >= 0 && index < count, "index of an arena that did not give it out")
            return base[index]
        }
        set {
            precondition(index >= 0 && index < count, "index of an arena that did not give it out")
            base[index] = newValue
        }
    }

    func buffer(_ range: Range<Int>) -> UnsafeBufferPointer<Value> {
        let range = range.clamped(to: 0..<count)
        return UnsafeBufferPointer(start: base + range.lowerBound, count: range.count)
    }

    mutating func append(_ value: Value) {
        if count == capacity { grow(to: count + 1) }
        (base + count).initialize(to: value)
        count &+= 1
    }

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
