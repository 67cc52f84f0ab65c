extension TLSParameters {
    /// What was agreed on in a line for people.
    ///
    /// - Parameter peer: The peer with its article, `the server`.
    public func words(peer: String) -> String {
        var words = "\(version) with \(peer): \(suite)"
        if let applicationProtocol { words += ", ALPN \(applicationProtocol)" }
        if let serverName { words += ", SNI \(serverName)" }
        if isResumed { words += ", resumed" }
        if let certificate { words += "; \(certificate.words)" }
        return words
    }

    /// The ignored faults of the server's certificate, as a clause; nil if there are none.
    public var overlookedWords: String? {
        overlooked.isEmpty ? nil : overlooked.map(\.words).joined(separator: "; ")
    }
}

extension TLSFault {
    /// Advice for a failure on the client leg that is not about the certificate, if there is any.
    public var adviceForClient: String? {
        switch code {
        case .notTLS: "the client sent plaintext too early, or uses the wrong port"
        case .version: "lower the minimum version with --tls-min, if the client has no newer one"
        default: nil
        }
    }

    /// Advice for a failure on the server leg, if there is any.
    public var adviceForServer: String? {
        switch code {
        case .untrusted(let faults):
            switch faults.first?.code {
            case .selfSigned, .unknownIssuer:
                "trust its issuer, or the certificate itself, with --upstream-ca FILE"
            case .expired, .notYetValid: "renew it on the server, and check the clocks of both machines"
            case .wrongName: "the certificate must name the domain of the JID, not the server's host name"
            default: "for tests only: --upstream-insecure"
            }
        case .version, .alertReceived(.protocolVersion):
            "an old server may need --tls-min 1.0"
        case .noSharedCipher: "an old server may need --tls-min 1.0"
        case .notTLS: "the server does not use TLS on this port; check the port"
        default: nil
        }
    }
}
