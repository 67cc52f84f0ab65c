import Foundation

/// One end of a TLS connection: `tls_peer.py`. A test chooses the name, the protocols, the version, and the size of the
/// pieces in which the handshake is sent.
package struct TLSPeer: Sendable {
    /// The peer's report about a connection. Unknown values are nil.
    package struct Parameters: Decodable, Sendable {
        /// The TLS version, such as `TLSv1.3`.
        package let version: String?
        /// The protocol selected by ALPN; nil if none.
        package let alpn: String?
        /// Server only: the name in the client's SNI.
        package let sni: String?
        /// Client only: the names in the server's certificate.
        package let names: [String]?
        /// Client only: whether the server offers PLAIN.
        package let mechanisms: Bool?
        /// The error; nil if there was none.
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
    /// - Parameter authority: Path of the only certificate that the client trusts.
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

    /// Stops the process.
    package func stop() async throws { _ = try await process.terminate() }

    private init(_ arguments: [String]) throws {
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Clients/tls_peer.py").path
        process = try ToolProcess("/usr/bin/python3", [script] + arguments)
    }
}
