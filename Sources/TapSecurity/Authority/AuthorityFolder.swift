internal import COpenSSL
internal import Glibc
package import TapRecord

/// The folder of the authorities. Each has a subfolder named after the domain or address it signs for:
///
/// ```
/// ca/example.org/certificate.pem    what clients have to trust
/// ca/example.org/key.pem            readable by the owner only
/// ```
///
/// Folders are created with mode 0700, files with 0600. Entries that others can read or that belong to another user are
/// refused, because the key may have been copied. Links inside the folder are not followed.
package struct AuthorityFolder: Sendable, Hashable {
    /// The path of the folder, which is created with the first authority.
    package let path: String
    /// Whether this is the default folder.
    package let isUsual: Bool

    /// Returns whether both have the same path.
    package static func == (left: AuthorityFolder, right: AuthorityFolder) -> Bool { left.path == right.path }

    /// Hashes the path.
    package func hash(into hasher: inout Hasher) { hasher.combine(path) }

    /// Creates a reference to a folder, which need not exist.
    package init(_ path: String) { self.init(path, isUsual: false) }

    private init(_ path: String, isUsual: Bool) {
        self.path = path
        self.isUsual = isUsual
    }

    /// Returns the default folder according to the XDG base directory specification.
    ///
    /// - Parameters:
    ///   - dataHome: The value of `$XDG_DATA_HOME`; ignored unless it begins with `/`.
    ///   - home: The user's home folder.
    package static func usual(dataHome: String?, home: String) -> AuthorityFolder {
        let data = dataHome.flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "\(home)/.local/share"
        return AuthorityFolder("\(data)/xmpptap/ca", isUsual: true)
    }

    /// Returns the path of the certificate for a name, whether or not it exists.
    package func certificatePath(of name: CertificateName) -> String { "\(path)/\(name)/\(Self.certificateFile)" }

    static let certificateFile = "certificate.pem"
    static let keyFile = "key.pem"

    /// The prefix of an authority that is being created, and the age in seconds after which it counts as abandoned.
    static let draftPrefix = ".new-"
    private static let draftAge = 60

    // MARK: Reading

    /// Returns the authority for exactly this name, whether or not it is currently valid; nil if there is none.
    package func authority(for name: CertificateName) throws(AuthorityError) -> CertificateAuthority? {
        guard let folder = try PrivateFolder(path) else { return nil }
        return try load(name, in: folder)
    }

    /// Returns the first authority for one of the names, cached or from the folder, which is opened only once.
    func authority(
        forFirstOf names: [CertificateName],
        known: (CertificateName) -> CertificateAuthority?
    ) throws(AuthorityError) -> CertificateAuthority? {
        guard let folder = try PrivateFolder(path) else {
            for name in names {
                if let found = known(name) { return found }
            }
            return nil
        }
        for name in names {
            if let found = known(name) { return found }
            if let found = try load(name, in: folder) { return found }
        }
        return nil
    }

    /// Returns the sorted names of all authorities, readable or not; empty if the folder does not exist.
    package func names() throws(AuthorityError) -> [CertificateName] {
        guard let folder = try PrivateFolder(path) else { return [] }
        return try folder.entries()
            .compactMap { entry in
                // Other names were not created by this program.
                (try? CertificateName(entry)).flatMap { "\($0)" == entry ? $0 : nil }
            }
            .sorted { "\($0)" < "\($1)" }
    }

    private func load(_ name: CertificateName, in folder: borrowing PrivateFolder) throws(AuthorityError)
        -> CertificateAuthority?
    {
        guard let own = try folder.folder("\(name)") else { return nil }
        let key = try own.key(Self.keyFile)
        let certificate = try own.certificate(Self.certificateFile)
        defer { X509_free(certificate) }
        return try CertificateAuthority(
            certificate,
            key: key,
            for: name,
            paths: ("\(own.path)/\(Self.certificateFile)", "\(own.path)/\(Self.keyFile)")
        )
    }

    // MARK: Changing

    /// Creates an authority unless it exists.
    ///
    /// Both files appear atomically: if several programs create the same authority at once, all get the same one.
    ///
    /// - Parameter now: The current time.
    /// - Returns: The authority, and whether this call created it.
    package func create(
        for name: CertificateName,
        at now: Timestamp
    ) throws(AuthorityError) -> (authority: CertificateAuthority, isNew: Bool) {
        let folder = try PrivateFolder(making: path)
        if let found = try load(name, in: folder) { return (found, false) }
        let authority = try CertificateAuthority(for: name, at: now)
        let draft: String
        do throws(OpenSSLError) {
            draft = try Self.draftPrefix + CertificateAuthority.random(16).hexadecimal
        } catch {
            throw AuthorityError(error, name)
        }
        folder.sweep(Self.draftPrefix, olderThan: Self.draftAge, holding: [Self.keyFile, Self.certificateFile])
        try folder.make(draft)
        var isNew = false
        do throws(AuthorityError) {
            guard let own = try folder.folder(draft) else {
                throw AuthorityError(.inaccessible(String(cString: strerror(ENOENT))), "\(path)/\(draft)")
            }
            try own.write(authority.key, to: Self.keyFile)
            try own.write(Array(authority.pem.utf8), to: Self.certificateFile)
            isNew = try folder.rename(draft, to: "\(name)")
        } catch {
            // Errors of the cleanup are ignored: the first error is thrown.
            _ = try? folder.remove(draft, holding: [Self.keyFile, Self.certificateFile])
            throw error
        }
        if isNew { return (authority, true) }
        try folder.remove(draft, holding: [Self.keyFile, Self.certificateFile])
        guard let found = try load(name, in: folder) else {
            throw AuthorityError(.inaccessible("it was removed while it was created; try again"), "\(path)/\(name)")
        }
        return (found, false)
    }

    /// Removes an authority, even an unreadable one; clients that trust it continue to do so.
    ///
    /// - Throws: ``AuthorityError/Code/missing(folder:)`` if there is none.
    package func remove(_ name: CertificateName) throws(AuthorityError) {
        guard let folder = try PrivateFolder(path, isChecked: false),
            try folder.remove("\(name)", holding: [Self.keyFile, Self.certificateFile])
        else { throw AuthorityError(.missing(folder: path), "\(name)") }
    }
}
