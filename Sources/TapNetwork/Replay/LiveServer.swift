package import NIOCore
package import TapCore
package import TapSecurity
internal import XMPPCore

/// The server that a recording or script is played against.
package struct LiveServer: Sendable {
    /// The server's address.
    package internal(set) var endpoint: Endpoint
    /// How long a connection, and each step of a login, may take.
    let timeout: TimeAmount
    let cryptography: any Cryptography
    let tls: TLSContext
    /// Whether accounts are created before they log in (XEP-0077).
    var registers: Bool

    /// A server.
    ///
    /// - Parameters:
    ///   - tls: How its certificate is verified.
    ///   - timeout: How long a connection, and each step of a login, may take; default 10 seconds.
    ///   - registers: Create accounts before they log in (XEP-0077); default no.
    ///   - cryptography: Digests and random bytes.
    /// - Throws: ``TLSContextError`` if the file cannot be used.
    package init(
        _ endpoint: Endpoint,
        tls options: ServerLegTLS = ServerLegTLS(),
        timeout: TimeAmount = .seconds(10),
        registers: Bool = false,
        cryptography: any Cryptography
    ) throws {
        self.endpoint = endpoint
        self.timeout = timeout
        self.registers = registers
        self.cryptography = cryptography
        tls = try TLSContext(options)
    }
}

/// The account of the session.
struct LiveAccount: Sendable {
    /// A bare JID.
    var jid: JID
    /// Its password in clear.
    var password: String
    /// The resource to ask for; nil leaves it to the server.
    var resource: String?
    /// The language of the stream; nil names none.
    var language: String?
    /// The session to resume; if the server cannot, a resource is bound.
    var resumption: ClientSession.Resumption?
}

/// Why a client's session ended.
enum LiveEnd: Sendable, Hashable {
    /// Both streams were closed.
    case closed
    /// The server cannot be reached: a line for people.
    case unreachable(String)
    /// The server's certificate is not trusted: a line for people.
    case untrusted(String)
    /// The failure, before or after the login.
    case failed(ClientFault)
}
