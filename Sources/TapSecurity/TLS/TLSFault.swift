/// Why TLS on a leg failed: who found the fault, and which.
public struct TLSFault: Error, Sendable, Hashable {
    /// What happened. More may be added.
    public enum Code: Sendable, Hashable {
        /// The peer ended it with an alert.
        case alertReceived(TLSAlert)
        /// The peer's certificate does not stand for whom it should; one or more faults.
        case untrusted([CertificateFault])
        /// The peer sent something that is no TLS.
        case notTLS
        /// No version in common.
        case version
        /// No cipher suite, group or signature algorithm in common.
        case noSharedCipher
        /// The peer offers other protocols by ALPN.
        case noSharedProtocol
        /// A record with a length that no record may have.
        case recordTooLong
        /// A record that cannot be decrypted or verified.
        case badRecord
        /// The connection ended before the handshake did.
        case endedInHandshake
        /// The peer broke the protocol otherwise; OpenSSL's word for it.
        case protocolError(String)
        /// OpenSSL failed for a reason that is not the peer's; its words.
        case failed(String)
    }

    /// What happened.
    public let code: Code
    /// The fatal alert that was sent to the peer, if any.
    public let alertSent: TLSAlert?

    /// A fault of these parts.
    public init(_ code: Code, alertSent: TLSAlert? = nil) {
        self.code = code
        self.alertSent = alertSent
    }

    /// Whether the peer refused the certificate that it was shown.
    public var isRefusedCertificate: Bool {
        if case .alertReceived(let alert) = code { alert.isAboutCertificate } else { false }
    }

    /// The fatal alert that the peer sent, if any.
    public var alertReceived: TLSAlert? {
        if case .alertReceived(let alert) = code { alert } else { nil }
    }

    /// A stable code, for records.
    public var name: String {
        switch code {
        case .alertReceived: "tls-alert"
        case .untrusted(let faults): faults.first?.name ?? "tls-untrusted"
        case .notTLS: "tls-not-tls"
        case .version: "tls-version"
        case .noSharedCipher: "tls-no-shared-cipher"
        case .noSharedProtocol: "tls-no-shared-protocol"
        case .recordTooLong: "tls-record-too-long"
        case .badRecord: "tls-bad-record"
        case .endedInHandshake: "tls-ended-in-handshake"
        case .protocolError: "tls-protocol-error"
        case .failed: "tls-failed"
        }
    }

    /// What happened, as a sentence whose subject is the peer.
    ///
    /// - Parameter peer: The peer with its article, `the server`.
    public func words(peer: String) -> String {
        switch code {
        case .alertReceived(let alert): "\(peer) \(alert.words) (alert \(alert.name))"
        case .untrusted(let faults):
            "the certificate of \(peer) is not trusted: " + faults.map(\.words).joined(separator: "; ")
        case .notTLS: "\(peer) sent data that is not TLS"
        case .version: "\(peer) offers no allowed TLS version"
        case .noSharedCipher: "\(peer) offers no allowed cipher suite, group or signature algorithm"
        case .noSharedProtocol: "\(peer) offers no supported ALPN protocol"
        case .recordTooLong: "\(peer) sent a record longer than TLS allows, or data that is not TLS"
        case .badRecord: "\(peer) sent a record that cannot be decrypted, or it was modified in transit"
        case .endedInHandshake: "\(peer) closed the connection during the handshake, without an alert"
        case .protocolError(let reason): "\(peer) violated the TLS protocol: \(reason)"
        case .failed(let reason): "TLS with \(peer) failed: \(reason)"
        }
    }
}

extension TLSFault: CustomStringConvertible {
    /// One line for people.
    public var description: String { words(peer: "the peer") }
}
