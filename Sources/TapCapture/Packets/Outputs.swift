/// A queue of outputs. Its memory is reused after the last output was returned.
struct Outputs<Output> {
    private var list: [Output] = []
    private var returned = 0

    mutating func append(_ output: Output) { list.append(output) }

    mutating func append(contentsOf outputs: [Output]) { list += outputs }

    /// Returns the next output; nil if none is left.
    mutating func next() -> Output? {
        guard returned < list.count else {
            if returned > 0 { list.removeAll(keepingCapacity: true) }
            returned = 0
            return nil
        }
        returned += 1
        return list[returned - 1]
    }
}
