// What is known of the causes in authentication, independent of the session.
extension LoginCause {
    var authenticationEntry: Entry {
        switch self {
        case .ownLoginRefused:
            Entry(
                side: .tap,
                rule: "RFC 6120 §6.5",
                advice:
                    "compare the password in --accounts with the server's; the client's password is the one in the file"
            )
        case .serverNotProven:
            Entry(
                side: .server,
                rule: "RFC 5802 §5",
                advice: "do not trust this server until the reason is known: check its certificate, its SCRAM "
                    + "implementation, and whether there is an intermediary"
            )
        case .noCommonMechanism:
            Entry(
                side: .client,
                rule: "RFC 6120 §6.3.3",
                advice: "compare the offered mechanisms with those that the client supports and allows; "
                    + "many clients send no password without TLS"
            )
        case .mechanismTooWeak:
            Entry(
                side: .client,
                rule: "RFC 6120 §6.5.4, §6.5.9",
                advice: "use TLS, or a mechanism that does not reveal the password (SCRAM)"
            )
        case .wrongPassword: Entry(side: .client, rule: "RFC 6120 §6.5.10", advice: "check the password")
        case .unknownUser:
            Entry(
                side: .client,
                rule: "RFC 6120 §6.5.10",
                advice: "check the user name and the domain, and whether the account exists on this server"
            )
        case .notAuthorized:
            Entry(
                side: .client,
                rule: "RFC 6120 §6.5.10",
                advice: "check user name, domain and password; the server's log may say which is wrong"
            )
        case .accountDisabled:
            Entry(side: .server, rule: "RFC 6120 §6.5.2", advice: "ask the server's operator to enable the account")
        case .credentialsExpired:
            Entry(side: .client, rule: "RFC 6120 §6.5.3", advice: "set a new password, or get a new token")
        case .temporaryFailure:
            Entry(
                side: .server,
                rule: "RFC 6120 §6.5.11",
                advice: "try again; if it fails again, check the server's log for its account database"
            )
        case .malformedRequest:
            Entry(
                side: .client,
                rule: "RFC 6120 §6.5.8",
                advice: "check the client's SASL messages; servers report wrong channel binding in the same way"
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
                advice: "check the client's log: it does not trust the server, or has no password"
            )
        case .plainDowngrade:
            Entry(
                side: .client,
                rule: "RFC 4616 §5",
                advice: "find out why the first mechanism failed, and disable PLAIN in the client: it has revealed its "
                    + "password; change it if the connection was not encrypted"
            )
        case .handshakeRefused:
            Entry(
                side: .client,
                rule: "XEP-0114 §3",
                advice: "compare the component's secret and name with those in the server (component_secret)"
            )
        default:
            Entry(
                side: .client,
                rule: "XEP-0220 §2",
                advice: "check that the domain's server can be reached and verifies its dialback keys"
            )
        }
    }

    var bindingEntry: Entry {
        switch self {
        case .bindingDenied:
            Entry(
                side: .client,
                rule: "RFC 5802 §6",
                advice: "let the client see and use the server's -PLUS mechanisms, or let it send the gs2 flag n; "
                    + "through a proxy that removes them this login works only if the proxy has the account's password "
                    + "(--accounts)"
            )
        case .bindingMismatch:
            Entry(
                side: .tap,
                rule: "RFC 5802 §6, RFC 5056 §2",
                advice:
                    "give xmpptap the account's password (--accounts), or for tls-server-end-point the server's "
                    + "certificate and key (--certificate, --key), pass TLS through (--tls passthrough), or disable "
                    + "channel binding in the client"
            )
        case .mechanismsAltered:
            Entry(
                side: .tap,
                rule: "XEP-0474",
                advice: "relay the server's mechanisms unchanged, give xmpptap the account's password (--accounts), or "
                    + "pass TLS through (--tls passthrough)"
            )
        default:
            Entry(
                side: .tap,
                rule: "XEP-0515",
                advice: "use the same TLS version in client and server, give xmpptap the account's password "
                    + "(--accounts), or pass TLS through (--tls passthrough)"
            )
        }
    }
}
