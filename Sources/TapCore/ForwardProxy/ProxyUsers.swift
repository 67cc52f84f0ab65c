/// The users that may connect through xmpptap as a proxy, and their passwords.
package struct ProxyUsers: Sendable {
    /// The reason why a text does not contain users.
    package struct Fault: Error, Sendable, Hashable {
        /// The number of the line, from 1; nil if the whole text is at fault.
        package let line: Int?
        /// The problem and the expected form, as a human-readable clause.
        package let message: String
    }

    /// RFC 1929 transmits the lengths of names and passwords in one byte.
    private static let maximumBytes = 255

    private let passwords: [[UInt8]: [UInt8]]

    /// Parses lines of the form `USER:PASSWORD`. Empty lines and lines that begin with `#` are ignored.
    package init(parsing text: String) throws(Fault) {
        var passwords: [[UInt8]: [UInt8]] = [:]
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let line = line.hasSuffix("\r") ? line.dropLast() : line
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            let parts = line.utf8.split(separator: 0x3A, maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, parts.allSatisfy({ 1...Self.maximumBytes ~= $0.count }) else {
                throw Fault(
                    line: index + 1,
                    message: "write USER:PASSWORD, each with 1 to \(Self.maximumBytes) bytes"
                )
            }
            guard passwords.updateValue(Array(parts[1]), forKey: Array(parts[0])) == nil else {
                throw Fault(line: index + 1, message: "the user has two passwords; leave one out")
            }
        }
        guard !passwords.isEmpty else { throw Fault(line: nil, message: "no users; write a line USER:PASSWORD") }
        self.passwords = passwords
    }

    /// Returns whether the password is that of the user. The duration does not depend on where two passwords differ.
    func accept(_ user: some Sequence<UInt8>, _ password: some Sequence<UInt8>) -> Bool {
        let given = Array(password)
        let expected = passwords[Array(user)]
        var difference: UInt8 = expected == nil || expected?.count != given.count ? 1 : 0
        let compared = expected ?? given
        for index in given.indices {
            difference |= given[index] ^ (index < compared.count ? compared[index] : 0)
        }
        return difference == 0
    }
}
