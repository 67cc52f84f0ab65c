public import TapDiagnosis
public import TapRecord

/// Why there is no certificate, or no authority to sign it: the thing and the cause in one line; see
/// ``remedy(in:)`` for the way out.
public struct AuthorityError: Error, Sendable, Hashable {
    /// What is wrong.
    public enum Code: Sendable, Hashable {
        /// What was given is no name that a certificate can have; words for people.
        case badName(String)
        /// The name is beyond what the authorities may vouch for, which are for these names.
        case outside([CertificateName])
        /// It is a public suffix, for which none is created unasked.
        case publicSuffix
        /// The folder holds so many authorities that none is created on demand any more.
        case tooMany(limit: Int)
        /// The authority's time is over.
        case expired(Timestamp)
        /// The authority's time has not begun: the clock of this machine has gone back.
        case notYetValid(Timestamp)
        /// There is no authority for the name in the folder.
        case missing(folder: String)
        /// The file or folder cannot be opened, read, written or removed; the system's words.
        case inaccessible(String)
        /// Others can read or change the file or folder, by these rights.
        case exposed(rights: UInt32, proper: UInt32)
        /// The file or folder belongs to the user with this number.
        case foreign(owner: UInt32)
        /// It is a link, a device, or otherwise not what ought to be there.
        case wrongKind
        /// The key's file is cut off, damaged, encrypted, or empty.
        case damagedKey
        /// The certificate's file is cut off or damaged.
        case damagedCertificate
        /// The key is not that of the certificate beside it.
        case keyOfAnother
        /// The certificate is not one that was created here for the name of its folder.
        case strange
        /// OpenSSL refuses something that always works.
        case library(String)
    }

    /// What is wrong.
    public let code: Code
    /// The name or the path that it is wrong with.
    public let subject: String

    /// An error of the name or path `subject`.
    public init(_ code: Code, _ subject: String) {
        self.code = code
        self.subject = subject
    }

    /// The name is a public suffix, which nobody has confirmed.
    public static func publicSuffix(_ name: CertificateName) -> AuthorityError {
        AuthorityError(.publicSuffix, "\(name)")
    }

    init(_ error: OpenSSLError, _ subject: String) { self.init(.library("\(error)"), subject) }

    init(_ error: OpenSSLError, _ subject: CertificateName) { self.init(error, "\(subject)") }

    /// Whether what was asked for makes no sense, rather than a file or folder being at fault.
    public var isUsage: Bool {
        switch code {
        case .badName, .outside, .publicSuffix, .missing: true
        default: false
        }
    }
}

extension AuthorityError: CustomStringConvertible {
    /// One line for people; text from the wire is escaped.
    public var description: String {
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
        case .foreign(let owner): "\(shown) belongs to user \(owner), not to you"
        case .wrongKind: "\(shown) is a link, or not the expected file or folder; move it away"
        case .damagedKey: "\(shown) has no readable private key: it is truncated, damaged or encrypted"
        case .damagedCertificate: "\(shown) has no readable certificate: it is truncated or damaged"
        case .keyOfAnother: "\(shown) is not the key of the certificate in the same folder"
        case .strange: "\(shown) is not an xmpptap certificate authority for the name of its folder"
        case .library(let reason): "no certificate for \(shown): \(LineBuffer.escaped(reason))"
        }
    }

    /// What to try; nil where ``description`` says all.
    ///
    /// - Parameter folder: The authorities' folder; nil is the usual one.
    public func remedy(in folder: AuthorityFolder?) -> Remedy? {
        let change: Remedy.AuthorityChange
        switch code {
        case .badName, .notYetValid, .inaccessible, .wrongKind: return nil
        case .outside(let names): change = names.isEmpty ? .create(subject) : .createAnother(subject)
        case .missing: change = .create(subject)
        case .publicSuffix: change = .confirm(subject)
        case .tooMany(let limit): change = .createBeyond(limit: limit, subject)
        case .expired: change = .recreate(subject)
        case .exposed(_, let proper): change = .protect(subject, mode: Self.octal(proper), domain: domain(in: folder))
        case .foreign: change = .useOwnFolder
        case .damagedKey, .damagedCertificate, .keyOfAnother: change = .recreate(domain(in: folder))
        case .strange: change = .replaceFolder(domain(in: folder))
        case .library: change = .checkLibrary
        }
        return .changeAuthority(change, folder: folder.flatMap { $0.isUsual ? nil : $0.path })
    }

    /// The domain of a path's folder; nil if there is none.
    private func domain(in folder: AuthorityFolder?) -> String? {
        var parts = subject.split(separator: "/", omittingEmptySubsequences: false)
        if let last = parts.last, [AuthorityFolder.certificateFile, AuthorityFolder.keyFile].contains(String(last)) {
            parts.removeLast()
        } else if let folder, parts.dropLast().joined(separator: "/") == folder.path {
            // It is the folder of one authority.
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
