internal import Glibc
internal import TapNetwork
internal import TapRecord
internal import TapSecurity

/// The CA of the built-in server and of the proxy in front of it, in a temporary folder. ``remove()`` deletes it.
struct EphemeralAuthority: Sendable {
    /// The built-in server's certificate.
    let identity: TLSIdentity

    private let folder: AuthorityFolder
    /// Held until the process ends, so that other processes recognise folders that a killed process left behind.
    private let lock: Int32
    private let name: CertificateName
    private let minter: CertificateMinter

    /// Creates one for a domain.
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

    /// Path of the certificate that clients must trust.
    var certificatePath: String { folder.certificatePath(of: name) }

    /// The interception in front of the built-in server.
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

    /// Removes it, with its folder.
    func remove() {
        try? folder.remove(name)
        rmdir(folder.path)
        close(lock)
    }
}
