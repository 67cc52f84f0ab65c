internal import COpenSSL

extension TLSFault {
    /// Takes the cause out of this thread's error queue.
    ///
    /// - Parameters:
    ///   - call: The call that failed, named where OpenSSL gives no cause.
    ///   - alertReceived: The last fatal alert that came, which beats every other cause.
    ///   - alertSent: The fatal alert that was sent.
    ///   - faults: What was found wrong with the peer's certificate.
    init(call: String, alertReceived: TLSAlert?, alertSent: TLSAlert?, certificate faults: [CertificateFault]) {
        self.init(
            Self.code(Self.takeCause(), call, alertReceived: alertReceived, certificate: faults),
            alertSent: alertSent
        )
    }

    /// The first error of TLS itself, or else the first of all: the one that the others follow from.
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
        // Reasons that belong to no library (out of memory, an error inside OpenSSL) and those of other libraries.
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
