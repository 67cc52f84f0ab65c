package import TapRecord

// Tests may examine the words; the program cannot.
extension Prose {
    /// The words as a text.
    package var description: String { "\(self)" }
}

extension Record {
    /// The message as a text.
    package var words: String? { message?.description }
}
