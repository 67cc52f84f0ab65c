// What there is to know of the causes that lie in the authentication, whatever the session.
extension LoginCause {
    var authenticationEntry: Entry {
        switch self {
        case .ownLoginRefused:
            Entry(
                side: .tap,
                rule: "RFC 6120 §6.5",
                advice:
                    "compare the password in --accounts with the server's: the client has proven to xmpptap that it has "
                    + "the one in the file"
            )
        case .serverNotProven:
            Entry(
                side: .server,
                rule: "RFC 5802 §5",
                advice: "do not trust this server before the reason is found: look at its certificate, at its SCRAM "
                    + "implementation, and for an intermediary in front of it"
            )
        case .noCommonMechanism:
            Entry(
                side: .client,
                rule: "RFC 6120 §6.3.3",
                advice: "compare the mechanisms offered with what the client can and may do; "
                    + "many clients send no password without TLS"
            )
        case .mechanismTooWeak:
            Entry(
                side: .client,
                rule: "RFC 6120 §6.5.4, §6.5.9",
                advice: "use TLS, or a mechanism that does not show the password (SCRAM)"
            )
        case .wrongPassword: Entry(side: .client, rule: "RFC 6120 §6.5.10", advice: "check the password")
        case .unknownUser:
            Entry(
                side: .client,
                rule: "RFC 6120 §6.5.10",
                advice: "check the name and the domain, and whether the account exists on this server"
            )
        case .notAuthorized:
            Entry(
                side: .client,
                rule: "RFC 6120 §6.5.10",
                advice: "check name, domain and password; the server's log may say which is wrong"
            )
        case .accountDisabled:
            Entry(side: .server, rule: "RFC 6120 §6.5.2", advice: "have the account enabled by who runs the server")
        case .credentialsExpired:
            Entry(side: .client, rule: "RFC 6120 §6.5.3", advice: "set a new password, or get a new token")
        case .temporaryFailure:
            Entry(
                side: .server,
                rule: "RFC 6120 §6.5.11",
                advice: "try again; if it stays, look in the server's log for its account database"
            )
        case .malformedRequest:
            Entry(
                side: .client,
                rule: "RFC 6120 §6.5.8",
                advice: "look at the client's SASL messages; servers say the same of a wrong channel binding"
            )
        case .invalidAuthorization:
            Entry(
                side: .client,
                rule: "RFC 6120 §6.5.6",
                advice: "leave the authorization identity empty, unless the account may act for others"
            )
        case .clientAborted:
            Entry(
                side: .client,
                rule: "RFC 6120 §6.4.4",
                advice: "look in the client's log: it does not believe the server, or lacks a password"
            )
        case .plainDowngrade:
            Entry(
                side: .client,
                rule: "RFC 4616 §5",
                advice: "find out why the first mechanism failed, and forbid PLAIN in the client: it has now shown its "
                    + "password, which should be changed if the connection was not encrypted"
            )
        case .handshakeRefused:
            Entry(
                side: .client,
                rule: "XEP-0114 §3",
                advice: "compare the component's secret with the server's (component_secret), and its name"
            )
        default:
            Entry(
                side: .client,
                rule: "XEP-0220 §2",
                advice: "check that the domain's own server can be reached and answers for its keys"
            )
        }
    }

    var bindingEntry: Entry {
        switch self {
        case .bindingDenied:
            Entry(
                side: .client,
                rule: "RFC 5802 §6",
                advice: "let the client see and use the server's -PLUS mechanisms, or let it say n; "
                    + "behind a proxy that takes them out this login cannot work, unless the proxy has the account's "
                    + "password (--accounts)"
            )
        case .bindingMismatch:
            Entry(
                side: .tap,
                rule: "RFC 5802 §6, RFC 5056 §2",
                advice:
                    "give the proxy the account's password (--accounts), so that it logs in on each leg by itself, or for "
                    + "tls-server-end-point the server's certificate and key (--certificate, --key), pass TLS through "
                    + "(--tls passthrough), or switch channel binding off in the client"
            )
        case .mechanismsAltered:
            Entry(
                side: .tap,
                rule: "XEP-0474",
                advice: "leave the mechanisms as the server offers them, give the proxy the account's password "
                    + "(--accounts), or pass TLS through (--tls passthrough)"
            )
        default:
            Entry(
                side: .tap,
                rule: "XEP-0515",
                advice: "let client and server use the same version of TLS, give the proxy the account's password "
                    + "(--accounts), or pass TLS through (--tls passthrough)"
            )
        }
    }
}
