internal import TapRecord
internal import TapSecurity

/// The output of `ca show` for one CA, as text and JSON.
struct AuthorityInfo {
    let name: CertificateName
    /// The reason why the CA cannot be used; nil if it can.
    let fault: String?
    /// The first and last day of validity, the fingerprint and the file; nil if the CA cannot be read.
    private let found: (begin: String, end: String, fingerprint: String, path: String)?

    /// Creates the information on a readable CA.
    ///
    /// - Parameter now: The time for which the validity is checked; nil skips the check.
    init(_ authority: CertificateAuthority, in folder: AuthorityFolder, at now: Timestamp? = nil) {
        name = authority.name
        found = (
            authority.begin.day, authority.end.day, authority.fingerprint.fingerprintText,
            folder.certificatePath(of: authority.name)
        )
        var fault: String?
        do throws(AuthorityError) {
            if let now { try authority.checkValidity(at: now) }
        } catch {
            fault = AdviceTable.line(error, in: folder)
        }
        self.fault = fault
    }

    /// Creates the information on an unreadable CA.
    init(_ name: CertificateName, fault: AuthorityError, in folder: AuthorityFolder) {
        self.name = name
        self.fault = AdviceTable.line(fault, in: folder)
        found = nil
    }

    /// Returns the lines for users, with control characters escaped.
    func lines(_ style: OutputStyle = .plain) -> [String] {
        var rows: [(mark: OutputStyle.Mark, name: String, text: String)] = []
        if let found {
            rows.append((fault == nil ? .done : .neutral, "valid", "\(found.begin) to \(found.end)"))
            rows.append((.none, "fingerprint", "SHA-256 \(found.fingerprint)"))
            rows.append((.none, "certificate", found.path))
        }
        if let fault { rows.append((.failed, "unusable", fault)) }
        guard let width = style.width else {
            return rows.map { Console.escaped("  \($0.name.padded(to: 12)) \($0.text)") }
        }
        return rows.flatMap { style.rows($0.mark, $0.text, name: $0.name, column: width < 40 ? 4 : 13) }
    }

    var json: String {
        LineBuffer.object {
            $0.field("name", name.description)
            if let found {
                $0.field("begin", found.begin)
                $0.field("end", found.end)
                $0.field("fingerprint", found.fingerprint)
                $0.field("certificate", found.path)
            }
            if let fault { $0.field("fault", fault) }
        }
    }
}
