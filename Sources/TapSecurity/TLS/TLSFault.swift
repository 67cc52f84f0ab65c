internal import COpenSSL

/// The reason why TLS on a leg failed.
package struct TLSFault: Error, Sendable, Hashable {
    /// The kind of failure. More kinds may be added.
    package enum Code: Sendable, Hashable {
        /// The peer ended TLS with an alert.
        case alertReceived(TLSAlert)
        /// The peer's certificate does not match the expected identity or is not valid; one or more faults.
        case untrusted([CertificateFault])
        /// The peer sent data that is not TLS.
        case notTLS
        /// The peers have no TLS version in common.
        case version
        /// The peers have no cipher suite, group or signature algorithm in common.
        case noSharedCipher
        /// The peer offers only other protocols with ALPN.
        case noSharedProtocol
        /// The length of a record exceeds the maximum of TLS.
        case recordTooLong
        /// A record cannot be decrypted or verified.
        case badRecord
        case endedInHandshake
        /// The peer violated the protocol in another way, with OpenSSL's description.
        case protocolError(String)
        /// OpenSSL failed for a reason other than the peer, with OpenSSL's description.
        case failed(String)
    }

    /// The kind of failure.
    package let code: Code
    /// The fatal alert that was sent to the peer, if any.
    package let alertSent: TLSAlert?

    package init(_ code: Code, alertSent: TLSAlert? = nil) {
        self.code = code
        self.alertSent = alertSent
    }

    /// Whether the peer rejected the certificate that it received.
    package var isRefusedCertificate: Bool {
        if case .alertReceived(let alert) = code { alert.isAboutCertificate } else { false }
    }

    /// The fatal alert that the peer sent, if any.
    package var alertReceived: TLSAlert? {
        if case .alertReceived(let alert) = code { alert } else { nil }
    }

    /// A stable code, for records.
    package var name: String {
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

    /// The failure, as a sentence with the peer as its subject.
    ///
    /// - Parameter peer: The peer with its article, `the server`.
    package func explanation(peer: String) -> String {
        switch code {
        case .alertReceived(let alert): "\(peer) \(alert.meaning) (alert \(alert.name))"
        case .untrusted(let faults):
            "the certificate of \(peer) is not trusted: " + faults.map(\.explanation).joined(separator: "; ")
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
    /// A human-readable line.
    package var description: String { explanation(peer: "the peer") }
}

extension TLSFault {
    /// Creates a fault from this thread's error queue, and clears the queue.
    ///
    /// - Parameters:
    ///   - call: The call that failed, named if OpenSSL gives no cause.
    ///   - alertReceived: The last fatal alert that was received; it takes precedence over every other cause.
    ///   - alertSent: The fatal alert that was sent.
    ///   - faults: Problems of the peer's certificate.
    init(call: String, alertReceived: TLSAlert?, alertSent: TLSAlert?, certificate faults: [CertificateFault]) {
        self.init(
            Self.code(Self.takeCause(), call, alertReceived: alertReceived, certificate: faults),
            alertSent: alertSent
        )
    }

    /// Returns the first error of the TLS library, or else the first of all errors, because later errors are
    /// consequences. Clears the queue.
    private static func takeCause() -> UInt {
        var cause: UInt = 0
        while true {
            let error = ERR_get_error()
            guard error != 0 else { return cause }
            if xmpptap_error_library(error) == ERR_LIB_SSL, xmpptap_error_is_common(error) == 0 {
                ERR_clear_error()
                return error
            }
            if cause == 0 { cause = error }
        }
    }

    private static func code(
        _ error: UInt,
        _ call: String,
        alertReceived: TLSAlert?,
        certificate faults: [CertificateFault]
    ) -> Code {
        if let alertReceived { return .alertReceived(alertReceived) }
        guard error != 0 else { return .failed("\(call) failed") }
        let text = ERR_reason_error_string(error).map { String(cString: $0) } ?? "error \(error)"
        // Errors without a library (out of memory, an error inside OpenSSL), and errors of other libraries.
        guard xmpptap_error_library(error) == ERR_LIB_SSL, xmpptap_error_is_common(error) == 0 else {
            return .failed(text)
        }
        switch xmpptap_error_reason(error) {
        case SSL_R_CERTIFICATE_VERIFY_FAILED where !faults.isEmpty: return .untrusted(faults)
        case SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST, SSL_R_HTTPS_PROXY_REQUEST, SSL_R_UNKNOWN_PROTOCOL,
            SSL_R_BAD_RECORD_TYPE, SSL_R_RECORD_LENGTH_MISMATCH:
            return .notTLS
        case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_NO_PROTOCOLS_AVAILABLE, SSL_R_VERSION_TOO_LOW,
            SSL_R_WRONG_SSL_VERSION, SSL_R_BAD_PROTOCOL_VERSION_NUMBER:
            return .version
        case SSL_R_NO_SHARED_CIPHER, SSL_R_NO_SHARED_GROUPS, SSL_R_NO_SUITABLE_KEY_SHARE,
            SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS, SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
            return .noSharedCipher
        case SSL_R_NO_APPLICATION_PROTOCOL: return .noSharedProtocol
        case SSL_R_PACKET_LENGTH_TOO_LONG, SSL_R_ENCRYPTED_LENGTH_TOO_LONG, SSL_R_DATA_LENGTH_TOO_LONG:
            return .recordTooLong
        case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC, SSL_R_DECRYPTION_FAILED:
            return .badRecord
        default: return .protocolError(text)
        }
    }
}
