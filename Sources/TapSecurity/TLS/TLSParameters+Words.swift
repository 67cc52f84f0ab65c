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

    /// What is wrong with the server's certificate and was let pass, as a clause; nil where nothing is.
    public var overlookedWords: String? {
        overlooked.isEmpty ? nil : overlooked.map(\.words).joined(separator: "; ")
    }
}

extension TLSFault {
    /// What can be done about a failure on the client's leg that is not about the certificate; nil where nothing is known.
    public var adviceForClient: String? {
        switch code {
        case .notTLS: "what came in place of TLS was sent too early, or is not meant for this port"
        case .version: "lower the least version by --tls-min, if the client cannot do better"
        default: nil
        }
    }

    /// What can be done about a failure on the server's leg; nil where nothing is known.
    public var adviceForServer: String? {
        switch code {
        case .untrusted(let faults):
            switch faults.first?.code {
            case .selfSigned, .unknownIssuer:
                "name its authority, or the certificate itself, by --upstream-ca FILE"
            case .expired, .notYetValid: "renew it on the server, and look at the clocks of both machines"
            case .wrongName: "the certificate must name the domain of the JID, whatever host the server runs on"
            default: "for a test alone: --upstream-insecure"
            }
        case .version, .alertReceived(.protocolVersion):
            "an old server may need --tls-min 1.0"
        case .noSharedCipher: "an old server may need --tls-min 1.0"
        case .notTLS: "the server does not speak TLS here; look at the port"
        default: nil
        }
    }
}
