internal import COpenSSL
internal import Glibc
public import TapRecord

/// The folder in which authorities are kept, a folder each, named as what it vouches for:
///
/// ```
/// ca/example.org/certificate.pem    what clients have to trust
/// ca/example.org/key.pem            readable by the owner only
/// ```
///
/// Folders are made with mode 0700 and files with 0600. What others can read, or what belongs to someone else, is refused:
/// its key may be in other hands. Nothing is followed that is a link inside the folder.
public struct AuthorityFolder: Sendable, Hashable {
    /// The folder itself. It is made when the first authority is.
    public let path: String
    /// It is the one that commands mean of which no other folder is said.
    public let isUsual: Bool

    /// Whether both are the same path, however it was said.
    public static func == (left: AuthorityFolder, right: AuthorityFolder) -> Bool { left.path == right.path }

    /// Hashes the path.
    public func hash(into hasher: inout Hasher) { hasher.combine(path) }

    /// The folder at a path, which need not be there.
    public init(_ path: String) { self.init(path, isUsual: false) }

    private init(_ path: String, isUsual: Bool) {
        self.path = path
        self.isUsual = isUsual
    }

    /// Where the folder is unless somebody says otherwise, by the XDG base directory specification.
    ///
    /// - Parameters:
    ///   - dataHome: `$XDG_DATA_HOME`; ignored unless it begins with `/`.
    ///   - home: The user's home.
    public static func usual(dataHome: String?, home: String) -> AuthorityFolder {
        let data = dataHome.flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "\(home)/.local/share"
        return AuthorityFolder("\(data)/xmpptap/ca", isUsual: true)
    }

    /// Where the certificate for a name is, or would be.
    public func certificatePath(of name: CertificateName) -> String { "\(path)/\(name)/\(Self.certificateFile)" }

    static let certificateFile = "certificate.pem"
    static let keyFile = "key.pem"

    /// The temporary name of a CA that is being created, and its lifetime in seconds.
    static let draftPrefix = ".new-"
    private static let draftAge = 60

    // MARK: Reading

    /// The authority for exactly this name, whether it is valid now or not; `nil` if there is none.
    public func authority(for name: CertificateName) throws(AuthorityError) -> CertificateAuthority? {
        guard let folder = try PrivateFolder(path) else { return nil }
        return try load(name, in: folder)
    }

    /// The authority for the first of some names that has one, known already or in the folder, which is opened once.
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

    /// The sorted names of all CAs, readable or not. Empty if there is no folder.
    public func names() throws(AuthorityError) -> [CertificateName] {
        guard let folder = try PrivateFolder(path) else { return [] }
        return try folder.entries()
            .compactMap { entry in
                // What is named otherwise than this program names things is not its own.
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

    /// Makes an authority, unless there is one.
    ///
    /// It appears with both files or not at all: of several programs that make one at once, one wins, and all get the
    /// same.
    ///
    /// - Parameter now: The time from which on it is valid.
    /// - Returns: The authority, and whether it was made just now.
    public func create(
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
            // Report the first error.
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

    /// Removes an authority, also one that cannot be read; clients go on trusting it.
    ///
    /// - Throws: ``AuthorityError/Code/missing(folder:)`` if there is none.
    public func remove(_ name: CertificateName) throws(AuthorityError) {
        guard let folder = try PrivateFolder(path, isChecked: false),
            try folder.remove("\(name)", holding: [Self.keyFile, Self.certificateFile])
        else { throw AuthorityError(.missing(folder: path), "\(name)") }
    }
}
