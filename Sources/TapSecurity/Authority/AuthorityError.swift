package import TapDiagnosis
package import TapRecord

/// Why no certificate or authority is available, as one line; ``remedy(in:)`` returns the advice.
package struct AuthorityError: Error, Sendable, Hashable {
    /// The kind of error.
    package enum Code: Sendable, Hashable {
        /// The text cannot be the name of a certificate, for this human-readable reason.
        case badName(String)
        /// The name is not covered by the authorities, which are for these names.
        case outside([CertificateName])
        /// The name is a public suffix, for which authorities are only created after confirmation.
        case publicSuffix
        /// The folder has reached the limit of authorities that are created on demand.
        case tooMany(limit: Int)
        /// The authority has expired.
        case expired(Timestamp)
        /// The authority is not valid yet: the clock of this machine was set back.
        case notYetValid(Timestamp)
        /// The folder contains no authority for the name.
        case missing(folder: String)
        /// The file or folder cannot be accessed; the message of the operating system.
        case inaccessible(String)
        /// Other users can access the file or folder; its mode and the proper one.
        case exposed(rights: UInt32, proper: UInt32)
        /// The file or folder belongs to another user, given by its id.
        case otherOwner(owner: UInt32)
        /// The file is a link, a device, or of another unexpected kind.
        case wrongKind
        /// The key file is truncated, damaged, encrypted or empty.
        case damagedKey
        /// The certificate file is truncated or damaged.
        case damagedCertificate
        /// The key does not belong to the certificate in the same folder.
        case keyOfAnother
        /// The authority may sign certificates of servers only, as those of earlier versions; servers that connect to other
        /// servers need certificates of clients.
        case serversOnly
        /// The certificate is not an authority of this program for the name of its folder.
        case notXmpptapAuthority
        /// An OpenSSL call failed unexpectedly.
        case library(String)
    }

    /// The kind of error.
    package let code: Code
    /// The name or path concerned.
    package let subject: String

    /// Creates an error about the name or path `subject`.
    package init(_ code: Code, _ subject: String) {
        self.code = code
        self.subject = subject
    }

    /// Creates the error for an unconfirmed public suffix.
    package static func publicSuffix(_ name: CertificateName) -> AuthorityError {
        AuthorityError(.publicSuffix, "\(name)")
    }

    init(_ error: OpenSSLError, _ subject: String) { self.init(.library("\(error)"), subject) }

    init(_ error: OpenSSLError, _ subject: CertificateName) { self.init(error, "\(subject)") }

    /// Whether the request is at fault, not a file or folder.
    package var isUsage: Bool {
        switch code {
        case .badName, .outside, .publicSuffix, .missing: true
        default: false
        }
    }
}

extension AuthorityError: CustomStringConvertible {
    /// A human-readable line; text from the wire is escaped.
    package var description: String {
        let shown = LineBuffer.escaped(subject)
        return switch code {
        case .badName(let reason):
            "no certificate can name \"\(shown)\": \(LineBuffer.escaped(reason)); write a domain, as in example.org, or an "
                + "address"
        case .outside(let names) where names.isEmpty: "no certificate authority for \(shown)"
        case .outside(let names):
            "no certificate for \(shown): the certificate authority is only for "
                + "\(names.map(\.description).joined(separator: ", ")) and subdomains"
        case .publicSuffix: "\(shown) is a public suffix: its authority could sign for other people's domains"
        case .tooMany(let limit):
            "no certificate authority created for \(shown): the folder already holds \(limit) or more, the limit for "
                + "authorities created on demand"
        case .expired(let time): "the certificate authority for \(shown) expired on \(time.day)"
        case .notYetValid(let time):
            "the certificate authority for \(shown) is not valid before \(time.day); set the clock of this machine"
        case .missing(let folder): "no certificate authority for \(shown) in \(LineBuffer.escaped(folder))"
        case .inaccessible(let reason): "\(shown): \(reason)"
        case .exposed(let rights, _):
            "other users can access \(shown) (mode \(Self.octal(rights))) and may have copied the key"
        case .otherOwner(let owner): "\(shown) belongs to user \(owner), not to you"
        case .wrongKind: "\(shown) is a link, or not the expected file or folder; move it away"
        case .damagedKey: "\(shown) has no readable private key: it is truncated, damaged or encrypted"
        case .damagedCertificate: "\(shown) has no readable certificate: it is truncated or damaged"
        case .serversOnly:
            "the certificate authority for \(shown) was created by an earlier version, and cannot sign a certificate of a TLS "
                + "client"
        case .keyOfAnother: "\(shown) is not the key of the certificate in the same folder"
        case .notXmpptapAuthority: "\(shown) is not an xmpptap certificate authority for the name of its folder"
        case .library(let reason): "no certificate for \(shown): \(LineBuffer.escaped(reason))"
        }
    }

    /// Returns the advice; nil if ``description`` suffices.
    ///
    /// - Parameter folder: The folder of the authorities; nil for the default folder.
    package func remedy(in folder: AuthorityFolder?) -> Remedy? {
        let change: Remedy.AuthorityChange
        switch code {
        case .badName, .notYetValid, .inaccessible, .wrongKind: return nil
        case .outside(let names): change = names.isEmpty ? .create(subject) : .createAnother(subject)
        case .missing: change = .create(subject)
        case .publicSuffix: change = .confirm(subject)
        case .tooMany(let limit): change = .createBeyond(limit: limit, subject)
        case .expired, .serversOnly: change = .recreate(subject)
        case .exposed(_, let proper): change = .protect(subject, mode: Self.octal(proper), domain: domain(in: folder))
        case .otherOwner: change = .useOwnFolder
        case .damagedKey, .damagedCertificate, .keyOfAnother: change = .recreate(domain(in: folder))
        case .notXmpptapAuthority: change = .replaceFolder(domain(in: folder))
        case .library: change = .checkLibrary
        }
        return .changeAuthority(change, folder: folder.flatMap { $0.isUsual ? nil : $0.path })
    }

    /// Returns the domain that a path in the folder belongs to; nil if there is none.
    private func domain(in folder: AuthorityFolder?) -> String? {
        var parts = subject.split(separator: "/", omittingEmptySubsequences: false)
        if let last = parts.last, [AuthorityFolder.certificateFile, AuthorityFolder.keyFile].contains(String(last)) {
            parts.removeLast()
        } else if let folder, parts.dropLast().joined(separator: "/") == folder.path {
            // The path is the folder of one authority.
        } else {
            return nil
        }
        return parts.last.flatMap { try? CertificateName(String($0)) }.map { "\($0)" }
    }

    private static func octal(_ mode: UInt32) -> String {
        let digits = String(mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
