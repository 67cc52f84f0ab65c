/// A fault of a server's certificate.
package struct CertificateFault: Sendable, Hashable {
    /// The kind of problem.
    package enum Code: Sendable, Hashable {
        /// The certificate has expired; `age` is the time since then in seconds.
        case expired(at: CertificateTime, age: Int64)
        /// The certificate is not valid yet; `wait` is the time until it is valid, in seconds.
        case notYetValid(from: CertificateTime, wait: Int64)
        /// The certificate does not match the expected name.
        case wrongName(wanted: String, names: CertificateNames)
        /// The certificate is self-signed and not trusted.
        case selfSigned
        /// The chain ends at an issuer that is not trusted, or the server left out a certificate.
        case unknownIssuer(String)
        /// A signature in the chain does not match the issuer's key.
        case badSignature
        /// The certificate was issued for another purpose than a server.
        case wrongPurpose
        /// An issuer in the chain may not issue the certificate: it is not an authority, or its name constraints
        /// exclude the name. The text is OpenSSL's description.
        case badIssuer(String)
        /// The certificate's key, or the hash of its signature, is too weak. The text is OpenSSL's description.
        case tooWeak(String)
        /// The chain is longer than allowed.
        case chainTooLong
        /// Another certificate is pinned for this server; `fingerprint` is the SHA-256 of the server's certificate.
        case notPinned(fingerprint: [UInt8])
        /// Another fault, with OpenSSL's description.
        case other(String)
    }

    /// The kind of problem.
    package let code: Code
    /// The subject of the faulty certificate in the chain; nil if it is the server's certificate.
    package let issuer: String?
    /// OpenSSL's code of the fault, which selects the alert.
    let openSSLCode: Int32

    /// Whether another certificate is pinned. Then the user has chosen the certificate, and nothing else is accepted.
    var isOfPin: Bool { if case .notPinned = code { true } else { false } }

    /// Whether the peers may come to another result, because they trust other issuers or have another clock.
    package var dependsOnTrust: Bool {
        switch code {
        case .selfSigned, .unknownIssuer, .notYetValid, .chainTooLong: true
        default: false
        }
    }

    /// A stable code, for records.
    package var name: String {
        switch code {
        case .expired: "certificate-expired"
        case .notYetValid: "certificate-not-yet-valid"
        case .wrongName: "certificate-wrong-name"
        case .selfSigned: "certificate-self-signed"
        case .unknownIssuer: "certificate-unknown-issuer"
        case .badSignature: "certificate-bad-signature"
        case .wrongPurpose: "certificate-wrong-purpose"
        case .badIssuer: "certificate-bad-issuer"
        case .tooWeak: "certificate-too-weak"
        case .chainTooLong: "certificate-chain-too-long"
        case .notPinned: "certificate-not-pinned"
        case .other: "certificate-refused"
        }
    }

    /// The problem, as a clause with the certificate as its subject.
    package var explanation: String {
        let subject = issuer.map { "the certificate of \($0) in its chain" } ?? "it"
        return switch code {
        case .expired(let time, let age): "\(subject) expired on \(time.text), \(Self.span(age)) ago"
        case .notYetValid(let time, let wait):
            "\(subject) is not valid before \(time.text), \(Self.span(wait)) from now by this machine's clock"
        case .wrongName(let wanted, let names): "it is \(Self.list(names)), not for \(wanted)"
        case .selfSigned: "\(subject) is self-signed and not trusted"
        case .unknownIssuer(let name): "its issuer is not trusted, or missing from the server's chain: \(name)"
        case .badSignature: "the signature of \(subject) does not match its issuer's key"
        case .wrongPurpose: "\(subject) is not a server certificate"
        case .badIssuer(let reason): "an issuer in its chain may not sign it: \(reason)"
        case .tooWeak(let reason): "\(subject) is too weak: \(reason)"
        case .chainTooLong: "its chain is too long"
        case .notPinned(let fingerprint):
            "it is not the pinned certificate: its SHA-256 fingerprint is \(fingerprint.fingerprintText)"
        case .other(let reason): "\(reason)"
        }
    }

    /// Returns the first names of a certificate, as a clause.
    private static func list(_ names: CertificateNames) -> String {
        let all = names.all
        guard !all.isEmpty else { return "for no name (no subject alternative name)" }
        let shown = all.prefix(6).joined(separator: ", ")
        return all.count > 6 ? "for \(shown) and \(all.count - 6) more" : "for \(shown)"
    }

    /// Returns a time span in its largest unit.
    static func span(_ seconds: Int64) -> String {
        func unit(_ count: Int64, _ name: String) -> String { "\(count) \(name)\(count == 1 ? "" : "s")" }
        return switch seconds {
        case ..<120: unit(max(0, seconds), "second")
        case ..<7200: unit(seconds / 60, "minute")
        case ..<172_800: unit(seconds / 3600, "hour")
        default: unit(seconds / 86_400, "day")
        }
    }
}
