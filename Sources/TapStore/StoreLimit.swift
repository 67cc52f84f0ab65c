/// The limits of a store: older rows are deleted.
package struct StoreLimit: Sendable, Hashable {
    /// The age at which rows are deleted; nil keeps them.
    package var age: Duration?
    /// The number of bytes above which the oldest rows are deleted; nil for no limit.
    package var bytes: Int64?

    package init(age: Duration? = nil, bytes: Int64? = nil) {
        self.age = age
        self.bytes = bytes
    }

    /// Whether nothing is deleted.
    package var isEmpty: Bool { age == nil && bytes == nil }
}
