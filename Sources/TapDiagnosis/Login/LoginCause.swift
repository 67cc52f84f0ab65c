/// Why a session did not become ready for stanzas. The raw value is stable: it is the detail `cause` of the record
/// `login-failed`.
public enum LoginCause: String, Sendable, Hashable, CaseIterable {
    // MARK: The way to the server

    /// The server's name is in no name server.
    case nameNotFound = "name-not-found"
    /// The domain's SRV record says that it has no such service (RFC 2782: the target is `.`).
    case serviceNotOffered = "service-not-offered"
    /// The name servers could not be asked.
    case lookupFailed = "lookup-failed"
    /// Nothing listens at the server's address.
    case connectionRefused = "connection-refused"
    /// The server's address does not answer.
    case connectionTimeout = "connection-timeout"
    /// Another failure of the network.
    case serverUnreachable = "server-unreachable"

    // MARK: TLS

    /// The server demands TLS, and the client does not begin it.
    case tlsRequired = "tls-required"
    /// The client demands TLS, and the server offers none.
    case tlsNotOffered = "tls-not-offered"
    /// A leg was to have TLS by the flags of this program, and its peer went on in clear or offered none.
    case legWithoutTLS = "leg-without-tls"
    /// The client wants TLS on a leg that stays in clear by the flags of this program.
    case legWithTLS = "leg-with-tls"
    /// The server declines the TLS that it offered.
    case tlsDeclined = "tls-declined"
    /// The client ended TLS by an alert of which no other cause is known.
    case tlsAlertByClient = "tls-alert-client"
    /// The server ended TLS by an alert of which no other cause is known.
    case tlsAlertByServer = "tls-alert-server"
    /// The server's certificate has expired.
    case certificateExpired = "certificate-expired"
    /// A certificate is not valid yet, by the clock of who looks at it: one of the clocks is wrong.
    case clockSkew = "clock-skew"
    /// The server's certificate is for another name.
    case certificateWrongName = "certificate-wrong-name"
    /// The issuer of the server's certificate is not trusted.
    case certificateUnknownIssuer = "certificate-unknown-issuer"
    /// The client does not trust the authority that signs for this program.
    case authorityNotTrusted = "authority-not-trusted"
    /// The client did not accept the certificate that this program showed it: it left without a word, or it lacks a name.
    case certificateNotAccepted = "certificate-not-accepted"
    /// Something else is wrong with the server's certificate.
    case certificateRefused = "certificate-refused"
    /// Client and server have no protocol in common (RFC 7301).
    case alpnMismatch = "alpn-mismatch"
    /// No version or cipher suite of TLS in common.
    case tlsIncompatible = "tls-incompatible"
    /// Plaintext came where TLS was to begin.
    case startTLSInjection = "starttls-injection"
    /// The client's stream began in clear text on a port of the server that expects TLS from the first byte.
    case tlsExpected = "tls-expected"
    /// TLS was begun on a port of the server that speaks in clear text first.
    case tlsUnexpected = "tls-unexpected"
    /// TLS failed otherwise.
    case tlsFailed = "tls-failed"

    // MARK: Streams

    /// What came from the client is no XMPP.
    case notXMPP = "not-xmpp"
    /// A stream cannot be parsed.
    case malformedStream = "malformed-stream"
    /// A stream is not of the namespace that the other side expects.
    case namespaceMismatch = "namespace-mismatch"
    /// One side speaks XMPP 1.0 and the other does not.
    case versionMismatch = "version-mismatch"
    /// The server does not serve the domain.
    case hostUnknown = "host-unknown"
    /// The client is sent to another server.
    case seeOtherHost = "see-other-host"
    /// The server has no room.
    case resourceConstraint = "resource-constraint"
    /// A local rule of the server forbids it.
    case policyViolation = "policy-violation"
    /// The server shuts down.
    case systemShutdown = "system-shutdown"
    case streamError = "stream-error"
    /// The server has not said what was its to say.
    case serverSilent = "server-silent"
    /// The server has gone without a word.
    case serverGone = "server-gone"
    /// The client has not gone on, and has not said why.
    case clientGaveUp = "client-gave-up"

    // MARK: Authentication

    /// The server offers no mechanism.
    case noMechanismOffered = "no-mechanism-offered"
    /// The client took none of the mechanisms that the server offers.
    case noCommonMechanism = "no-common-mechanism"
    /// The mechanism is not allowed without TLS, or not at all.
    case mechanismTooWeak = "mechanism-too-weak"
    /// The name is right and the password is not.
    case wrongPassword = "wrong-password"
    /// The server does not know the name.
    case unknownUser = "unknown-user"
    /// The name or the password is wrong; the server does not say which.
    case notAuthorized = "not-authorized"
    /// The server refused the login that this program made for a client whose own it had ended.
    case ownLoginRefused = "own-login-refused"
    /// The server broke the rules of SCRAM, or did not prove that it knows the password.
    case serverNotProven = "server-not-proven"
    case accountDisabled = "account-disabled"
    /// The password or token has expired.
    case credentialsExpired = "credentials-expired"
    /// The server cannot check the credentials at the moment.
    case temporaryFailure = "temporary-auth-failure"
    /// The server could not read what the client sent.
    case malformedRequest = "malformed-request"
    /// The client may not act for the address that it named.
    case invalidAuthorization = "invalid-authzid"
    case clientAborted = "client-aborted"
    /// After another mechanism had failed the client offered its password in the clear, and failed as well.
    case plainDowngrade = "plain-downgrade"
    /// A component's secret is wrong.
    case handshakeRefused = "handshake-refused"
    /// A server's domain is not believed.
    case dialbackFailed = "dialback-failed"

    // MARK: Channel binding

    /// The client said that the server has no channel binding (gs2 flag `y`), and the server has it.
    case bindingDenied = "channel-binding-denied"
    /// The client bound its login to another TLS connection than the server has.
    case bindingMismatch = "channel-binding-mismatch"
    /// The mechanisms that the client saw are not those that the server signs (XEP-0474).
    case mechanismsAltered = "mechanisms-altered"
    /// The client's TLS version is not the one that the server signs (XEP-0515).
    case tlsVersionAltered = "tls-version-altered"

    // MARK: Registration, binding, and this program

    /// The name that was to be registered is taken.
    case accountExists = "account-exists"
    case registrationNotAllowed = "registration-not-allowed"
    /// The server refused a registration for another reason.
    case registrationRefused = "registration-refused"
    /// The client has authenticated and not bound a resource.
    case missingBind = "missing-bind"
    /// The client requested stream management before the result of resource binding, or without an offer.
    case earlyEnable = "early-enable"
    /// The resource is in use.
    case conflict
    /// The server refused the resource for another reason.
    case bindRefused = "bind-refused"
    /// The domain is none of those for which this proxy stands.
    case domainNotServed = "domain-not-served"
    /// A limit or the configuration of this program ended it.
    case endedByTap = "ended-by-xmpptap"
}

/// Why a server could not be connected to, as far as the operating system tells.
public enum ConnectionFault: Sendable, Hashable {
    case nameNotFound
    /// The domain says that it has no such service.
    case notOffered
    /// The name servers could not be asked.
    case lookupFailed
    case refused
    case timeout
    case unreachable

    /// The cause of a login that fails by it.
    public var cause: LoginCause {
        switch self {
        case .nameNotFound: .nameNotFound
        case .notOffered: .serviceNotOffered
        case .lookupFailed: .lookupFailed
        case .refused: .connectionRefused
        case .timeout: .connectionTimeout
        case .unreachable: .serverUnreachable
        }
    }
}

// What is known of each cause, independent of the session.
extension LoginCause {
    /// Where a cause is.
    public enum Side: String, Sendable, Hashable {
        case client
        case server
        /// Between the two.
        case network
        case tap = "xmpptap"
    }

    /// Who has to change something, or broke the rule; and where the rule stands.
    package var entry: (side: Side, rule: String?) {
        switch self {
        case .nameNotFound, .lookupFailed: (.network, "RFC 6120 §3.2")
        case .serviceNotOffered: (.server, "RFC 6120 §3.2.1, RFC 2782")
        case .connectionRefused: (.server, nil)
        case .connectionTimeout, .serverUnreachable: (.network, nil)
        case .tlsRequired: (.client, "RFC 6120 §5.3.1")
        case .tlsNotOffered: (.server, "RFC 6120 §13.8.1")
        case .legWithoutTLS: (.tap, "RFC 6120 §5.3.1")
        case .legWithTLS: (.tap, "RFC 6120 §5.4.2.2")
        case .tlsDeclined: (.server, "RFC 6120 §5.4.2.2")
        case .tlsAlertByClient: (.client, "RFC 8446 §6")
        case .tlsAlertByServer: (.server, "RFC 8446 §6")
        case .certificateExpired: (.server, "RFC 5280 §4.1.2.5")
        case .clockSkew: (.network, "RFC 5280 §4.1.2.5")
        case .certificateWrongName, .certificateUnknownIssuer, .certificateRefused: (.server, "RFC 6120 §13.7.2")
        case .authorityNotTrusted, .certificateNotAccepted: (.tap, "RFC 6120 §13.7.2")
        case .alpnMismatch: (.client, "RFC 7301 §3.2")
        case .tlsIncompatible: (.server, "RFC 8446 §4.1")
        case .startTLSInjection: (.client, "RFC 6120 §5.3.3")
        case .tlsExpected, .tlsUnexpected: (.client, "XEP-0368 §3")
        case .tlsFailed: (.server, "RFC 8446")
        case .notXMPP: (.client, "RFC 6120 §4.2")
        case .malformedStream: (.client, "RFC 6120 §11")
        case .namespaceMismatch: (.client, "RFC 6120 §4.8")
        case .versionMismatch: (.client, "RFC 6120 §4.7.5")
        case .hostUnknown: (.client, "RFC 6120 §4.9.3.6")
        case .seeOtherHost: (.server, "RFC 6120 §4.9.3.19")
        case .resourceConstraint: (.server, "RFC 6120 §4.9.3.17")
        case .policyViolation: (.client, "RFC 6120 §4.9.3.14")
        case .systemShutdown: (.server, "RFC 6120 §4.9.3.20")
        case .streamError: (.client, "RFC 6120 §4.9.3")
        case .serverSilent: (.server, "RFC 6120 §4.3")
        case .serverGone: (.server, "RFC 6120 §4.4")
        case .clientGaveUp: (.client, "RFC 6120 §4.4")
        case .noMechanismOffered: (.server, "RFC 6120 §6.3.3")
        case .earlyEnable: (.client, "XEP-0198 §3")
        case .noCommonMechanism: (.client, "RFC 6120 §6.3.3")
        case .mechanismTooWeak: (.client, "RFC 6120 §6.5.4, §6.5.9")
        case .wrongPassword, .unknownUser, .notAuthorized: (.client, "RFC 6120 §6.5.10")
        case .ownLoginRefused: (.tap, "RFC 6120 §6.5")
        case .serverNotProven: (.server, "RFC 5802 §5")
        case .accountDisabled: (.server, "RFC 6120 §6.5.2")
        case .credentialsExpired: (.client, "RFC 6120 §6.5.3")
        case .temporaryFailure: (.server, "RFC 6120 §6.5.11")
        case .malformedRequest: (.client, "RFC 6120 §6.5.8")
        case .invalidAuthorization: (.client, "RFC 6120 §6.5.6")
        case .clientAborted: (.client, "RFC 6120 §6.4.4")
        case .plainDowngrade: (.client, "RFC 4616 §5")
        case .handshakeRefused: (.client, "XEP-0114 §3")
        case .dialbackFailed: (.client, "XEP-0220 §2")
        case .bindingDenied: (.client, "RFC 5802 §6")
        case .bindingMismatch: (.tap, "RFC 5802 §6, RFC 5056 §2")
        case .mechanismsAltered: (.tap, "XEP-0474")
        case .tlsVersionAltered: (.tap, "XEP-0515")
        case .accountExists, .registrationRefused: (.client, "XEP-0077 §3.1")
        case .registrationNotAllowed: (.server, "XEP-0077 §3.1")
        case .missingBind: (.client, "RFC 6120 §7.1")
        case .conflict: (.client, "RFC 6120 §7.7.2.2")
        case .bindRefused: (.server, "RFC 6120 §7.6.2, §7.7.2")
        case .domainNotServed: (.tap, "RFC 6120 §4.9.3.6")
        case .endedByTap: (.tap, nil)
        }
    }
}
