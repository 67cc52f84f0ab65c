internal import Glibc

/// A text that equals only texts with the same bytes.
///
/// Swift's texts are equal if their characters are, as in `é` and `e` with an accent. A store must keep texts as they were sent.
struct ExactText: Hashable {
    private(set) var text: String

    init(_ text: String) {
        self.text = text
        self.text.makeContiguousUTF8()
    }

    static func == (one: ExactText, other: ExactText) -> Bool {
        one.withBytes { one in
            other.withBytes { other in
                // elementsEqual compares byte by byte.
                guard one.count == other.count else { return false }
                guard let start = one.baseAddress, let otherStart = other.baseAddress else { return true }
                return memcmp(start, otherStart, one.count) == 0
            }
        }
    }

    func hash(into hasher: inout Hasher) { withBytes { hasher.combine(bytes: UnsafeRawBufferPointer($0)) } }

    private func withBytes<Value>(_ body: (UnsafeBufferPointer<UInt8>) -> Value) -> Value {
        text.utf8.withContiguousStorageIfAvailable(body) ?? Array(text.utf8).withUnsafeBufferPointer(body)
    }
}
