/// An account of a test server.
public struct Account: Equatable, Sendable {
    /// The local part of its JID.
    public let user: String
    /// The domain part of its JID.
    public let domain: String
    /// The password.
    public let password: String

    /// An account; the domain is localhost unless given.
    public init(_ user: String, domain: String = "localhost", password: String) {
        self.user = user
        self.domain = domain
        self.password = password
    }

    /// The bare JID.
    public var jid: String { "\(user)@\(domain)" }

    /// The first of the two accounts that every test server has.
    public static let juliet = Account("juliet", password: "Capulet-1597")
    /// The second of the two accounts that every test server has.
    public static let romeo = Account("romeo", password: "Montague-1597")
}
