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
