import Foundation

/// One end of a TLS connection whose name, protocols, version and pieces a test chooses: `tls_peer.py`.
package struct TLSPeer: Sendable {
    /// The peer's report about a connection. Unknown values are nil.
    package struct Parameters: Decodable, Sendable {
        /// `TLSv1.3`.
        package let version: String?
        /// What ALPN has agreed on.
        package let alpn: String?
        /// A server: the name in the client's SNI.
        package let sni: String?
        /// A client: the names of the certificate it was shown.
        package let names: [String]?
        /// A client: whether the server offers to log in.
        package let mechanisms: Bool?
        /// What went wrong.
        package let error: String?
    }

    private let process: ToolProcess

    /// Starts a server, and waits until it listens.
    package static func serve(
        port: UInt16,
        certificate: String,
        key: String,
        _ arguments: [String] = []
    ) async throws -> TLSPeer {
        let peer = try TLSPeer(
            ["serve", "--port", "\(port)", "--certificate", certificate, "--key", key] + arguments
        )
        _ = try await peer.process.line(of: .standardOutput) { $0.contains("listening") }
        return peer
    }

    /// Connects as a client, and returns the result.
    ///
    /// - Parameter authority: Path of the one certificate that it trusts.
    package static func connect(
        port: UInt16,
        trusting authority: String,
        _ arguments: [String]
    ) async throws -> Parameters {
        let peer = try TLSPeer(["client", "--port", "\(port)", "--ca", authority] + arguments)
        _ = try await peer.process.ending()
        guard let parameters = peer.parameters.last else { throw peer.process.failure("told nothing") }
        return parameters
    }

    /// The reports about connections so far.
    package var parameters: [Parameters] {
        process.lines(of: .standardOutput).filter { !$0.contains("listening") }
            .compactMap { try? JSONDecoder().decode(Parameters.self, from: Data($0.utf8)) }
    }

    /// Ends it.
    package func stop() async throws { _ = try await process.terminate() }

    private init(_ arguments: [String]) throws {
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Clients/tls_peer.py").path
        process = try ToolProcess("/usr/bin/python3", [script] + arguments)
    }
}
