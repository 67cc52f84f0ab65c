/// A server, client or tool of a test failed. The text contains the expectation and the output.
package struct KitError: Error, CustomStringConvertible, Sendable {
    /// Words for whoever reads the failed test.
    package let description: String

    /// An error with the words given.
    package init(_ description: String) {
        self.description = description
    }
}
