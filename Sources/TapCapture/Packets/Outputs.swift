/// The outputs of an input, returned one by one. Emptied after the last one, so that its memory is reused.
struct Outputs<Output> {
    private var list: [Output] = []
    private var given = 0

    mutating func append(_ output: Output) { list.append(output) }

    mutating func append(contentsOf outputs: [Output]) { list += outputs }

    /// The next one; nil until more was added.
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
