import Foundation
import TapTestKit
import Testing

/// The proxy's authority for localhost, and the arguments with which a proxy uses it to terminate TLS.
struct InterceptAuthority {
    private let folder: TemporaryFolder
    /// The path of the authority's certificate, which clients have to trust.
    let certificate: String
    /// The arguments for the proxy.
    let arguments: [String]

    init() async throws {
        folder = try TemporaryFolder()
        let authorities = folder.path(of: "ca")
        let made = try await XMPPTapBinary.run(["ca", "create", "--domain", "localhost", "--ca-dir", authorities])
        guard made.ending == .exited(0) else { throw KitError("no authority: \(made.error)") }
        certificate = "\(authorities)/localhost/certificate.pem"
        arguments = ["--tls", "intercept", "--ca-dir", authorities]
    }
}

/// A proxy that terminates TLS in front of a Prosody that requires TLS, and the certificates for clients.
struct InterceptScene {
    let server: ProsodyServer
    let tap: Tap
    /// The path of the certificate of the proxy's authority.
    let authority: String
    /// The server's own certificate.
    let real: TestCertificate
    /// The port for clients with direct TLS.
    var directPort: UInt16 { tap.ports[1] }

    private let own: InterceptAuthority

    /// Starts the server and the proxy.
    ///
    /// - Parameters:
    ///   - version: The only TLS version that the server accepts, in Prosody's notation, for example `1_2`.
    ///   - arguments: Further arguments for the proxy; it always terminates TLS and trusts the server's certificate.
    init(
        certificate: TestCertificate? = nil,
        version: String? = nil,
        arguments: [String] = [],
        host: String = ""
    ) async throws {
        if let certificate { real = certificate } else { real = try await TestCertificate() }
        own = try await InterceptAuthority()
        authority = own.certificate
        let direct = try FreePort.next()
        server = try await ProsodyServer(
            encryption: .both(real, direct: direct, version: version),
            host: host
        )
        var all = own.arguments + arguments
        if Set(arguments).isDisjoint(with: ["--upstream-insecure", "--upstream-ca", "--pin"]) {
            all += ["--upstream-ca", real.certificate]
        }
        tap = try await Tap(upstream: server.port, direct, arguments: all)
    }

    func stop() async throws {
        try await tap.stop()
        try await server.stop()
    }
}
