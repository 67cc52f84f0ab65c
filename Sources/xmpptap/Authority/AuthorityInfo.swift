internal import TapRecord
internal import TapSecurity

/// What `ca show` prints about one CA, as text and JSON.
struct AuthorityInfo {
    /// The name that it is for.
    let name: CertificateName
    /// Why it cannot be used; nil if it can.
    let fault: String?
    /// The first and last day of its validity, its fingerprint and its file; nil if it cannot be read.
    private let found: (begin: String, end: String, fingerprint: String, path: String)?

    /// The info of a readable CA.
    ///
    /// - Parameter now: The time for which to check the validity; nil for no check.
    init(_ authority: CertificateAuthority, in folder: AuthorityFolder, at now: Timestamp? = nil) {
        name = authority.name
        found = (
            Self.day(authority.begin), Self.day(authority.end),
            authority.fingerprint.map { byte in
                let digits = String(byte, radix: 16, uppercase: true)
                return byte < 16 ? "0\(digits)" : digits
            }.joined(separator: ":"),
            folder.certificatePath(of: authority.name)
        )
        var fault: String?
        do throws(AuthorityError) {
            if let now { try authority.checkValidity(at: now) }
        } catch {
            fault = error.message(in: folder)
        }
        self.fault = fault
    }

    /// The info of an unreadable CA.
    init(_ name: CertificateName, fault: AuthorityError, in folder: AuthorityFolder) {
        self.name = name
        self.fault = fault.message(in: folder)
        found = nil
    }

    /// The text lines, without its name.
    var lines: [String] {
        var lines: [String] = []
        if let found {
            lines.append("  valid        \(found.begin) to \(found.end)")
            lines.append("  fingerprint  SHA-256 \(found.fingerprint)")
            lines.append("  certificate  \(found.path)")
        }
        if let fault { lines.append("  unusable     \(fault)") }
        return lines
    }

    /// The JSON object.
    var json: String {
        var line = LineBuffer()
        line.openObject()
        line.field("name", name.description)
        if let found {
            line.field("begin", found.begin)
            line.field("end", found.end)
            line.field("fingerprint", found.fingerprint)
            line.field("certificate", found.path)
        }
        if let fault { line.field("fault", fault) }
        line.closeObject()
        return String(decoding: line.bytes, as: UTF8.self)
    }

    private static func day(_ time: Timestamp) -> String {
        var line = LineBuffer(capacity: 30)
        var writer = TimestampWriter()
        writer.append(time, to: &line)
        return String(decoding: line.bytes.prefix(10), as: UTF8.self)
    }
}
