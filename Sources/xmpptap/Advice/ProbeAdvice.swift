internal import TapDiagnosis
internal import TapRecord

extension LoginDiagnosis {
    /// Returns the advice, with the flags of `probe` instead of those of `proxy`.
    ///
    /// - Parameter isDirect: Whether the probe used direct TLS.
    func probeAdvice(isDirect: Bool) -> String {
        let advice = self.advice ?? AdviceTable.advice(for: remedy)
        return switch (cause, loginStep) {
        case (.nameNotFound, _):
            "check the spelling of the domain and its DNS records (xmpptap doctor --upstream-domain), or name the server "
                + "with --via HOST:PORT"
        case (.certificateUnknownIssuer, _):
            "install the complete certificate chain on the server, or trust its issuer with --upstream-ca FILE"
        case (.certificateRefused, _):
            "check the server's certificate and its chain, or the fingerprint given with --pin"
        case (.tlsIncompatible, _): "update the older side"
        case (.tlsExpected, _): "use the server's port for STARTTLS (usually 5222), or use --direct-tls"
        case (.bindingMismatch, _):
            "give the proxy the account's password (--accounts), let it pass TLS through (--tls passthrough), or log in "
                + "without channel binding (--no-binding)"
        // A server that expects direct TLS on this port does not report that.
        case (.serverGone, .streamOpen), (.serverSilent, .streamOpen), (.notXMPP, .streamOpen):
            isDirect ? advice : "check the server's log; if the port expects direct TLS, use --direct-tls"
        case (.tlsFailed, .tls), (.tlsUnexpected, .tls):
            isDirect ? "\(advice); if the port expects STARTTLS, leave out --direct-tls" : advice
        default: advice
        }
    }

    /// The name of the step that failed.
    var step: String {
        if cause == .hostMetaUnusable { return "host-meta" }
        if cause == .webSocketRefused { return "WebSocket" }
        return switch loginStep {
        case .tls, .sasl, .sasl2, .startTLS: loginStep.rawValue.uppercased()
        case .nameLookup: "DNS look-up"
        default: loginStep.rawValue.replacing("-", with: " ")
        }
    }

    /// The location of the cause, from the view of the probe, which is the client.
    var place: String {
        switch side {
        case .client: "cause: the account or this machine, not the server"
        case .server: "cause: the server"
        case .unknown: "cause: unknown"
        case .network: "cause: the network between this machine and the server"
        case .tap: "cause: a proxy that intercepts TLS"
        }
    }

    /// Whether the failure is that no server was reached.
    var isOfNetwork: Bool {
        switch cause {
        case .nameNotFound, .serviceNotOffered, .lookupFailed, .connectionRefused, .connectionTimeout,
            .serverUnreachable, .hostMetaUnusable, .webSocketRefused:
            true
        default: false
        }
    }
}
