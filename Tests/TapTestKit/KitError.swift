/// A server, client or tool of a test did not do what the test needs of it. The text says what, and what it printed.
public struct KitError: Error, CustomStringConvertible, Sendable {
    /// Words for whoever reads the failed test.
    public let description: String

    /// An error with the words given.
    public init(_ description: String) {
        self.description = description
    }
}
