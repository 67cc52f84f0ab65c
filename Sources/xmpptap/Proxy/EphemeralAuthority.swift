internal import Glibc
internal import TapCapture
internal import TapNetwork
internal import TapRecord
internal import TapSecurity

/// The CA of the built-in server and of the proxy in front of it, in a temporary folder, which ``remove()`` deletes.
struct EphemeralAuthority: Sendable {
    /// The built-in server's certificate.
    let identity: TLSIdentity

    private let folder: AuthorityFolder
    /// A lock that is held until the process ends. Other processes thereby recognise folders left behind by a killed
    /// process.
    private let lock: Int32
    private let name: CertificateName
    private let minter: CertificateMinter

    init(_ domain: String, at now: Timestamp) throws(Failure) {
        let place = Console.environment("TMPDIR").flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/tmp"
        EphemeralFolder.sweep(place)
        var template = Array("\(place)/\(EphemeralFolder.prefix)XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw .file("cannot create a folder in \(place): \(String(cString: strerror(errno)))")
        }
        let path = template.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } } ?? place
        folder = AuthorityFolder(path)
        lock = EphemeralFolder.lock(path)
        do throws(AuthorityError) {
            name = try CertificateName(domain)
            minter = CertificateMinter([try folder.create(for: name, at: now).authority], in: folder)
            identity = try minter.identity(for: name, mirroring: [], at: now)
        } catch {
            rmdir(path)
            throw .file("cannot issue a certificate for the built-in server: \(error)")
        }
    }

    /// The path of the certificate that clients must trust.
    var certificatePath: String { folder.certificatePath(of: name) }

    /// Returns the TLS termination for the built-in server.
    func interception(
        _ server: ServerLegTLS = ServerLegTLS(),
        _ client: ClientLegTLS = ClientLegTLS()
    ) throws -> Interception {
        var server = server
        server.trust = .file(certificatePath)
        return Interception(
            serverLeg: try TLSContext(server),
            clientLeg: try TLSContext(client),
            identities: .minted(minter)
        )
    }

    /// Deletes the CA and its folder.
    func remove() {
        try? folder.remove(name)
        rmdir(folder.path)
        close(lock)
    }
}

/// The temporary folders of ``EphemeralAuthority``, including those left behind by killed processes.
enum EphemeralFolder {
    /// The prefix of the names; six characters follow.
    static let prefix = "xmpptap-temporary-"
    /// Maximum time in seconds between the creation of a folder and its locking.
    private static let lockTimeout = 60

    /// Marks a folder as in use until the returned descriptor is closed; -1 on failure.
    static func lock(_ path: String) -> Int32 {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return -1 }
        flock(descriptor, LOCK_EX | LOCK_NB)
        return descriptor
    }

    /// Removes folders of this user in `place` that are not in use. Folders that contain other files are kept, and so
    /// are folders created within the last `seconds`.
    static func sweep(_ place: String, olderThan seconds: Int = lockTimeout) {
        for name in FileStatus.names(in: place) ?? []
        where name.hasPrefix(prefix) && name.utf8.count == prefix.utf8.count + 6 {
            remove("\(place)/\(name)", olderThan: seconds)
        }
    }

    private static func remove(_ path: String, olderThan seconds: Int) {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        guard let status = FileStatus(descriptor: descriptor), status.owner == geteuid(),
            time(nil) - status.modified >= seconds, flock(descriptor, LOCK_EX | LOCK_NB) == 0
        else { return }
        let folder = AuthorityFolder(path)
        for name in (try? folder.names()) ?? [] { try? folder.remove(name) }
        rmdir(path)
    }
}
