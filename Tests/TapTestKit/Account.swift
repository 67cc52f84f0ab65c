/// An account of a test server.
package struct Account: Equatable, Sendable {
    /// The local part of its JID.
    package let user: String
    /// The domain part of its JID.
    package let domain: String
    /// The password.
    package let password: String

    /// Creates an account; the domain is localhost by default.
    package init(_ user: String, domain: String = "localhost", password: String) {
        self.user = user
        self.domain = domain
        self.password = password
    }

    /// The bare JID.
    package var jid: String { "\(user)@\(domain)" }

    /// The first of the two accounts that every test server has.
    package static let juliet = Account("juliet", password: "Capulet-1597")
    /// The second of the two accounts that every test server has.
    package static let romeo = Account("romeo", password: "Montague-1597")
}
