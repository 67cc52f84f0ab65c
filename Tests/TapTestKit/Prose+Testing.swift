public import TapRecord

// Tests may examine the words; the program cannot.
extension Prose {
    /// The words as a text.
    public var description: String { "\(self)" }
}

extension Record {
    /// The message as a text.
    public var words: String? { message?.description }
}
