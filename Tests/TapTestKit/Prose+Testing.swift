package import TapRecord

// Only tests may examine human-readable text; the program must not.
extension Prose {
    /// The prose as a text.
    package var description: String { "\(self)" }
}

extension Record {
    /// The message as a text.
    package var messageText: String? { message?.description }
}
