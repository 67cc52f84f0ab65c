internal import TapDiagnosis
internal import TapRecord

extension LoginDiagnosis {
    /// What to try, in the terms of `probe`: its flags are not those of the proxy.
    ///
    /// - Parameter isDirect: The probe began with TLS.
    func probeAdvice(isDirect: Bool) -> String {
        var words = advice
        for (theirs, ours) in Self.terms { words = words.replacing(theirs, with: ours) }
        // A port that is taken for one of the other kind does not say so.
        switch (cause, loginStep) {
        case (.serverGone, .streamOpen), (.serverSilent, .streamOpen), (.notXMPP, .streamOpen):
            let isTold = isDirect || words.contains("--direct-tls")
            return isTold ? words : "\(words); a port where TLS comes first wants --direct-tls"
        case (.tlsFailed, .tls), (.tlsUnexpected, .tls):
            return isDirect ? "\(words); a port where TLS is asked for (STARTTLS) wants no --direct-tls" : words
        default: return words
        }
    }

    private static let terms = [
        ("--upstream-ca FILE", "--ca FILE"), ("--upstream HOST:PORT", "--via HOST:PORT"),
        ("switch channel binding off in the client", "do without by --no-binding"),
        (", or let xmpptap begin TLS with the server (--server-tls direct)", ", or use --direct-tls"),
        ("--server-tls direct", "--direct-tls"),
        (", or, for a test alone, use --upstream-insecure", ""), (", or lower the least version by --tls-min", ""),
    ]

    /// The step that failed, as people call it.
    var step: String {
        switch loginStep {
        case .tls, .sasl, .sasl2, .startTLS: loginStep.rawValue.uppercased()
        case .nameLookup: "the look-up of names"
        default: loginStep.rawValue.replacing("-", with: " ")
        }
    }

    /// Where the cause lies, seen from the probe, which is the client.
    var place: String {
        switch side {
        case .client: "it lies with the account or this machine, not with the server"
        case .server: "it lies with the server"
        case .network: "it lies between this machine and the server"
        case .tap: "it lies with what stands between: a proxy that ends TLS"
        }
    }

    /// Whether no server was reached at all.
    var isOfNetwork: Bool {
        switch cause {
        case .nameNotFound, .serviceNotOffered, .lookupFailed, .connectionRefused, .connectionTimeout,
            .serverUnreachable:
            true
        default: false
        }
    }
}
