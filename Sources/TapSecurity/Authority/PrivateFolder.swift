internal import COpenSSL
internal import Glibc

/// An open folder that belongs to this user and is inaccessible to others.
///
/// Its entries are opened relative to its descriptor, so that nothing can be replaced between check and use.
struct PrivateFolder: ~Copyable {
    /// The path of the folder, for errors.
    let path: String
    private let descriptor: Int32

    static let folderRights: mode_t = 0o700
    static let fileRights: mode_t = 0o600
    /// Maximum file size in bytes; keys and certificates of this program are smaller.
    private static let largestFile = 64 << 10

    /// Opens a folder; `nil` if there is none.
    ///
    /// - Parameter isChecked: Whether to check permissions and owner; not needed to remove its content.
    init?(_ path: String, isChecked: Bool = true) throws(AuthorityError) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else {
            guard errno == ENOENT else { throw Self.failure(path) }
            return nil
        }
        try self.init(owning: descriptor, path, isChecked: isChecked)
    }

    /// Opens a folder after creating it and its parents if necessary.
    init(making path: String) throws(AuthorityError) {
        var end = path.startIndex
        while end < path.endIndex {
            end = path[path.index(after: end)...].firstIndex(of: "/") ?? path.endIndex
            guard mkdir(String(path[..<end]), Self.folderRights) == 0 || errno == EEXIST else {
                throw Self.failure(String(path[..<end]))
            }
        }
        guard let folder = try PrivateFolder(path) else { throw Self.failure(path) }
        self = folder
    }

    private init(owning descriptor: Int32, _ path: String, isChecked: Bool) throws(AuthorityError) {
        self.descriptor = descriptor
        self.path = path
        if isChecked { try Self.check(descriptor, path, S_IFDIR, Self.folderRights) }
    }

    deinit { close(descriptor) }

    // MARK: Reading

    /// Opens a subfolder; nil if there is none.
    func folder(_ name: String) throws(AuthorityError) -> PrivateFolder? {
        let path = "\(path)/\(name)"
        let inner = openat(descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard inner >= 0 else {
            switch errno {
            case ENOENT: return nil
            case ENOTDIR, ELOOP: throw AuthorityError(.wrongKind, path)
            default: throw Self.failure(path)
            }
        }
        return try PrivateFolder(owning: inner, path, isChecked: true)
    }

    /// Returns the names of the folder's entries, except those that begin with a dot.
    func entries() throws(AuthorityError) -> [String] { try allEntries().filter { !$0.hasPrefix(".") } }

    private func allEntries() throws(AuthorityError) -> [String] {
        // The listing takes ownership of the descriptor and changes its position.
        let copy = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard copy >= 0, let listing = fdopendir(copy) else { throw Self.failure(path) }
        defer { closedir(listing) }
        var names: [String] = []
        while let entry = readdir(listing) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { name in
                String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// Reads the private key of a PEM file.
    func key(_ name: String) throws(AuthorityError) -> SigningKey {
        let key = try read(name) { bio in
            // No passphrase is supplied: this program does not create encrypted keys.
            PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
        }
        guard let key else { throw AuthorityError(.damagedKey, "\(path)/\(name)") }
        return SigningKey(owning: key)
    }

    /// Reads the certificate of a PEM file, an `X509 *` that the caller owns.
    func certificate(_ name: String) throws(AuthorityError) -> OpaquePointer {
        let certificate = try read(name) { PEM_read_bio_X509($0, nil, nil, nil) }
        guard let certificate else { throw AuthorityError(.damagedCertificate, "\(path)/\(name)") }
        return certificate
    }

    private func read(_ name: String, _ parse: (OpaquePointer) -> OpaquePointer?) throws(AuthorityError)
        -> OpaquePointer?
    {
        let path = "\(path)/\(name)"
        let file = openat(descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard file >= 0 else {
            if errno == ELOOP { throw AuthorityError(.wrongKind, path) }
            throw Self.failure(path)
        }
        defer { close(file) }
        let size = try Self.check(file, path, S_IFREG, Self.fileRights)
        guard size <= Self.largestFile, let bio = BIO_new_fd(file, BIO_NOCLOSE) else { return nil }
        defer {
            BIO_free(bio)
            ERR_clear_error()
        }
        return parse(bio)
    }

    /// Checks type, owner and permissions of an open file or folder; returns its size in bytes.
    @discardableResult
    private static func check(
        _ descriptor: Int32,
        _ path: String,
        _ kind: mode_t,
        _ proper: mode_t
    ) throws(AuthorityError) -> Int {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw failure(path) }
        guard status.st_mode & S_IFMT == kind else { throw AuthorityError(.wrongKind, path) }
        guard status.st_uid == geteuid() else { throw AuthorityError(.otherOwner(owner: status.st_uid), path) }
        guard status.st_mode & 0o077 == 0 else {
            throw AuthorityError(.exposed(rights: status.st_mode & 0o7777, proper: proper), path)
        }
        return Int(status.st_size)
    }

    // MARK: Changing

    /// Creates a subfolder that must not exist yet.
    func make(_ name: String) throws(AuthorityError) {
        guard mkdirat(descriptor, name, Self.folderRights) == 0 else { throw Self.failure("\(path)/\(name)") }
    }

    /// Renames a subfolder and syncs it to disk.
    ///
    /// - Returns: Whether the new name was free.
    func rename(_ name: String, to other: String) throws(AuthorityError) -> Bool {
        guard renameat(descriptor, name, descriptor, other) == 0 else {
            guard errno == EEXIST || errno == ENOTEMPTY else { throw Self.failure("\(path)/\(other)") }
            return false
        }
        guard fsync(descriptor) == 0 else { throw Self.failure(path) }
        return true
    }

    /// Removes a subfolder with the given files, if they exist.
    ///
    /// - Returns: Whether the subfolder existed.
    @discardableResult
    func remove(_ name: String, holding files: [String]) throws(AuthorityError) -> Bool {
        let path = "\(path)/\(name)"
        let inner = openat(descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard inner >= 0 else {
            guard errno == ENOENT else { throw Self.failure(path) }
            return false
        }
        defer { close(inner) }
        for file in files {
            guard unlinkat(inner, file, 0) == 0 || errno == ENOENT else { throw Self.failure("\(path)/\(file)") }
        }
        guard unlinkat(descriptor, name, AT_REMOVEDIR) == 0 else { throw Self.failure(path) }
        return true
    }

    /// Removes folders left behind by killed programs: those with the prefix that have not changed for more than
    /// `seconds`. Ignores errors.
    func sweep(_ prefix: String, olderThan seconds: Int, holding files: [String]) {
        for name in (try? allEntries()) ?? [] where name.hasPrefix(prefix) {
            var status = stat()
            guard fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFDIR,
                status.st_uid == geteuid(), time(nil) - status.st_mtim.tv_sec > seconds
            else { continue }
            _ = try? remove(name, holding: files)
        }
    }

    /// Writes a private key to a new file and syncs it to disk. OpenSSL writes it, so that no unwiped copy remains in
    /// memory.
    func write(_ key: SigningKey, to name: String) throws(AuthorityError) {
        try write(name) { file in
            guard let bio = BIO_new_fd(file, BIO_NOCLOSE) else { return false }
            defer { BIO_free(bio) }
            return PEM_write_bio_PKCS8PrivateKey(bio, key.pointer, nil, nil, 0, nil, nil) == 1
        }
    }

    /// Writes bytes to a new file and syncs it to disk.
    func write(_ bytes: [UInt8], to name: String) throws(AuthorityError) {
        try write(name) { file in
            var rest = bytes[...]
            while !rest.isEmpty {
                let written = rest.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
                guard written > 0 || errno == EINTR else { return false }
                rest = rest.dropFirst(max(0, written))
            }
            return true
        }
    }

    private func write(_ name: String, _ body: (Int32) -> Bool) throws(AuthorityError) {
        let path = "\(path)/\(name)"
        let file = openat(descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, Self.fileRights)
        guard file >= 0 else { throw Self.failure(path) }
        defer { close(file) }
        guard body(file), fsync(file) == 0, fsync(descriptor) == 0 else { throw Self.failure(path) }
    }

    /// Returns an error with the current `errno`.
    private static func failure(_ path: String) -> AuthorityError {
        AuthorityError(.inaccessible(String(cString: strerror(errno))), path)
    }
}
