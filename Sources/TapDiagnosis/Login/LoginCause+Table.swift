// What is known of each cause, independent of the session.
extension LoginCause {
    /// Where a cause is.
    public enum Side: String, Sendable, Hashable {
        case client
        case server
        /// Between the two.
        case network
        /// This program.
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
