/// A queue of outputs. Its memory is reused after the last output was returned.
struct Outputs<Output> {
    private var list: [Output] = []
    private var given = 0

    mutating func append(_ output: Output) { list.append(output) }

    mutating func append(contentsOf outputs: [Output]) { list += outputs }

    /// Returns the next output; nil if none is left.
    mutating func next() -> Output? {
        guard given < list.count else {
            if given > 0 { list.removeAll(keepingCapacity: true) }
            given = 0
            return nil
        }
        given += 1
        return list[given - 1]
    }
}
