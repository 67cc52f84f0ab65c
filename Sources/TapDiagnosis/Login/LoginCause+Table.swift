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

    /// What is the same for every session that fails for one cause.
    package struct Entry {
        /// Who has to change something, or broke the rule.
        package var side: Side
        /// Where the rule stands.
        package var rule: String?
        /// What to try, as an order to the reader.
        package var advice: String
    }

    package var entry: Entry {
        switch self {
        case .nameNotFound, .serviceNotOffered, .lookupFailed, .connectionRefused, .connectionTimeout,
            .serverUnreachable:
            connectionEntry
        case .legWithoutTLS, .legWithTLS: legEntry
        case .tlsRequired, .tlsNotOffered, .tlsDeclined, .tlsAlertByClient, .tlsAlertByServer, .certificateExpired,
            .clockSkew,
            .certificateWrongName, .certificateUnknownIssuer, .authorityNotTrusted, .certificateNotAccepted,
            .certificateRefused, .alpnMismatch, .tlsIncompatible,
            .startTLSInjection, .tlsExpected, .tlsUnexpected, .tlsFailed:
            tlsEntry
        case .notXMPP, .malformedStream, .namespaceMismatch, .versionMismatch, .hostUnknown, .seeOtherHost,
            .resourceConstraint, .policyViolation, .systemShutdown, .streamError, .serverSilent, .serverGone,
            .clientGaveUp:
            streamEntry
        case .bindingDenied, .bindingMismatch, .mechanismsAltered, .tlsVersionAltered: bindingEntry
        case .accountExists, .registrationNotAllowed, .registrationRefused, .missingBind, .conflict, .bindRefused,
            .domainNotServed, .endedByTap:
            sessionEntry
        default: authenticationEntry
        }
    }

    private var connectionEntry: Entry {
        switch self {
        case .nameNotFound:
            Entry(
                side: .network,
                rule: "RFC 6120 §3.2",
                advice: "check the spelling of the domain and its DNS records (xmpptap doctor --upstream-domain), "
                    + "or name the server with --upstream HOST:PORT"
            )
        case .serviceNotOffered:
            Entry(
                side: .server,
                rule: "RFC 6120 §3.2.1, RFC 2782",
                advice: "ask the operator of the domain: its SRV record says that it has no service for clients"
            )
        case .lookupFailed:
            Entry(
                side: .network,
                rule: "RFC 6120 §3.2",
                advice: "check the DNS servers of this machine, or use another with --resolver"
            )
        case .connectionRefused:
            Entry(
                side: .server,
                rule: nil,
                advice: "check that the server runs and listens at this address and port; "
                    + "a firewall can also reject the connection"
            )
        case .connectionTimeout:
            Entry(
                side: .network,
                rule: nil,
                advice: "check the address, and firewalls that drop packets"
            )
        default:
            Entry(side: .network, rule: nil, advice: "check the address and the route to it from this machine")
        }
    }

    private var tlsEntry: Entry {
        switch self {
        case .tlsRequired:
            Entry(
                side: .client,
                rule: "RFC 6120 §5.3.1",
                advice:
                    "enable TLS in the client, or, for a test on this machine, allow plain connections on the server "
                    + "(Prosody: c2s_require_encryption = false; ejabberd: starttls_required: false)"
            )
        case .tlsNotOffered:
            Entry(
                side: .server,
                rule: "RFC 6120 §13.8.1",
                advice:
                    "enable TLS with a certificate on the server, or, for a test on this machine, disable it in the "
                    + "client"
            )
        case .tlsDeclined:
            Entry(
                side: .server,
                rule: "RFC 6120 §5.4.2.2",
                advice: "check the certificate and key in the server's configuration, and its log: "
                    + "it offers TLS and cannot start it"
            )
        case .tlsAlertByClient:
            Entry(side: .client, rule: "RFC 8446 §6", advice: "check the client's log for the TLS error")
        case .tlsAlertByServer:
            Entry(side: .server, rule: "RFC 8446 §6", advice: "check the server's log for the TLS error")
        case .certificateExpired:
            Entry(side: .server, rule: "RFC 5280 §4.1.2.5", advice: "renew the server's certificate")
        case .clockSkew:
            Entry(
                side: .network,
                rule: "RFC 5280 §4.1.2.5",
                advice: "set the clocks of both machines; for one of them the certificate is not valid yet"
            )
        case .certificateWrongName:
            Entry(
                side: .server,
                rule: "RFC 6120 §13.7.2",
                advice: "use a certificate for the domain of the JIDs, not for the server's host name, "
                    + "or check the domain in the client's configuration"
            )
        case .certificateUnknownIssuer:
            Entry(
                side: .server,
                rule: "RFC 6120 §13.7.2",
                advice: "install the complete certificate chain on the server, or trust its issuer "
                    + "with --upstream-ca FILE"
            )
        case .authorityNotTrusted:
            Entry(
                side: .tap,
                rule: "RFC 6120 §13.7.2",
                advice: "trust xmpptap's certificate authority on the client: 'xmpptap ca export' prints it"
            )
        case .certificateNotAccepted:
            Entry(
                side: .tap,
                rule: "RFC 6120 §13.7.2",
                advice:
                    "trust xmpptap's certificate authority on the client: 'xmpptap ca export' prints it; compare the names "
                    + "in the certificate with the domain that the client expects"
            )
        case .certificateRefused:
            Entry(
                side: .server,
                rule: "RFC 6120 §13.7.2",
                advice: "check the server's certificate and its chain, or, for tests only, use --upstream-insecure"
            )
        case .tlsIncompatible:
            Entry(
                side: .server,
                rule: "RFC 8446 §4.1",
                advice: "update the older side, or lower the minimum version with --tls-min"
            )
        case .startTLSInjection:
            Entry(
                side: .client,
                rule: "RFC 6120 §5.3.3",
                advice:
                    "check for an attacker between the two; otherwise fix this side: it must wait for the TLS handshake"
            )
        case .tlsExpected:
            Entry(
                side: .client,
                rule: "XEP-0368 §3",
                advice:
                    "use direct TLS in the client, use the server's port for STARTTLS (usually 5222), or let xmpptap use "
                    + "direct TLS to the server (--server-tls direct)"
            )
        case .tlsUnexpected:
            Entry(
                side: .client,
                rule: "XEP-0368 §3",
                advice:
                    "use STARTTLS in the client, or use the server's port for direct TLS (usually 5223)"
            )
        case .tlsFailed:
            Entry(side: .server, rule: "RFC 8446", advice: "check the port, and the logs of both sides")
        default:
            Entry(
                side: .client,
                rule: "RFC 7301 §3.2",
                advice: "configure the client to offer xmpp-client, or nothing, in ALPN"
            )
        }
    }

    /// Sessions that contradict --client-tls or --server-tls.
    private var legEntry: Entry {
        self == .legWithoutTLS
            ? Entry(
                side: .tap,
                rule: "RFC 6120 §5.3.1",
                advice: "enable TLS in the client or the server, or allow plain connections "
                    + "(--client-tls auto, --server-tls auto)"
            )
            : Entry(
                side: .tap,
                rule: "RFC 6120 §5.4.2.2",
                advice: "disable TLS in the client, or allow it (--client-tls auto)"
            )
    }

    private var streamEntry: Entry {
        switch self {
        case .notXMPP:
            Entry(side: .client, rule: "RFC 6120 §4.2", advice: "check which program connects, and to which port")
        case .malformedStream:
            Entry(
                side: .client,
                rule: "RFC 6120 §11",
                advice: "fix the software that sends this stream; see the error above"
            )
        case .namespaceMismatch:
            Entry(
                side: .client,
                rule: "RFC 6120 §4.8",
                advice: "check the port: clients speak jabber:client, servers jabber:server, components "
                    + "jabber:component:accept, each on its own port"
            )
        case .versionMismatch:
            Entry(
                side: .client,
                rule: "RFC 6120 §4.7.5",
                advice: "send version='1.0' in the stream header, or use software that supports XMPP 1.0"
            )
        case .hostUnknown:
            Entry(
                side: .client,
                rule: "RFC 6120 §4.9.3.6",
                advice: "compare the domain of the JID with the hosts in the server's configuration, "
                    + "and check that this is the right server"
            )
        case .seeOtherHost:
            Entry(
                side: .server,
                rule: "RFC 6120 §4.9.3.19",
                advice: "connect to the named host, or start xmpptap with that host as --upstream"
            )
        case .resourceConstraint:
            Entry(
                side: .server,
                rule: "RFC 6120 §4.9.3.17",
                advice: "try again later, or check the server's limits on sessions and connections"
            )
        case .policyViolation:
            Entry(
                side: .client,
                rule: "RFC 6120 §4.9.3.14",
                advice: "check the server's log and configuration for the policy; it may be about TLS, rates or sizes"
            )
        case .systemShutdown:
            Entry(side: .server, rule: "RFC 6120 §4.9.3.20", advice: "try again when the server is back")
        case .streamError:
            Entry(side: .client, rule: "RFC 6120 §4.9.3", advice: "look up the condition, and check the server's log")
        case .serverSilent:
            Entry(
                side: .server,
                rule: "RFC 6120 §4.3",
                advice: "check the server's log; a server that hangs does not answer, nor does a port for direct TLS"
            )
        case .serverGone:
            Entry(
                side: .server,
                rule: "RFC 6120 §4.4",
                advice: "check the server's log; it closed the stream without a stream error"
            )
        default:
            Entry(side: .client, rule: "RFC 6120 §4.4", advice: "check the client's log for the reason")
        }
    }

    private var sessionEntry: Entry {
        switch self {
        case .accountExists: Entry(side: .client, rule: "XEP-0077 §3.1", advice: "choose another user name, or log in")
        case .registrationNotAllowed:
            Entry(
                side: .server,
                rule: "XEP-0077 §3.1",
                advice: "ask the server's operator for an account (Prosody: allow_registration; "
                    + "ejabberd: mod_register)"
            )
        case .registrationRefused:
            Entry(side: .client, rule: "XEP-0077 §3.1", advice: "check the condition, and the server's log")
        case .missingBind:
            Entry(
                side: .client,
                rule: "RFC 6120 §7.1",
                advice: "bind a resource after authentication, before anything else"
            )
        case .conflict:
            Entry(
                side: .client,
                rule: "RFC 6120 §7.7.2.2",
                advice: "configure a different resource for each client, or let the server choose it"
            )
        case .bindRefused:
            Entry(
                side: .server,
                rule: "RFC 6120 §7.6.2, §7.7.2",
                advice: "check the condition; the server may limit the sessions per account"
            )
        case .domainNotServed:
            Entry(
                side: .tap,
                rule: "RFC 6120 §4.9.3.6",
                advice:
                    "add the domain with --upstream-domain or --listen, or check the domain in the client's configuration"
            )
        default:
            Entry(side: .tap, rule: nil, advice: "see the error above; limits are set with --limit")
        }
    }
}
