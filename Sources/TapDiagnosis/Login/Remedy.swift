/// What to try against the failure of a login, or of a part of it: a key, and what the advice speaks of. The words, which
/// name flags and settings of servers, belong to the program that shows them.
public enum Remedy: Sendable, Hashable {
    /// What helps against the cause wherever it is met.
    case usual(LoginCause)

    /// The same, if it is not known whether xmpptap stood between client and server: nothing of it can be changed.
    case observed(LoginCause)
    /// The user name contains the domain.
    case useLocalPart
    /// Base64 contains a line break.
    case removeLineBreaks
    /// An XML declaration stands within the stream.
    case removeDeclaration

    // MARK: A login that xmpptap performs

    /// The login to the server was given up.
    case checkOwnAccount
    /// The client's password is not the account's.
    case comparePassword
    /// The client's type of channel binding is not to be had.
    case changeBindingType
    /// The account has no key for this mechanism, which is named without `-PLUS`.
    case addKey(mechanism: String)
    /// The account is unknown, and its login cannot be relayed.
    case addAccount
    /// The server offers no mechanism that xmpptap can use.
    case offerMechanism
    /// A mechanism of the client's certificate, which xmpptap does not have.
    case giveClientCertificate

    // MARK: Ports

    /// The server did not send a byte: its port may expect TLS from the first one.
    case tryOtherPort
    /// The server's port speaks another protocol.
    case checkUpstream
    /// The server does not use TLS on the port.
    case checkServerPort
    /// The client sent plaintext where TLS is spoken.
    case checkClientPort

    // MARK: TLS

    /// The client leg has no TLS because the user wants it so.
    case changeClientTLS
    /// The same of the server leg.
    case changeServerTLS
    /// TLS is required of clients only because the server leg has it.
    case allowClearClients
    /// The certificate that xmpptap was given is not the server's.
    case giveServerCertificate
    /// The client has no TLS version that is allowed.
    case lowerVersionForClient
    /// The server has none, or no cipher suite.
    case lowerVersionForServer
    /// Nobody who is trusted has issued the server's certificate.
    case trustIssuer
    /// The server's certificate has expired, or is not valid yet.
    case renewCertificate
    /// The server's certificate is for another name.
    case nameDomain
    /// Something else is wrong with the server's certificate.
    case overlookFaults
    /// The client named no server, and the upstream's certificate does not name the upstream.
    case nameServer(ClientNaming, UpstreamNaming?)
    /// The client refused the server's own certificate.
    case checkClientLog
    /// The client refused xmpptap's certificate, or left when it saw it.
    case trustAuthority(AuthorityTrust)

    /// A certificate authority of xmpptap's is missing or unusable.
    ///
    /// - Parameter folder: Where the authorities are; nil is the usual folder.
    case changeAuthority(AuthorityChange, folder: String?)

    // MARK: Rules

    /// A stanza larger than the limit passed without the rules.
    case refuseOversize

    // MARK: Proxies in front

    /// A client sent a PROXY header and is none of the proxies that may.
    case allowSender

    /// An authority of xmpptap's that a client is to trust.
    public struct AuthorityTrust: Sendable, Hashable {
        /// What the authority may sign for.
        public var domain: String
        /// Where it is; nil is the usual folder.
        public var folder: String?
        /// The path of its certificate; nil if it is in memory only.
        public var certificate: String?
        /// How the client would have named the server, where it did not.
        public var missing: ClientNaming?
        /// The client did not say that it does not know the authority.
        public var isUnconfirmed = false
        /// The client, as far as it is known.
        public var client = ClientSoftware()

        /// The authority for a domain, in a folder.
        public init(domain: String, folder: String? = nil, certificate: String? = nil) {
            self.domain = domain
            self.folder = folder
            self.certificate = certificate
        }
    }

    /// How a client names the server that it wants.
    public enum ClientNaming: Sendable, Hashable {
        /// By SNI.
        case serverName
        /// By the `to` of its stream header.
        case header
    }

    /// What to do about a certificate authority. Text that came from the wire is as it came.
    public enum AuthorityChange: Sendable, Hashable {
        /// Create one for a domain or address.
        case create(String)
        /// The same, beside others.
        case createAnother(String)
        /// The same, though it is a public suffix.
        case confirm(String)
        /// Create one where as many as this limit are not created on demand any more.
        case createBeyond(limit: Int, String)
        /// Remove the one for this domain, or for one that is unknown, and create it anew.
        case recreate(String?)
        /// Give a file or folder of the domain's this octal mode, or recreate it.
        case protect(_ path: String, mode: String, domain: String?)
        /// Move the folder away and create the authority anew.
        case replaceFolder(String?)
        /// Use a folder that belongs to the user.
        case useOwnFolder
        /// Look for what is wrong with OpenSSL.
        case checkLibrary
    }

    /// How the upstream is to be named.
    public enum UpstreamNaming: Sendable, Hashable {
        /// By the domain, for which its servers are looked up.
        case domain
        /// By the name that its certificate has.
        case host(String, port: Int)
    }
}

/// The words for a remedy: an imperative in lower case without a final stop.
public typealias Advice = @Sendable (Remedy) -> String
