internal import TapCapture
internal import TapControl
internal import TapDiagnosis
internal import TapNetwork
internal import TapRecord
internal import TapReplay
internal import TapSecurity

/// Advice for failed logins: all texts that name flags, subcommands or server settings.
///
/// Each text is an imperative clause, in lower case and without a final stop.
enum AdviceTable {
    static func advice(for remedy: Remedy) -> String {
        switch remedy {
        case .usual(let cause): advice(for: cause)
        case .observed(let cause): wordsWithoutProxy(for: cause)
        case .useLocalPart: "use the part of the JID before the @ as the user name; most servers expect that"
        case .checkCredential(.password): advice(for: .notAuthorized)
        case .checkCredential(.certificate):
            "check that the server trusts the issuer of the client's certificate, and that the certificate names the account"
        case .checkCredential(.token): "get a new token; the server's log may say what is wrong with this one"
        case .checkCredential(.none): "allow anonymous logins for this domain on the server, or log in with an account"
        case .compareLogs: "compare the logs of the client and the server at this time"
        case .startTLS: "use STARTTLS before the login: enable TLS in the client"
        case .offerBinding: "check the server's modules and its log: after a login it must offer resource binding"
        case .removeLineBreaks:
            "encode the message without line breaks: many encoders insert one after 64 or 76 characters"
        case .removeDeclaration: "send the XML declaration only in front of a stream header"
        case .checkUpstream: "name the server's port for XMPP clients (usually 5222) with --upstream HOST:PORT"
        case .checkOwnAccount: "check the account in --accounts, and the server's answer in the records above"
        case .comparePassword: "compare the client's password with the one in --accounts"
        case .changeBindingType:
            "let the client use an offered channel-binding type or PLAIN, or use a newer client with tls-exporter "
                + "(RFC 9266)"
        case .addKey(let mechanism): "add the password, or a stored key for \(mechanism), to the account's file"
        case .addAccount:
            "add the account to the file of --accounts, or disable channel binding in the client"
        case .offerMechanism:
            "enable SCRAM on the server; PLAIN needs TLS with a verified certificate, EXTERNAL needs "
                + "--upstream-certificate, stored keys need the client's mechanism"
        case .giveClientCertificate: "give xmpptap the client's certificate and key with --upstream-certificate"
        case .refuseOversize: "raise the limit with --limit item, or end such sessions with --on-oversize refuse"
        case .changeClientTLS: "change it with --client-tls"
        case .changeServerTLS: "change it with --server-tls"
        case .allowClearClients: "enable TLS in the client, or allow plain connections with --client-tls off"
        case .giveServerCertificate: "use the server's own certificate and key with --certificate and --key"
        case .allowSender: "if it is your proxy, add it with --proxy-protocol-from"
        case .listTarget:
            "list its domain with --upstream-domain or its address with --upstream, or relay such targets without "
                + "decoding with --relay-others"
        case .tryOtherPort:
            "check the server's log; if the port expects direct TLS, use the port for STARTTLS (usually 5222) or "
                + "--server-tls direct"
        case .checkServerPort: "the server does not use TLS on this port; check the port"
        case .checkClientPort: "the client sent plaintext too early, or uses the wrong port"
        case .lowerVersionForClient: "lower the minimum version with --tls-min, if the client has no newer one"
        case .lowerVersionForServer: "an old server may need --tls-min 1.0"
        case .trustIssuer: "trust its issuer with --upstream-ca FILE, or this certificate with --pin SHA256"
        case .renewCertificate: "renew it on the server, and check the clocks of both machines"
        case .nameDomain: "the certificate must name the domain of the JID, not the server's host name"
        case .comparePin:
            "check whether the server has a new certificate; if so, give its fingerprint with --pin"
        case .overlookFaults: "for tests only: --upstream-insecure"
        case .nameServer(let naming, nil): "let the client \(phrase(for: naming))"
        case .nameServer(let naming, .domain?):
            "let the client \(phrase(for: naming)), or use --upstream-domain DOMAIN instead of --upstream"
        case .nameServer(let naming, .host(let host, let port)?):
            "let the client \(phrase(for: naming)), or use the name in the upstream's certificate: "
                + "--upstream \(host):\(port)"
        case .allowClientUse:
            "use a certificate for both roles (serverAuth and clientAuth), or a receiving server that accepts one for TLS "
                + "servers only (Prosody, ejabberd from 25.08), or allow dialback"
        case .checkClientLog:
            "this is the server's own certificate (--certificate); check the client's log for the reason"
        case .trustAuthority(let trust): advice(for: trust)
        case .changeAuthority(let change, let folder):
            advice(for: change, folder.map { AuthorityFolder($0).flag } ?? "")
        }
    }

    private static func advice(for change: Remedy.AuthorityChange, _ flag: String) -> String {
        func command(_ verb: String, _ domain: String?, _ option: String = "") -> String {
            "'xmpptap ca \(verb) --domain \(LineBuffer.escaped(domain ?? "DOMAIN"))\(option)\(LineBuffer.escaped(flag))'"
        }
        func recreation(_ domain: String?) -> String {
            "recreate it with \(command("remove", domain)) and \(command("create", domain)), and trust the new one"
        }
        return switch change {
        case .create(let domain): "create one with \(command("create", domain))"
        case .createAnother(let domain): "create another with \(command("create", domain))"
        case .confirm(let domain):
            "use your own domain, or confirm with \(command("create", domain, " --allow-public-suffix"))"
        case .createBeyond(let limit, let domain):
            "create it with \(command("create", domain)), remove others, or raise the limit (--limit authorities=\(limit))"
        case .recreate(let domain): recreation(domain)
        case .protect(let path, let mode, let domain):
            "if nobody has, run 'chmod \(mode) \(LineBuffer.escaped(path))', otherwise \(recreation(domain))"
        case .replaceFolder(let domain):
            "move the folder away, and recreate it with \(command("create", domain))"
        case .useOwnFolder: "use your own folder with --ca-dir"
        case .checkLibrary: "see 'xmpptap doctor'"
        }
    }

    private static func phrase(for naming: Remedy.ClientNaming) -> String {
        switch naming {
        case .serverName: "send SNI"
        case .header: "name the domain in its stream header (to)"
        }
    }

    /// Returns how to make this client trust the authority; for an unknown client, with the certificate's file and a
    /// pointer to the manual page.
    private static func advice(for trust: Remedy.AuthorityTrust) -> String {
        let flag = trust.folder.map { AuthorityFolder($0).flag } ?? ""
        let export = "'xmpptap ca export --domain \(trust.domain)\(flag)'"
        if let server = trust.server {
            let file = trust.certificate.map { " (\(AuthorityFolder.word($0)))" } ?? ""
            return
                "let \(LineBuffer.escaped(server)) trust the certificate authority for \(trust.domain)\(file), which \(export) prints: "
                + "see 'xmpptap help federation'"
        }
        let client = ClientTrust.matching(trust.client)
        var advice: String
        if let client, let file = trust.certificate {
            let steps = client.steps(file: AuthorityFolder.word(file), authority: trust.domain).joined(separator: ", ")
            advice =
                "to let \(client.name)\(client.isByName ? " (seen at this address)" : "") trust the certificate authority for \(trust.domain): \(steps); on another machine, "
                + "get the file with \(export)"
        } else {
            let file = trust.certificate.map { " (\(AuthorityFolder.word($0)))" } ?? ""
            advice =
                "let the client trust the certificate authority for \(trust.domain)\(file): \(export) prints it with "
                + "instructions for each client, and so does 'xmpptap help clients'"
        }
        if let missing = trust.missing {
            advice +=
                "; if it expects a name that the certificate lacks, let it \(phrase(for: missing)), or use a --ca-dir with "
                + "an authority for that name alone"
        }
        guard trust.isUnconfirmed else { return advice }
        if client == nil {
            advice +=
                "; Android apps accept a user-installed authority only if they opt in; on iOS, enable full trust for it"
        }
        return advice
            + "; a client with certificate pinning, DANE or POSH needs the server's own certificate (--certificate, --key) "
            + "or --tls passthrough"
    }
}

// Advice if no certificate authority can be used.
extension AdviceTable {
    /// Returns an error with its advice, as one line.
    static func line(_ error: AuthorityError, in folder: AuthorityFolder) -> String {
        error.remedy(in: folder).map { "\(error); \(advice(for: $0))" } ?? "\(error)"
    }
}

extension AuthorityFolder {
    /// The flag that selects this folder in an `xmpptap ca` command, with a leading space; empty for the default
    /// folder.
    var flag: String { isUsual ? "" : " --ca-dir \(Self.word(path))" }

    /// Returns a word for a shell, quoted if necessary.
    static func word(_ text: String) -> String {
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            default: "/._-+:@,=%".utf8.contains(byte)
            }
        }
        guard !isPlain || text.isEmpty else { return text }
        return "\"" + String(text.flatMap { "\"\\$`".contains($0) ? ["\\", $0] : [$0] }) + "\""
    }
}

// Advice for files that cannot be read, or with content that is incomplete or out of order.
extension AdviceTable {
    /// Advice for a recording that cannot be replayed.
    static let recordWhole =
        "record a whole session with 'xmpptap proxy --upstream HOST:PORT --tls intercept --capture FILE.xtap'"

    /// Advice for records that are out of order.
    static let recordedOrder =
        "name the files in the order in which they were written, and leave their records in that order"

    /// Returns the advice for a recording of `record-test` that cannot be replayed.
    static func recordAgain(_ capture: String) -> String {
        let file = AuthorityFolder.word(capture)
        return "see why with 'xmpptap explain \(file)', remove \(file), and record again"
    }

    /// Returns the instruction shown while `record-test` records.
    ///
    /// - Parameter folder: The folder given with `--ca-dir`; nil for the default one.
    static func recordTest(authorities folder: String?) -> String {
        let flag = folder.map { " --ca-dir \(AuthorityFolder.word($0))" } ?? ""
        return
            "log in through this proxy with a client that trusts its CA (see 'xmpptap ca export\(flag)'), log out, then "
            + "press Ctrl-C"
    }

    /// Returns the advice for a recording whose replay differs although nothing was changed, so that it is not usable
    /// as a test.
    ///
    /// - Parameter prepares: Whether rosters were restored before each replay.
    static func unlearned(_ dependences: [RecordingDependence], prepares: Bool) -> [String] {
        let lines = restoring(dependences, prepares: prepares)
        guard lines.isEmpty else { return lines }
        return ["the differences are not noise: the server's data may have changed; restore them before each replay"]
    }

    /// Returns the advice for a recording that depends on the server's data, one line for each dependence.
    static func restoring(_ dependences: [RecordingDependence], prepares: Bool) -> [String] {
        dependences.compactMap { dependence in
            switch dependence {
            case .storedMessages(let account, let count):
                "\(account) received \(count) \(count == 1 ? "message" : "messages") that the server had stored before: log "
                    + "in once to receive them, then record again"
            case .rosterChange(let account):
                prepares ? nil : "\(account) changes its roster: record again with --prepare, which restores it"
            case .storedData(let account, let namespace):
                "\(account) stores data in \(namespace): remove them at the end of the session, or use a fresh server"
            case .archive(let account):
                "\(account) reads an archive, to which each replay adds messages: query from the start of the session on, or "
                    + "use a fresh server"
            }
        }
    }

    /// Returns the advice for a replay that lacks redacted values.
    ///
    /// - Parameter placeholder: The placeholder of a missing value, such as `[redacted:token#3]`.
    static func missingValue(_ placeholder: String) -> String {
        let name = placeholder.hasPrefix("[redacted:") ? String(placeholder.dropFirst(10).dropLast()) : placeholder
        return "supply each value that the recording lacks in a file: --value \(name)=@FILE"
    }

    /// Returns the advice for a replay that needs more connections than files may be open; nil if the limit suffices.
    static func descriptors(_ limit: UInt64, connections: Int) -> String? {
        let needed = connections + 64
        guard limit < needed else { return nil }
        return "\(connections) connections may be open at the same time, but only \(limit) files; raise the limit with "
            + "'ulimit -n \(needed)'"
    }

    /// Returns the advice for differences that `--update` cannot add to the noise file.
    static func unlearned(_ count: Int, _ path: String) -> String {
        "\(count) \(count == 1 ? "divergence" : "divergences") not added to \(path): stanzas that are missing, unexpected or "
            + "became other ones are not noise; fix the server, or record again"
    }

    /// Returns the advice for a replay that did not reach its end; nil if there is none.
    static func advice(for code: ReplayRun.Failure.Code) -> String? {
        switch code {
        case .unreachable: "check --to, and that the server runs"
        case .untrusted: "name the certificate of its CA with --upstream-ca FILE, or its own with --pin SHA256"
        case .silent: "check that --to is a port for clients that begin without TLS"
        case .incomplete: "give a slow server more time with --wait"
        case .notAuthorized: "check its password file, or create the account with --register"
        case .other, .interrupted: nil
        }
    }

    static func advice(for code: ReaderFault.Code) -> String? {
        switch code {
        case .notOurs:
            "xmpptap help clients says how to get a log with XML from each client; or record with --capture FILE"
        case .otherFormat(let format): advice(for: format)
        case .cannotOpen, .cannotRead, .empty, .packets, .compressed, .newerVersion: nil
        }
    }

    private static func advice(for format: FileFormat) -> String {
        switch format {
        case .textLog:
            "record in the form text at level verbose (pretty and compact cannot be read), or with --capture FILE or --log-to "
                + "FILE,format=json"
        case .headerless: "add the first line of the original log"
        case .zstd: "install libzstd.so.1, or unpack it first, as in zstd -dc FILE | xmpptap read -"
        case .gzip, .bzip2, .xz: "unpack it first, as in \(format) -dc FILE | xmpptap read -"
        case .zip: "unpack it first, as in unzip -p FILE | xmpptap read -"
        case .image, .svg, .html, .pdf, .sqlite: "name the log or capture instead"
        }
    }
}

// Advice if a proxy cannot start or has stopped.
extension AdviceTable {
    static func advice(for code: ProxyError.Code) -> String {
        switch code {
        case .remoteNotAllowed: "use --allow-remote to allow this, or listen on 127.0.0.1"
        case .relaysToItself: "use the XMPP server's address"
        case .portInUse: "stop that program, or choose another port with --listen (0 lets the system choose)"
        case .portNotAllowed: "choose another port with --listen"
        case .noLoopback: "use --listen HOST:PORT"
        case .cannotListen: "use an address of this machine with --listen HOST:PORT"
        case .unknownResolver: "use its IP address with --resolver"
        case .listenerLost: "restart the proxy"
        }
    }
}

// Advice if the address of the upstream is invalid.
extension AdviceTable {
    static func advice(for code: EndpointError.Code) -> String? {
        code == .domain ? "for the server of a domain use --upstream-domain" : nil
    }
}

// Advice if a proxy cannot be controlled, or refuses a command.
extension AdviceTable {
    static func advice(for code: ControlError.Code) -> String? {
        switch code {
        case .inUse: "stop it, or choose another path with --control"
        case .notSocket: "remove it, or choose another path with --control"
        case .tooLong: "choose a shorter one with --control"
        case .foreignFolder: "choose another path with --control"
        case .portInUse: "stop that program, or choose another port"
        case .system: nil
        }
    }

    static func advice(for error: ControlClientError) -> String? {
        switch error {
        case .noProxy: "start xmpptap proxy, or name its socket with --control"
        case .severalProxies: "choose one with --control"
        case .refused(let problem, _, let answer): problem.flatMap { advice(for: $0) } ?? answer["advice"]?.text
        case .unreachable, .timeout, .ended, .unexpected: nil
        }
    }

    /// Returns the advice for a refused command; nil if the proxy's own advice is to be used.
    static func advice(for problem: ControlProblem) -> String? {
        switch problem {
        case .noSuchSession: "'xmpptap sessions' lists them"
        case .notHeld: "'xmpptap sessions held' lists them"
        case .notReady: "'xmpptap sessions' shows when its phase is ready"
        case .noAnswer, .noBoundary: "wait longer with --timeout"
        case .notRequest: "use --no-wait"
        case .noLog: "start it with --log or --log-to"
        case .noRules: "start it with --rules FILE"
        case .malformedRequest, .noSuchResource, .methodNotAllowed, .wrongHost, .forbidden, .invalidFilter,
            .bodyTooLarge, .bodyTimeout,
            .invalidValue, .tooManyConnections, .stopping, .internalError, .sessionEnded, .editRefused, .notDecoded,
            .invalidStanza,
            .tooManyWaiting, .invalidRules:
            nil
        }
    }
}

// Advice for each cause of a failed login.
extension AdviceTable {
    /// Returns the advice if a recording does not show whether xmpptap was involved; it names no flags and no files of
    /// xmpptap.
    static func wordsWithoutProxy(for cause: LoginCause) -> String {
        switch cause {
        case .nameNotFound: "check the spelling of the domain and its DNS records"
        case .lookupFailed: "check the DNS servers of the client's machine"
        case .legWithoutTLS, .legWithTLS: "check the TLS settings of the client and the server"
        case .certificateUnknownIssuer:
            "install the complete certificate chain on the server, or trust its issuer on the client"
        case .authorityNotTrusted, .certificateNotAccepted, .certificateRefused:
            "check the server's certificate: its chain, its names and its dates; then what the client trusts"
        case .tlsIncompatible: "update the older side, or lower the minimum version of TLS"
        case .tlsExpected: "use direct TLS in the client, or use the server's port for STARTTLS (usually 5222)"
        case .seeOtherHost: "connect to the named host"
        case .notXMPP: "check which host and port the client uses"
        case .ownLoginRefused: advice(for: .notAuthorized)
        case .bindingDenied, .bindingMismatch, .mechanismsAltered, .tlsVersionAltered:
            "look for a program between client and server that ends TLS, or disable channel binding in the client"
        case .domainNotServed: advice(for: .hostUnknown)
        case .endedByTap, .alteredByTap: "see the error above"
        default: advice(for: cause)
        }
    }

    static func advice(for cause: LoginCause) -> String {
        switch cause {
        case .nameNotFound:
            "check the spelling of the domain and its DNS records (xmpptap doctor --upstream-domain), or name "
                + "the server with --upstream HOST:PORT"
        case .hostMetaUnusable:
            "publish host-meta and host-meta.json of the domain over HTTPS, with a wss:// link; or name the WebSocket "
                + "with --ws URL"
        case .webSocketRefused:
            "compare the URL with the server's configuration; often it ends with /xmpp-websocket or /ws"
        case .serviceNotOffered:
            "ask the operator of the domain: its SRV record says that it has no service for clients"
        case .lookupFailed: "check the DNS servers of this machine, or use another with --resolver"
        case .connectionRefused:
            "check that the server runs and listens at this address and port; a firewall can also reject the "
                + "connection"
        case .connectionTimeout: "check the address, and firewalls that drop packets"
        case .serverUnreachable: "check the address and the route to it from this machine"
        case .tlsRequired:
            "enable TLS in the client, or, for a test on this machine, allow plain connections on the server "
                + "(Prosody: c2s_require_encryption = false; ejabberd: starttls_required: false)"
        case .tlsNotOffered:
            "enable TLS with a certificate on the server, or, for a test on this machine, disable it in the client"
        case .legWithoutTLS:
            "enable TLS in the client or the server; only xmpptap proxy can allow plain connections (--client-tls auto, "
                + "--server-tls auto, without --pin and --upstream-ca)"
        case .legWithTLS: "disable TLS in the client, or allow it (--client-tls auto)"
        case .tlsDeclined:
            "check the certificate and key in the server's configuration, and its log: it offers TLS and cannot "
                + "start it"
        case .tlsAlertByClient: "check the client's log for the TLS error"
        case .tlsAlertByServer: "check the server's log for the TLS error"
        case .certificateExpired: "renew the server's certificate"
        case .clockSkew: "set the clocks of both machines; for one of them the certificate is not valid yet"
        case .certificateWrongName:
            "use a certificate for the domain of the JIDs, not for the server's host name, or check the domain "
                + "in the client's configuration"
        case .certificateUnknownIssuer:
            "install the complete certificate chain on the server, or trust its issuer with --upstream-ca FILE, or the "
                + "certificate with --pin SHA256"
        case .authorityNotTrusted: "trust xmpptap's certificate authority on the client: 'xmpptap ca export' prints it"
        case .certificateNotAccepted:
            "trust xmpptap's certificate authority on the client: 'xmpptap ca export' prints it; compare the "
                + "names in the certificate with the domain that the client expects"
        case .certificateRefused:
            "check the server's certificate and its chain, or, for tests only, use --upstream-insecure"
        case .certificateMissing:
            "configure a certificate for connections to other servers, or allow dialback on both servers"
        case .alpnMismatch: "configure the client to offer xmpp-client, or nothing, in ALPN"
        case .tlsIncompatible: "update the older side, or lower the minimum version with --tls-min"
        case .startTLSInjection:
            "check for an attacker between the two; otherwise fix this side: it must wait for the TLS handshake"
        case .tlsExpected:
            "use direct TLS in the client, use the server's port for STARTTLS (usually 5222), or let xmpptap use "
                + "direct TLS to the server (--server-tls direct)"
        case .tlsUnexpected: "use STARTTLS in the client, or use the server's port for direct TLS (usually 5223)"
        case .tlsFailed: "check the port, and the logs of both sides"
        case .notXMPP: "check which program connects, and to which port"
        case .malformedStream: "fix the software that sends this stream; see the error above"
        case .namespaceMismatch:
            "check the port: clients speak jabber:client, servers jabber:server, components "
                + "jabber:component:accept, each on its own port"
        case .versionMismatch: "send version='1.0' in the stream header, or use software that supports XMPP 1.0"
        case .hostUnknown:
            "compare the domain of the JID with the hosts in the server's configuration, and check that this is "
                + "the right server"
        case .seeOtherHost: "connect to the named host, or start xmpptap with that host as --upstream"
        case .resourceConstraint: "try again later, or check the server's limits on sessions and connections"
        case .policyViolation:
            "check the server's log and configuration for the policy; it may be about TLS, rates or sizes"
        case .systemShutdown: "try again when the server is back"
        case .streamError: "look up the condition, and check the server's log"
        case .serverSilent:
            "check the server's log: it did not continue the login"
        case .serverGone: "check the server's log; it closed the stream without a stream error"
        case .clientGaveUp: "check the client's log for the reason"
        case .noMechanismOffered:
            "check the server's authentication settings and its log (Prosody: authentication; ejabberd: auth_method)"
        case .earlyEnable: "send <enable/> after the result of <bind/>, and only if the server offers it"
        case .noCommonMechanism:
            "compare the offered mechanisms with those that the client supports and allows; many clients send no "
                + "password without TLS"
        case .mechanismTooWeak: "use TLS, or a mechanism that does not reveal the password (SCRAM)"
        case .wrongPassword: "check the password"
        case .unknownUser: "check the user name and the domain, and whether the account exists on this server"
        case .notAuthorized: "check user name, domain and password; the server's log may say which is wrong"
        case .ownLoginRefused:
            "compare the password in --accounts with the server's; the client's password is the one in the file"
        case .serverNotProven:
            "do not trust this server until the reason is known: check its certificate, its SCRAM "
                + "implementation, and whether there is an intermediary"
        case .malformedChallenge: "check the server's SASL implementation, and whether there is an intermediary"
        case .accountDisabled: "ask the server's operator to enable the account"
        case .credentialsExpired: "set a new password, or get a new token"
        case .temporaryFailure: "try again; if it fails again, check the server's log for its account database"
        case .malformedRequest: "check the client's SASL messages; servers report wrong channel binding in the same way"
        case .invalidAuthorization: "leave the authorization identity empty, unless the account may act for others"
        case .clientAborted: "check the client's log: it does not trust the server, or has no password"
        case .plainDowngrade:
            "find out why the first mechanism failed, and disable PLAIN in the client: it has revealed its "
                + "password; change it if the connection was not encrypted"
        case .handshakeRefused: "compare the component's secret and name with those in the server (component_secret)"
        case .dialbackFailed: "check that the domain's server can be reached and verifies its dialback keys"
        case .bindingDenied:
            "let the client see and use the server's -PLUS mechanisms, or let it send the gs2 flag n; through a "
                + "proxy that removes them this login works only if the proxy has the account's password (--accounts)"
        case .bindingMismatch:
            "give xmpptap the account's password (--accounts), or for tls-server-end-point the server's "
                + "certificate and key (--certificate, --key), pass TLS through (--tls passthrough), or disable "
                + "channel binding in the client"
        case .mechanismsAltered:
            "relay the server's mechanisms unchanged, give xmpptap the account's password (--accounts), or pass "
                + "TLS through (--tls passthrough)"
        case .tlsVersionAltered:
            "use the same TLS version in client and server, give xmpptap the account's password (--accounts), or "
                + "pass TLS through (--tls passthrough)"
        case .accountExists: "choose another user name, or log in"
        case .registrationNotAllowed:
            "ask the server's operator for an account (Prosody: allow_registration; ejabberd: mod_register)"
        case .registrationRefused: "check the condition, and the server's log"
        case .missingBind: "bind a resource after authentication, before anything else"
        case .conflict: "configure a different resource for each client, or let the server choose it"
        case .bindRefused: "check the condition; the server may limit the sessions per account"
        case .domainNotServed:
            "add the domain with --upstream-domain or --listen, or check the domain in the client's configuration"
        case .endedByTap: "see the error above; limits are set with --limit, rules with --rules"
        case .alteredByTap: "change the rule, or try the login without --rules"
        }
    }
}
