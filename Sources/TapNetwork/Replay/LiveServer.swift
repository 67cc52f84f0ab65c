package import NIOCore
package import TapCore
package import TapSecurity
internal import XMPPCore

/// The live server of a replay or script.
package struct LiveServer: Sendable {
    /// The server's address.
    package internal(set) var address: ServerAddress
    /// Time limit of the connection attempt, and of each step of a login.
    let timeout: TimeAmount
    let cryptography: any Cryptography
    let tls: TLSContext
    /// Whether a session without TLS is refused although the server is on this machine: the caller says which
    /// certificate the server must have.
    let requiresTLS: Bool
    /// Whether accounts are created before the login (XEP-0077).
    var registers: Bool

    /// Creates a server.
    ///
    /// - Parameters:
    ///   - address: The server's address.
    ///   - tls: How its certificate is verified.
    ///   - timeout: Time limit of the connection attempt, and of each step of a login; default 10 seconds.
    ///   - registers: Whether to create accounts before the login (XEP-0077); default false.
    ///   - cryptography: Digests and random bytes.
    /// - Throws: ``TLSContextError`` if a certificate file cannot be used.
    package init(
        _ address: ServerAddress,
        tls options: ServerLegTLS = ServerLegTLS(),
        timeout: TimeAmount = .seconds(10),
        registers: Bool = false,
        cryptography: any Cryptography
    ) throws {
        self.address = address
        self.timeout = timeout
        self.registers = registers
        self.cryptography = cryptography
        requiresTLS = options.trust != .system || !options.pins.isEmpty
        tls = try TLSContext(options)
    }
}

/// An account at the live server, and the parameters of its session.
struct LiveAccount: Sendable {
    /// The account's bare JID.
    var jid: JID
    /// The account's password in clear text.
    var password: String
    /// The resource to request; nil lets the server assign one.
    var resource: String?
    /// The `xml:lang` of the stream; nil omits it.
    var language: String?
    /// The session to resume; if the server cannot resume it, a resource is bound.
    var resumption: ClientSession.Resumption?
}

/// Why a client's session ended.
enum LiveEnd: Sendable, Hashable {
    /// Both streams were closed.
    case closed
    /// The server cannot be reached; with the reason, as a line for users.
    case unreachable(String)
    /// The server's certificate is not trusted; with the reason, as a line for users.
    case untrusted(String)
    /// A failure before or after the login.
    case failed(ClientFault)
}
