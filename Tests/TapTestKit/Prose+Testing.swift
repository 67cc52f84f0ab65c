public import TapRecord

// Tests say what stands in the words; the program cannot.
extension Prose {
    /// The words as a text.
    public var description: String { "\(self)" }
}

extension Record {
    /// The message as a text.
    public var words: String? { message?.description }
}
