/// The failure of a server, client or tool of a test. The text contains the expectation and the output.
package struct KitError: Error, CustomStringConvertible, Sendable {
    /// The text for readers of the failed test.
    package let description: String

    /// Creates an error with a text.
    package init(_ description: String) {
        self.description = description
    }
}
