import COpenSSL
import Glibc
import TapRecord
import TapTestKit

@testable import TapSecurity

/// Verifies certificates with the tools of OpenSSL and Python.
struct Judge {
    private let folder: TemporaryFolder
    /// The path of the authority's certificate.
    let authority: String

    init(_ authority: CertificateAuthority) throws {
        folder = try TemporaryFolder()
        self.authority = try folder.write(authority.pem, to: "authority.pem")
    }

    /// Returns the result of `openssl verify` for a leaf and a name: "OK", or the error.
    func openssl(_ identity: TLSIdentity, for name: CertificateName) async throws -> String {
        let leaf = try folder.write(identity.leafPEM, to: "leaf.pem")
        let flag =
            switch name {
            case .domain: "-verify_hostname"
            case .address: "-verify_ip"
            }
        let tool = try ToolProcess(
            TestProgram.openssl.rawValue,
            [
                "verify", "-x509_strict", "-purpose", "sslserver", "-no-CAfile", "-no-CApath", "-no-CAstore",
                "-trusted", authority, flag, "\(name)", leaf,
            ]
        )
        let ending = try await tool.ending()
        let text = tool.text(of: .standardOutput) + tool.text(of: .standardError)
        if ending == .exited(0), text.hasSuffix(": OK\n") { return "OK" }
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix("error ") }) else {
            throw tool.failure("gave no diagnosis")
        }
        return String(line.split(separator: ":").last ?? "").trimmingPrefix { $0 == " " }.description
    }

    /// Returns the result of a handshake with Python's ssl module: "OK", or the error.
    func python(_ identity: TLSIdentity, for host: String) async throws -> String {
        let leaf = try folder.write(identity.leafPEM, to: "leaf.pem")
        let key = try folder.write(identity.keyPEM, to: "key.pem")
        let script = """
            import ssl, sys
            authority, leaf, key, host = sys.argv[1:]
            ours = ssl.create_default_context(cafile=authority)
            ours.verify_flags |= ssl.VERIFY_X509_STRICT
            theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            theirs.load_cert_chain(leaf, key)
            up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
            client = ours.wrap_bio(down, up, server_hostname=host)
            server = theirs.wrap_bio(up, down, server_side=True)
            for _ in range(4):
                for side in (client, server):
                    try:
                        side.do_handshake()
                    except ssl.SSLWantReadError:
                        pass
                    except ssl.SSLCertVerificationError as error:
                        print(error.verify_message)
                        sys.exit()
            print("OK" if client.cipher() else "no handshake")
            """
        let tool = try ToolProcess("/usr/bin/python3", ["-c", script, authority, leaf, key, host])
        guard try await tool.ending() == .exited(0) else { throw tool.failure("gave no diagnosis") }
        return tool.lines(of: .standardOutput).first ?? ""
    }
}

extension TLSIdentity {
    /// The leaf certificate in DER.
    var leafDER: [UInt8] { (try? encoded("i2d_X509") { i2d_X509(leaf, $0) }) ?? [] }

    /// The leaf certificate in PEM.
    var leafPEM: String { written { PEM_write_bio_X509($0, leaf) } }

    /// The private key in PEM.
    var keyPEM: String { written { PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) } }

    /// The certificate as `openssl x509 -text` prints it.
    var leafText: String { written { X509_print($0, leaf) } }

    private func written(_ write: (OpaquePointer) -> Int32) -> String {
        guard let bio = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(bio) }
        guard write(bio) == 1 else { return "" }
        var bytes = [UInt8](repeating: 0, count: BIO_ctrl_pending(bio))
        let count = BIO_read(bio, &bytes, Int32(bytes.count))
        return String(decoding: bytes.prefix(Int(count)), as: UTF8.self)
    }
}

extension Timestamp {
    /// Returns noon UTC of a day.
    static func day(_ text: String) throws -> Timestamp {
        guard let time = Timestamp(rfc3339: "\(text)T12:00:00Z") else { throw KitError("no day: \(text)") }
        return time
    }
}

/// The system time, with which external tools verify certificates.
enum SystemTime {
    static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}
