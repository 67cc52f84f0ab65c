import Foundation
import TapTestKit
import Testing

/// An authority of the tap for localhost, and the arguments with which a tap uses it to end TLS.
struct InterceptAuthority {
    private let folder: TemporaryFolder
    /// Path of its certificate: what clients have to trust.
    let certificate: String
    /// The tap's flags.
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

/// A tap that ends TLS before a Prosody that demands it, and what clients have to trust.
struct InterceptScene {
    let server: ProsodyServer
    let tap: Tap
    /// Path of the tap's authority.
    let authority: String
    /// The server's own certificate.
    let real: TestCertificate
    /// The port for clients that begin with TLS.
    var directPort: UInt16 { tap.ports[1] }

    private let own: InterceptAuthority

    /// Starts both.
    ///
    /// - Parameters:
    ///   - version: The only version of TLS that the server speaks, as Prosody writes it: `1_2`.
    ///   - arguments: The tap's, beside those that end TLS and have it trust the server.
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
