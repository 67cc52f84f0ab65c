/// The cause of a failed login. The raw value is stable: it is the detail `cause` of the record `login-failed`.
public enum LoginCause: String, Sendable, Hashable, CaseIterable {
    // MARK: Connecting to the server

    /// The server's name does not exist in the DNS.
    case nameNotFound = "name-not-found"
    /// The domain's SRV record says that it has no such service (RFC 2782: the target is `.`).
    case serviceNotOffered = "service-not-offered"
    /// The name servers could not be queried.
    case lookupFailed = "lookup-failed"
    /// The server refused the connection: no program listens at its address.
    case connectionRefused = "connection-refused"
    /// The server did not answer the connection attempt in time.
    case connectionTimeout = "connection-timeout"
    /// The connection failed for another network reason.
    case serverUnreachable = "server-unreachable"
    /// The files by which clients find a WebSocket name none with TLS, or cannot be used (XEP-0156).
    case hostMetaUnusable = "host-meta-unusable"
    /// The server refused the HTTP handshake of a WebSocket, or answered it wrongly.
    case webSocketRefused = "websocket-refused"

    // MARK: TLS

    /// The server requires TLS, but the client does not start it.
    case tlsRequired = "tls-required"
    /// The client requires TLS, but the server does not offer it.
    case tlsNotOffered = "tls-not-offered"
    /// The flags of xmpptap require TLS on a leg, but its peer continued in clear text or did not offer it.
    case legWithoutTLS = "leg-without-tls"
    /// The client requests TLS on a leg for which the flags of xmpptap disable it.
    case legWithTLS = "leg-with-tls"
    /// The server refused STARTTLS after offering it.
    case tlsDeclined = "tls-declined"
    /// The client sent a TLS alert without a more specific cause.
    case tlsAlertByClient = "tls-alert-client"
    /// The server sent a TLS alert without a more specific cause.
    case tlsAlertByServer = "tls-alert-server"
    /// The server's certificate has expired.
    case certificateExpired = "certificate-expired"
    /// A certificate is not valid yet according to the clock of its verifier; one of the clocks is wrong.
    case clockSkew = "clock-skew"
    /// The server's certificate does not match the expected name.
    case certificateWrongName = "certificate-wrong-name"
    /// The issuer of the server's certificate is not trusted.
    case certificateUnknownIssuer = "certificate-unknown-issuer"
    /// The client does not trust the certificate authority of xmpptap.
    case authorityNotTrusted = "authority-not-trusted"
    /// The client did not accept xmpptap's certificate: it closed the connection without an alert, or it had not named
    /// the server, so that the certificate may lack the expected name.
    case certificateNotAccepted = "certificate-not-accepted"
    /// A server shows no certificate to the server that it connects to.
    case certificateMissing = "certificate-missing"
    /// The server's certificate was rejected for another reason.
    case certificateRefused = "certificate-refused"
    /// Client and server have no application protocol in common (ALPN, RFC 7301).
    case alpnMismatch = "alpn-mismatch"
    /// Client and server have no TLS version or cipher suite in common.
    case tlsIncompatible = "tls-incompatible"
    /// Plaintext arrived in place of a TLS record after STARTTLS.
    case startTLSInjection = "starttls-injection"
    /// The client started in clear text on a server port that expects TLS from the first byte.
    case tlsExpected = "tls-expected"
    /// TLS was started on a server port that expects clear text first.
    case tlsUnexpected = "tls-unexpected"
    /// TLS failed for another reason.
    case tlsFailed = "tls-failed"

    // MARK: Streams

    /// The client's bytes are not XMPP.
    case notXMPP = "not-xmpp"
    /// A stream cannot be parsed.
    case malformedStream = "malformed-stream"
    /// A stream has a different content namespace than the other side expects.
    case namespaceMismatch = "namespace-mismatch"
    /// Only one side uses XMPP 1.0.
    case versionMismatch = "version-mismatch"
    /// The server does not serve the domain.
    case hostUnknown = "host-unknown"
    /// The server redirects the client to another host.
    case seeOtherHost = "see-other-host"
    /// The server is out of resources.
    case resourceConstraint = "resource-constraint"
    /// A local policy of the server forbids the login.
    case policyViolation = "policy-violation"
    /// The server shuts down.
    case systemShutdown = "system-shutdown"
    case streamError = "stream-error"
    /// The server did not send an expected element.
    case serverSilent = "server-silent"
    /// The server closed the connection without an error.
    case serverGone = "server-gone"
    /// The client stopped the login without an error.
    case clientGaveUp = "client-gave-up"

    // MARK: Authentication

    /// The server offers no SASL mechanism.
    case noMechanismOffered = "no-mechanism-offered"
    /// The client chose none of the offered mechanisms.
    case noCommonMechanism = "no-common-mechanism"
    /// The mechanism is not allowed without TLS, or not at all.
    case mechanismTooWeak = "mechanism-too-weak"
    /// The user name is correct, but the password is wrong.
    case wrongPassword = "wrong-password"
    /// The user name is unknown to the server.
    case unknownUser = "unknown-user"
    /// The user name or the password is wrong; the server does not say which.
    case notAuthorized = "not-authorized"
    /// The server refused the login that xmpptap performed on behalf of a client.
    case ownLoginRefused = "own-login-refused"
    /// The server violated SCRAM, or did not prove that it knows the password.
    case serverNotProven = "server-not-proven"
    /// The server's SASL challenge is not valid, and the client stopped.
    case malformedChallenge = "malformed-challenge"
    case accountDisabled = "account-disabled"
    /// The password or token has expired.
    case credentialsExpired = "credentials-expired"
    /// The server temporarily cannot verify the credentials.
    case temporaryFailure = "temporary-auth-failure"
    /// The server could not parse the client's SASL data.
    case malformedRequest = "malformed-request"
    /// The client may not act as the authorization identity that it requested.
    case invalidAuthorization = "invalid-authzid"
    case clientAborted = "client-aborted"
    /// The client offered its password in clear text after another mechanism had failed, and failed again.
    case plainDowngrade = "plain-downgrade"
    /// A component's secret is wrong.
    case handshakeRefused = "handshake-refused"
    /// A server's domain failed dialback verification.
    case dialbackFailed = "dialback-failed"

    // MARK: Channel binding

    /// The client claimed that the server does not support channel binding (gs2 flag `y`), but it does.
    case bindingDenied = "channel-binding-denied"
    /// The client bound its login to a different TLS connection than the server's.
    case bindingMismatch = "channel-binding-mismatch"
    /// The mechanisms that the client saw differ from those that the server signs (XEP-0474).
    case mechanismsAltered = "mechanisms-altered"
    /// The client's TLS version differs from the one that the server signs (XEP-0515).
    case tlsVersionAltered = "tls-version-altered"

    // MARK: Registration, resource binding, xmpptap

    /// The requested user name is already registered.
    case accountExists = "account-exists"
    case registrationNotAllowed = "registration-not-allowed"
    /// The server refused the registration for another reason.
    case registrationRefused = "registration-refused"
    /// The client authenticated, but did not bind a resource.
    case missingBind = "missing-bind"
    /// The client requested stream management before the result of resource binding, or without an offer.
    case earlyEnable = "early-enable"
    /// The resource is already in use.
    case conflict
    /// The server refused to bind the resource for another reason.
    case bindRefused = "bind-refused"
    /// This proxy does not serve the domain.
    case domainNotServed = "domain-not-served"
    /// A limit or the configuration of xmpptap ended the session.
    case endedByTap = "ended-by-xmpptap"
    /// A rule, or a command to the running proxy, changed, delayed or stopped items of the login.
    case alteredByTap = "altered-by-xmpptap"
}

/// The reason why a connection to a server failed, according to the operating system and the DNS.
package enum ConnectionFault: Sendable, Hashable {
    case nameNotFound
    /// The domain declares that it does not offer the service.
    case notOffered
    /// The name servers could not be queried.
    case lookupFailed
    case refused
    case timeout
    case unreachable

    /// The cause of a login that fails because of this fault.
    package var cause: LoginCause {
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

// The table of causes.
extension LoginCause {
    /// The side at fault.
    package enum Side: String, Sendable, Hashable {
        case client
        case server
        /// Between client and server.
        case network
        case tap = "xmpptap"
        /// The recording does not show who is at fault.
        case unknown
    }

    /// The side that has to change something or broke the rule, and the source of the rule.
    package var entry: (side: Side, rule: String?) {
        switch self {
        case .nameNotFound, .lookupFailed: (.network, "RFC 6120 §3.2")
        case .serviceNotOffered: (.server, "RFC 6120 §3.2.1, RFC 2782")
        case .connectionRefused: (.server, nil)
        case .hostMetaUnusable: (.server, "XEP-0156 §2.2")
        case .webSocketRefused: (.server, "RFC 6455 §4.2.2")
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
        case .certificateMissing: (.client, "XEP-0178 §3")
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
        case .malformedChallenge: (.server, "RFC 6120 §6.4.3")
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
        case .endedByTap, .alteredByTap: (.tap, nil)
        }
    }
}
