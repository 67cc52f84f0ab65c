/// A key for advice against a failed login or a part of it, with its values. The text, which names flags and server
/// settings, belongs to the program that shows it.
public enum Remedy: Sendable, Hashable {
    /// The usual advice for a cause.
    case usual(LoginCause)

    /// The usual advice if it is unknown whether xmpptap was used: it suggests no change to xmpptap.
    case observed(LoginCause)
    /// The user name contains the domain.
    case useLocalPart
    /// The server refused this kind of credential.
    case checkCredential(Credential)
    /// The server closed the stream or refused the login without a reason that names a side.
    case compareLogs
    /// The server requires TLS before the login.
    case startTLS
    /// The server does not offer resource binding.
    case offerBinding
    /// Base64 contains a line break.
    case removeLineBreaks
    /// An XML declaration appears within the stream.
    case removeDeclaration

    // MARK: Logins performed by xmpptap

    /// xmpptap gave up its login to the server.
    case checkOwnAccount
    /// The client's password differs from the one in the accounts.
    case comparePassword
    /// The client's type of channel binding is not available.
    case changeBindingType
    /// The account has no key for this mechanism, given without `-PLUS`.
    case addKey(mechanism: String)
    /// The account is unknown, and its login cannot be relayed.
    case addAccount
    /// The server offers no mechanism that xmpptap can use.
    case offerMechanism
    /// The mechanism requires the client's certificate, which xmpptap does not have.
    case giveClientCertificate

    // MARK: Ports

    /// The server sent nothing: its port may expect TLS from the first byte.
    case tryOtherPort
    /// The server's port uses another protocol.
    case checkUpstream
    /// The server does not use TLS on the port.
    case checkServerPort
    /// The client sent plaintext on a TLS port.
    case checkClientPort

    // MARK: TLS

    /// TLS on the client leg is disabled by a flag.
    case changeClientTLS
    /// TLS on the server leg is disabled by a flag.
    case changeServerTLS
    /// Clients must use TLS only because the server leg does.
    case allowClearClients
    /// The certificate given to xmpptap is not the server's.
    case giveServerCertificate
    /// The client supports no allowed TLS version.
    case lowerVersionForClient
    /// The server supports no allowed TLS version or cipher suite.
    case lowerVersionForServer
    /// The issuer of the server's certificate is not trusted.
    case trustIssuer
    /// The server's certificate has expired, or is not valid yet.
    case renewCertificate
    /// The server's certificate does not match the expected name.
    case nameDomain
    /// The server's certificate is not the pinned one.
    case comparePin
    /// The server's certificate has another fault.
    case overlookFaults
    /// The client named no server, and the upstream's certificate does not match the upstream's name.
    case nameServer(ClientNaming, UpstreamNaming?)
    /// A receiving server refuses the certificate of a server because it is not for TLS clients.
    case allowClientUse
    /// The client refused the server's own certificate.
    case checkClientLog
    /// The client rejected xmpptap's certificate, or closed the connection after receiving it.
    case trustAuthority(AuthorityTrust)

    /// A certificate authority of xmpptap is missing or unusable.
    ///
    /// - Parameter folder: The folder of the authorities; nil for the default folder.
    case changeAuthority(AuthorityChange, folder: String?)

    // MARK: Rules

    /// A stanza larger than the limit bypassed the rules.
    case refuseOversize

    // MARK: Upstream proxies

    /// A client sent a PROXY header from an address that is not allowed to send one.
    case allowSender
    /// A client requested a target that does not belong to the listed servers.
    case listTarget

    /// The kind of a client's credential.
    public enum Credential: Sendable, Hashable {
        case password
        /// A certificate (SASL EXTERNAL).
        case certificate
        /// A token (OAuth, FAST).
        case token
        /// Nothing: an anonymous login.
        case none
    }

    /// An authority of xmpptap that a client has to trust.
    public struct AuthorityTrust: Sendable, Hashable {
        /// The domain that the authority may sign for.
        package var domain: String
        /// The folder of the authority; nil for the default folder.
        package var folder: String?
        /// The path of its certificate; nil if it exists only in memory.
        package var certificate: String?
        /// The way of naming the server that the client did not use; nil if the client named the server.
        package var missing: ClientNaming?
        /// The domain of the server that has to trust the authority; nil for a client.
        package var server: String?
        /// Whether the client did not report an unknown authority.
        package var isUnconfirmed = false
        /// The client software, as far as it is known.
        package var client = ClientSoftware()

        /// Creates a description of the authority for a domain.
        package init(domain: String, folder: String? = nil, certificate: String? = nil) {
            self.domain = domain
            self.folder = folder
            self.certificate = certificate
        }
    }

    /// How a client names the server.
    public enum ClientNaming: Sendable, Hashable {
        /// With SNI.
        case serverName
        /// With the `to` attribute of its stream header.
        case header
    }

    /// A change to a certificate authority. Text from the wire is not escaped.
    public enum AuthorityChange: Sendable, Hashable {
        /// Create an authority for a domain or address.
        case create(String)
        /// Create an additional authority.
        case createAnother(String)
        /// Create an authority although the domain is a public suffix.
        case confirm(String)
        /// Create an authority explicitly, because the limit of automatically created ones is reached.
        case createBeyond(limit: Int, String)
        /// Remove the authority for this domain, or for an unknown one, and recreate it.
        case recreate(String?)
        /// Set this octal mode on a file or folder of the domain, or recreate it.
        case protect(_ path: String, mode: String, domain: String?)
        /// Move the folder away and recreate the authority.
        case replaceFolder(String?)
        /// Use a folder that the user owns.
        case useOwnFolder
        /// Check the installation of OpenSSL.
        case checkLibrary
    }

    /// How the upstream should be named.
    public enum UpstreamNaming: Sendable, Hashable {
        /// By its domain, so that its servers are looked up.
        case domain
        /// By the name in its certificate.
        case host(String, port: Int)
    }
}

/// Returns the text for a remedy: an imperative in lower case without a final stop.
public typealias Advice = @Sendable (Remedy) -> String
