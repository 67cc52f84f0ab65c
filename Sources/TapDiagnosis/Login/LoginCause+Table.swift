// What there is to know of each cause, whatever the session.
extension LoginCause {
    /// Where a cause lies.
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
                advice: "check how the domain is spelled and ask its name servers (xmpptap doctor --upstream-domain), "
                    + "or name the server itself with --upstream HOST:PORT"
            )
        case .serviceNotOffered:
            Entry(
                side: .server,
                rule: "RFC 6120 §3.2.1, RFC 2782",
                advice: "ask whoever runs the domain: its SRV record says that it has no service for clients"
            )
        case .lookupFailed:
            Entry(
                side: .network,
                rule: "RFC 6120 §3.2",
                advice: "check the name servers of this machine, or name another with --resolver"
            )
        case .connectionRefused:
            Entry(
                side: .server,
                rule: nil,
                advice: "check that the server runs and listens at this address and port; "
                    + "a firewall that rejects looks the same"
            )
        case .connectionTimeout:
            Entry(
                side: .network,
                rule: nil,
                advice: "check the address, and firewalls on the way that drop packets without a word"
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
                advice: "switch TLS on in the client, or let the server do without for a test on this machine "
                    + "(Prosody: c2s_require_encryption = false; ejabberd: starttls_required: false)"
            )
        case .tlsNotOffered:
            Entry(
                side: .server,
                rule: "RFC 6120 §13.8.1",
                advice:
                    "give the server a certificate and switch TLS on, or let the client do without for a test on this "
                    + "machine"
            )
        case .tlsDeclined:
            Entry(
                side: .server,
                rule: "RFC 6120 §5.4.2.2",
                advice: "look for the certificate and key in the server's configuration and log: "
                    + "it offers TLS and cannot do it"
            )
        case .tlsAlertByClient:
            Entry(side: .client, rule: "RFC 8446 §6", advice: "look in the client's log for what it dislikes in TLS")
        case .tlsAlertByServer:
            Entry(side: .server, rule: "RFC 8446 §6", advice: "look in the server's log for what it dislikes in TLS")
        case .certificateExpired:
            Entry(side: .server, rule: "RFC 5280 §4.1.2.5", advice: "renew the server's certificate")
        case .clockSkew:
            Entry(
                side: .network,
                rule: "RFC 5280 §4.1.2.5",
                advice: "set the clocks of both machines; the certificate is not valid yet for one of them"
            )
        case .certificateWrongName:
            Entry(
                side: .server,
                rule: "RFC 6120 §13.7.2",
                advice: "get a certificate for the domain of the address, not for the name of the machine, "
                    + "or check the domain that the client asks for"
            )
        case .certificateUnknownIssuer:
            Entry(
                side: .server,
                rule: "RFC 6120 §13.7.2",
                advice: "give the server the whole chain of its certificate, or trust its authority "
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
                    + "of the certificate with the one that the client wants"
            )
        case .certificateRefused:
            Entry(
                side: .server,
                rule: "RFC 6120 §13.7.2",
                advice: "look at the server's certificate and its chain, or, for a test alone, use --upstream-insecure"
            )
        case .tlsIncompatible:
            Entry(
                side: .server,
                rule: "RFC 8446 §4.1",
                advice: "bring the older side up to date, or lower the least version by --tls-min"
            )
        case .startTLSInjection:
            Entry(
                side: .client,
                rule: "RFC 6120 §5.3.3",
                advice: "look at what stands between the two: somebody may have injected it, or this side does not wait"
            )
        case .tlsExpected:
            Entry(
                side: .client,
                rule: "XEP-0368 §3",
                advice:
                    "let the client begin with TLS (direct TLS), name the server's port for STARTTLS instead (usually "
                    + "5222), or let xmpptap begin TLS with the server (--server-tls direct)"
            )
        case .tlsUnexpected:
            Entry(
                side: .client,
                rule: "XEP-0368 §3",
                advice:
                    "let the client ask for TLS (STARTTLS), or name the server's port for direct TLS instead (usually "
                    + "5223)"
            )
        case .tlsFailed:
            Entry(side: .server, rule: "RFC 8446", advice: "check that this is the right port, and look at both logs")
        default:
            Entry(
                side: .client,
                rule: "RFC 7301 §3.2",
                advice: "let the client offer xmpp-client, or nothing, in ALPN"
            )
        }
    }

    /// What the flags of this program want of the legs.
    private var legEntry: Entry {
        self == .legWithoutTLS
            ? Entry(
                side: .tap,
                rule: "RFC 6120 §5.3.1",
                advice: "switch TLS on in the client or the server, or let the leg be as they have it "
                    + "(--client-tls auto, --server-tls auto)"
            )
            : Entry(
                side: .tap,
                rule: "RFC 6120 §5.4.2.2",
                advice: "switch TLS off in the client, or let it have TLS (--client-tls auto)"
            )
    }

    private var streamEntry: Entry {
        switch self {
        case .notXMPP:
            Entry(side: .client, rule: "RFC 6120 §4.2", advice: "check which program connects here, and to which port")
        case .malformedStream:
            Entry(side: .client, rule: "RFC 6120 §11", advice: "mend what writes this stream: see the error above")
        case .namespaceMismatch:
            Entry(
                side: .client,
                rule: "RFC 6120 §4.8",
                advice: "check the port: clients speak jabber:client, servers jabber:server, components "
                    + "jabber:component:accept, each on a port of its own"
            )
        case .versionMismatch:
            Entry(
                side: .client,
                rule: "RFC 6120 §4.7.5",
                advice: "write version='1.0' in the stream header, or use software that speaks XMPP 1.0"
            )
        case .hostUnknown:
            Entry(
                side: .client,
                rule: "RFC 6120 §4.9.3.6",
                advice: "check the domain of the address against the hosts in the server's configuration, "
                    + "and whether this is the server meant"
            )
        case .seeOtherHost:
            Entry(
                side: .server,
                rule: "RFC 6120 §4.9.3.19",
                advice: "connect to the host named there, or put the proxy in front of that one"
            )
        case .resourceConstraint:
            Entry(
                side: .server,
                rule: "RFC 6120 §4.9.3.17",
                advice: "try again later, or look at the server's limits of sessions and connections"
            )
        case .policyViolation:
            Entry(
                side: .client,
                rule: "RFC 6120 §4.9.3.14",
                advice: "look in the server's log and configuration for the rule; it may be about TLS, rates or sizes"
            )
        case .systemShutdown:
            Entry(side: .server, rule: "RFC 6120 §4.9.3.20", advice: "try again when the server is back")
        case .streamError:
            Entry(side: .client, rule: "RFC 6120 §4.9.3", advice: "look up the condition, and the server's log")
        case .serverSilent:
            Entry(
                side: .server,
                rule: "RFC 6120 §4.3",
                advice: "look in the server's log; a server that is stuck, or one that wants TLS from the first byte "
                    + "on this port, keeps quiet like this"
            )
        case .serverGone:
            Entry(
                side: .server,
                rule: "RFC 6120 §4.4",
                advice: "look in the server's log; it must say why it closes a stream, and did not"
            )
        default:
            Entry(side: .client, rule: "RFC 6120 §4.4", advice: "look in the client's log for its reason")
        }
    }

    private var sessionEntry: Entry {
        switch self {
        case .accountExists: Entry(side: .client, rule: "XEP-0077 §3.1", advice: "choose another name, or log in")
        case .registrationNotAllowed:
            Entry(
                side: .server,
                rule: "XEP-0077 §3.1",
                advice: "ask whoever runs the server for an account (Prosody: allow_registration; "
                    + "ejabberd: mod_register)"
            )
        case .registrationRefused:
            Entry(side: .client, rule: "XEP-0077 §3.1", advice: "see the condition, and the server's log")
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
                advice: "see the condition; the server may limit the sessions of an account"
            )
        case .domainNotServed:
            Entry(
                side: .tap,
                rule: "RFC 6120 §4.9.3.6",
                advice:
                    "name the domain with --upstream-domain or in --listen, or check the domain that the client asks for"
            )
        default:
            Entry(side: .tap, rule: nil, advice: "see the error above; limits are set with --limit")
        }
    }
}
