/// A server, client or tool of a test failed. The text contains the expectation and the output.
public struct KitError: Error, CustomStringConvertible, Sendable {
    /// Words for whoever reads the failed test.
    public let description: String

    /// An error with the words given.
    public init(_ description: String) {
        self.description = description
    }
}
