internal import Glibc
package import XMPPCore

/// A file of accounts and their passwords: `--accounts FILE`.
///
/// ```
/// # account          file with its password       address in a capture
/// juliet@example.org  juliet.password
/// romeo@example.org   /run/secrets/romeo           as=romeo@verona.example
/// nurse@example.org   nurse.keys
/// ```
///
/// A line contains a bare JID, the path of a file whose first line is the password, and optionally `as=` with the
/// address that the account has in a capture. Relative paths start at the folder of this file, and may contain spaces.
/// Empty lines and lines that begin with `#` are ignored. Instead of a password, the file may contain keys stored by a
/// server (``StoredKeys``). Password files must not be accessible to other users.
package struct AccountsFile: Sendable {
    /// The secret of an account.
    package enum Secret: Sendable, Hashable {
        /// A password in clear text that SASLprep accepts.
        case password(String)
        /// Keys that a server has stored.
        case keys(StoredKeys)
    }

    /// An account and its secret.
    package struct Account: Sendable, Hashable {
        /// The bare JID.
        package let jid: JID
        /// The password or stored keys.
        package let secret: Secret
        /// The bare JID in a capture; nil if it equals ``jid``.
        package let recorded: JID?

        package init(jid: JID, secret: Secret, recorded: JID? = nil) {
            self.jid = jid
            self.secret = secret
            self.recorded = recorded
        }
    }

    /// The accounts in file order, at least one.
    package let accounts: [Account]

    /// Maximum size of an accounts file in bytes.
    private static let largestFile = 1 << 20
    /// Maximum size of a password file in bytes.
    private static let maximumFileLength = 4096

    /// Reads an accounts file and the password files that it names.
    ///
    /// - Throws: ``AccountsError`` with file, line and the expected content.
    package init(path: String) throws(AccountsError) {
        let text = try Self.read(path, limit: Self.largestFile, isSecret: false) { AccountsError(path, nil, $0) }
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        var accounts: [Account] = []
        for (number, line) in try Self.lines(of: text, path) {
            func fault(_ message: String) -> AccountsError { AccountsError(path, number, message) }
            let file = line.file.hasPrefix("/") ? line.file : folder + line.file
            let text = try Self.read(file, limit: Self.maximumFileLength, isSecret: true, fault)
            let secret = try Self.secret(in: text, of: file, fault)
            accounts.append(Account(jid: line.jid, secret: secret, recorded: line.recorded))
        }
        guard !accounts.isEmpty else { throw AccountsError(path, nil, "no accounts in the file; \(Self.form)") }
        self.accounts = accounts
    }

    private static func secret(
        in text: String,
        of file: String,
        _ fault: (String) -> AccountsError
    ) throws(AccountsError) -> Secret {
        guard !StoredKeys.begin(text) else {
            do { return .keys(try StoredKeys(parsing: text)) } catch {
                throw fault("\(file):\(error.line): \(error.message)")
            }
        }
        let password = text.passwordLine
        guard !password.isEmpty else {
            throw fault("the first line of \(file) is empty; write the password there")
        }
        guard SASLprep.prepare(password)?.isEmpty == false else {
            throw fault("the password in \(file) has characters that passwords must not have (RFC 4013)")
        }
        return .password(password)
    }

    // MARK: Lines

    /// A parsed line.
    struct Line: Equatable {
        var jid: JID
        var file: String
        var recorded: JID?
    }

    private static let form = "write an address, its password file and, if needed, as=ADDRESS"

    /// Parses the lines that are neither empty nor comments, with line numbers from 1.
    static func lines(of text: String, _ path: String) throws(AccountsError) -> [(number: Int, Line)] {
        var lines: [(number: Int, Line)] = []
        for (number, row) in text.numberedRows {
            func fault(_ message: String) -> AccountsError { AccountsError(path, number, message) }
            var rest = row
            guard let first = rest.first, first != "#" else { continue }
            let end = rest.firstIndex(where: isBlank) ?? rest.endIndex
            let address = String(rest[..<end])
            rest = rest[end...].trimmed
            var recorded: JID?
            let last = rest.lastIndex(where: isBlank).map { rest[rest.index(after: $0)...] } ?? rest
            if last.hasPrefix("as=") {
                recorded = try account(String(last.dropFirst(3)), fault)
                rest = rest[..<last.startIndex].trimmed
            }
            let jid = try account(address, fault)
            guard !rest.isEmpty else { throw fault("\(address) has no password file; \(form)") }
            if let other = lines.first(where: { $0.1.jid == jid }) {
                throw fault("\(address) is already in line \(other.number); leave one out")
            }
            let meant = recorded ?? jid
            if let other = lines.first(where: { ($0.1.recorded ?? $0.1.jid) == meant }) {
                throw fault("\(meant) is already in line \(other.number); leave one out")
            }
            lines.append((number, Line(jid: jid, file: String(rest), recorded: recorded)))
        }
        return lines
    }

    private static func account(_ text: String, _ fault: (String) -> AccountsError) throws(AccountsError) -> JID {
        guard let jid = JID(text), !jid.isServer, jid.isBare else {
            throw fault("\"\(text)\" is not an account such as juliet@example.org; \(form)")
        }
        return jid
    }

    private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }

    // MARK: Files

    private static func read(
        _ path: String,
        limit: Int,
        isSecret: Bool,
        _ fault: (String) -> AccountsError
    ) throws(AccountsError) -> String {
        func unreadable() -> AccountsError { fault("cannot read \(path): \(String(cString: strerror(errno)))") }
        // O_NONBLOCK: opening a FIFO must not wait for a writer.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw unreadable() }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw unreadable() }
        guard status.st_mode & S_IFMT == S_IFREG else { throw fault("\(path) is not a regular file") }
        guard !isSecret || status.st_mode & 0o077 == 0 else {
            throw fault("other users can read the password in \(path); run 'chmod 600 \(path)'")
        }
        guard status.st_size <= limit else {
            throw fault("\(path) is larger than \(limit) bytes, the limit for such a file")
        }
        guard let bytes = OpenFile.read(descriptor, limit: limit) else { throw unreadable() }
        guard bytes.count <= limit, let text = String(validating: bytes, as: UTF8.self) else {
            throw fault("\(path) is not UTF-8 text of at most \(limit) bytes")
        }
        return text
    }
}

extension String {
    /// The password in the text of a file: its first line. Password managers keep notes in further lines.
    package var passwordLine: String { String(prefix { !$0.isNewline }) }
}

/// An error in an accounts file or a password file, as one line that never contains a password.
package struct AccountsError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The path of the accounts file.
    package let path: String
    /// The line, from 1; nil for the whole file.
    package let line: Int?
    private let message: String

    init(_ path: String, _ line: Int?, _ message: String) {
        self.path = path
        self.line = line
        self.message = message
    }

    /// `FILE:LINE: ERROR; EXPECTED`.
    package var description: String { "\(path)\(line.map { ":\($0)" } ?? ""): \(message)" }
}
