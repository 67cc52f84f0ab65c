public import TapRecord

/// Why there is no certificate, or no authority to sign it: the thing, the cause, and the way out, in one line.
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

    init(_ code: Code, _ subject: String) {
        self.code = code
        self.subject = subject
    }

    /// The name is a public suffix, and `--allow-public-suffix` is missing.
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
    /// One line for people, as ``message(in:)`` of the usual folder.
    public var description: String { message(in: nil) }

    /// One line for people; text from the wire is escaped.
    ///
    /// - Parameter folder: The authorities' folder, for `--ca-dir` in the commands that the message names. Nil is the
    ///   default folder.
    public func message(in folder: AuthorityFolder?) -> String {
        let shown = LineBuffer.escaped(subject)
        let flag = folder.map { LineBuffer.escaped($0.flag) } ?? ""
        let name = domain(in: folder)
        let anew =
            "recreate it with 'xmpptap ca remove --domain \(name)\(flag)' and "
            + "'xmpptap ca create --domain \(name)\(flag)', and trust the new one"
        let create = "'xmpptap ca create --domain \(shown)\(flag)'"
        return switch code {
        case .badName(let reason):
            "no certificate can name \"\(shown)\": \(LineBuffer.escaped(reason)); write a domain, as in example.org, or an "
                + "address"
        case .outside(let names) where names.isEmpty:
            "no certificate authority for \(shown); create one with \(create)"
        case .outside(let names):
            "no certificate for \(shown): the certificate authority is only for "
                + "\(names.map(\.description).joined(separator: ", ")) and subdomains; create another with \(create)"
        case .publicSuffix:
            "\(shown) is a public suffix: its authority could sign for other people's domains; use your own "
                + "domain, or confirm with 'xmpptap ca create --domain \(shown) --allow-public-suffix\(flag)'"
        case .tooMany(let limit):
            "no certificate authority created for \(shown): the folder already holds \(limit) or more, the limit for "
                + "authorities created on demand (--limit authorities=\(limit)); create it with \(create), remove others, "
                + "or raise the limit"
        case .expired(let time):
            "the certificate authority for \(shown) expired on \(time.day); recreate it with "
                + "'xmpptap ca remove --domain \(shown)\(flag)' and \(create), and trust the new one"
        case .notYetValid(let time):
            "the certificate authority for \(shown) is not valid before \(time.day); set the clock of this machine"
        case .missing(let folder):
            "no certificate authority for \(shown) in \(LineBuffer.escaped(folder)); create one with \(create)"
        case .inaccessible(let reason): "\(shown): \(reason)"
        case .exposed(let rights, let proper):
            "other users can access \(shown) (mode \(Self.octal(rights))) and may have copied the key; if nobody has, run "
                + "'chmod \(Self.octal(proper)) \(shown)', otherwise \(anew)"
        case .foreign(let owner):
            "\(shown) belongs to user \(owner), not to you; use your own folder with --ca-dir"
        case .wrongKind: "\(shown) is a link, or not the expected file or folder; move it away"
        case .damagedKey: "\(shown) has no readable private key: it is truncated, damaged or encrypted; \(anew)"
        case .damagedCertificate: "\(shown) has no readable certificate: it is truncated or damaged; \(anew)"
        case .keyOfAnother: "\(shown) is not the key of the certificate in the same folder; \(anew)"
        case .strange:
            "\(shown) is not an xmpptap certificate authority for the name of its folder; move the folder away, and "
                + "recreate it with 'xmpptap ca create --domain \(name)\(flag)'"
        case .library(let reason): "no certificate for \(shown): \(LineBuffer.escaped(reason)); see 'xmpptap doctor'"
        }
    }

    /// The domain of a path's folder, for a command; `DOMAIN` if there is none.
    private func domain(in folder: AuthorityFolder?) -> String {
        var parts = subject.split(separator: "/", omittingEmptySubsequences: false)
        if let last = parts.last, [AuthorityFolder.certificateFile, AuthorityFolder.keyFile].contains(String(last)) {
            parts.removeLast()
        } else if let folder, parts.dropLast().joined(separator: "/") == folder.path {
            // It is the folder of one authority.
        } else {
            return "DOMAIN"
        }
        guard let last = parts.last, let name = try? CertificateName(String(last)) else { return "DOMAIN" }
        return "\(name)"
    }

    private static func octal(_ mode: UInt32) -> String {
        let digits = String(mode, radix: 8)
        return String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    }
}
