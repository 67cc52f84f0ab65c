internal import COpenSSL
internal import Glibc

/// Verifies the certificate chain of a server, also of one that connects as a TLS client. Collects all faults instead
/// of stopping at the first.
enum CertificateCheck {
    /// Maximum number of faults that are kept for a chain.
    private static let limit = 8

    /// The callback that OpenSSL calls instead of its verification; 1 continues the handshake, as with every certificate
    /// of a client, whose faults the owner of the engine evaluates.
    static let callback: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { store, _ in
        let index = SSL_get_ex_data_X509_STORE_CTX_idx()
        guard let store, let ssl = X509_STORE_CTX_get_ex_data(store, index),
            let engine = TLSEngine.of(OpaquePointer(ssl))
        else { return 0 }
        let faults = faults(store, engine)
        engine.observed.faults = faults
        guard let fault = faults.first, engine.context.role == .client, !engine.context.accepts(fault) else {
            X509_STORE_CTX_set_error(store, X509_V_OK)
            return 1
        }
        X509_STORE_CTX_set_error(store, fault.openSSLCode)
        return 0
    }

    /// Returns the faults of the server's certificate. A pinned certificate is not verified.
    private static func faults(_ store: OpaquePointer, _ engine: TLSEngine) -> [CertificateFault] {
        guard let leaf = X509_STORE_CTX_get0_cert(store), let reference = engine.reference else {
            return judge(store, for: engine.reference, engine)
        }
        let pins = engine.context.pins.filter { $0.covers(reference) }
        guard pins.isEmpty else {
            let shown = CertificateInfo.fingerprint(of: leaf)
            if pins.contains(where: { $0.fingerprint == shown }) { return [] }
            let code = CertificateFault.Code.notPinned(fingerprint: shown)
            return [CertificateFault(code: code, issuer: nil, openSSLCode: X509_V_ERR_CERT_REJECTED)]
        }
        let known = engine.context.known
        if let uses = known.uses(of: leaf, for: reference) {
            engine.observed.uses = uses
            return []
        }
        let faults = judge(store, for: reference, engine)
        if faults.isEmpty { known.recordVerified(leaf, for: reference, uses: engine.observed.uses) }
        return faults
    }

    private static func judge(
        _ store: OpaquePointer,
        for reference: ServerReference?,
        _ engine: TLSEngine
    ) -> [CertificateFault] {
        let observed = engine.observed
        observed.faults = []
        // Many servers have certificates for servers only, also when they connect to others, and many accept them.
        if engine.context.role == .server {
            X509_VERIFY_PARAM_set_purpose(X509_STORE_CTX_get0_param(store), X509_PURPOSE_ANY)
        }
        X509_STORE_CTX_set_verify_cb(store) { ok, store in
            if ok == 0, let store { CertificateCheck.recordFault(store) }
            return 1
        }
        // The callback above lets each fault pass, so the faults that it collects count more than the result.
        let outcome = X509_verify_cert(store)
        ERR_clear_error()
        var faults = observed.faults
        if outcome <= 0, faults.isEmpty { faults.append(fault(X509_STORE_CTX_get_error(store), nil, depth: 0)) }
        guard let leaf = X509_STORE_CTX_get0_cert(store) else { return faults }
        if engine.context.role == .server { observed.uses = CertificateUses(chain: chain(of: store)) }
        if observed.uses.isEmpty {
            faults.append(CertificateFault(code: .wrongPurpose, issuer: nil, openSSLCode: X509_V_ERR_INVALID_PURPOSE))
        }
        guard let reference else { return faults }
        let names = CertificateNames(leaf)
        if !reference.matches(names) {
            faults.append(
                CertificateFault(
                    code: .wrongName(wanted: reference.domain, names: names),
                    issuer: nil,
                    openSSLCode: X509_V_ERR_HOSTNAME_MISMATCH
                )
            )
        }
        return faults
    }

    /// Returns the chain that was built, as borrowed `X509 *`; at least the leaf.
    private static func chain(of store: OpaquePointer) -> [OpaquePointer] {
        let stack = X509_STORE_CTX_get0_chain(store)
        let chain = (0..<max(0, OPENSSL_sk_num(stack))).compactMap { OPENSSL_sk_value(stack, $0) }
        return chain.isEmpty ? [X509_STORE_CTX_get0_cert(store)].compactMap { $0 } : chain.map { OpaquePointer($0) }
    }

    private static func recordFault(_ store: OpaquePointer) {
        let index = SSL_get_ex_data_X509_STORE_CTX_idx()
        guard let ssl = X509_STORE_CTX_get_ex_data(store, index), let engine = TLSEngine.of(OpaquePointer(ssl))
        else { return }
        let fault = fault(
            X509_STORE_CTX_get_error(store),
            X509_STORE_CTX_get_current_cert(store),
            depth: X509_STORE_CTX_get_error_depth(store)
        )
        // OpenSSL reports a missing issuer with two codes, one after the other, but it is one fault.
        guard engine.observed.faults.count < limit, !engine.observed.faults.contains(where: { $0.name == fault.name })
        else { return }
        engine.observed.faults.append(fault)
    }

    private static func fault(_ code: Int32, _ certificate: OpaquePointer?, depth: Int32) -> CertificateFault {
        let subject = depth > 0 ? certificate.map { CertificateInfo.line(X509_get_subject_name($0)) } : nil
        return CertificateFault(code: meaning(of: code, certificate), issuer: subject, openSSLCode: code)
    }

    private static func meaning(of code: Int32, _ certificate: OpaquePointer?) -> CertificateFault.Code {
        let message = X509_verify_cert_error_string(Int(code)).map { String(cString: $0) } ?? "error \(code)"
        let now = Int64(time(nil))
        switch code {
        case X509_V_ERR_CERT_HAS_EXPIRED:
            let end = CertificateTime(certificate.flatMap { X509_get0_notAfter($0) })
            return .expired(at: end, age: now &- end.seconds)
        case X509_V_ERR_CERT_NOT_YET_VALID:
            let start = CertificateTime(certificate.flatMap { X509_get0_notBefore($0) })
            return .notYetValid(from: start, wait: start.seconds &- now)
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT: return .selfSigned
        case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED,
            X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
            return .unknownIssuer(certificate.map { CertificateInfo.line(X509_get_issuer_name($0)) } ?? "unknown")
        case X509_V_ERR_CERT_SIGNATURE_FAILURE, X509_V_ERR_UNABLE_TO_DECRYPT_CERT_SIGNATURE: return .badSignature
        case X509_V_ERR_INVALID_PURPOSE, X509_V_ERR_CERT_REJECTED: return .wrongPurpose
        case X509_V_ERR_INVALID_CA, X509_V_ERR_INVALID_NON_CA, X509_V_ERR_PATH_LENGTH_EXCEEDED,
            X509_V_ERR_KEYUSAGE_NO_CERTSIGN, X509_V_ERR_PERMITTED_VIOLATION, X509_V_ERR_EXCLUDED_VIOLATION,
            X509_V_ERR_SUBTREE_MINMAX, X509_V_ERR_UNSUPPORTED_CONSTRAINT_TYPE,
            X509_V_ERR_UNSUPPORTED_CONSTRAINT_SYNTAX, X509_V_ERR_UNSUPPORTED_NAME_SYNTAX:
            return .badIssuer(message)
        case X509_V_ERR_EE_KEY_TOO_SMALL, X509_V_ERR_CA_KEY_TOO_SMALL, X509_V_ERR_CA_MD_TOO_WEAK:
            return .tooWeak(message)
        case X509_V_ERR_CERT_CHAIN_TOO_LONG: return .chainTooLong
        default: return .other(message)
        }
    }
}
