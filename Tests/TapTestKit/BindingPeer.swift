import Foundation

/// One end of a login that is bound to TLS: `binding_peer.py`, on pyOpenSSL, the client with PyPI's aiosasl.
package struct BindingPeer: Sendable {
    /// The peer's report about a connection. Unknown values are nil.
    package struct Parameters: Decodable, Sendable {
        /// `TLSv1.3`.
        package let version: String?
        /// The mechanism that was used.
        package let mechanism: String?
        /// A client: the offered mechanisms.
        package let mechanisms: [String]?
        /// A client: the offered binding types.
        package let bindings: [String]?
        /// A client: the attributes by which the offer was signed, and which were right.
        package let signed: [String]?
        /// A client: the address that was bound.
        package let jid: String?
        /// A server: the client's gs2 flag, with the type of the binding.
        package let flag: String?
        /// A server: whom a client that logs in by its certificate wants to act as.
        package let authzid: String?
        /// A server: the common name of that certificate.
        package let subject: String?
        /// What went wrong.
        package let error: String?
    }

    private static let script = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "Clients/binding_peer.py").path
    /// Where `.ci/packages test` puts what comes from PyPI.
    private static let library = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../.build/python").standardized.path

    /// Whether all that it needs is there.
    package static var isInstalled: Bool {
        ["\(library)/aiosasl", "/usr/lib/python3/dist-packages/OpenSSL"].allSatisfy {
            FileManager.default.fileExists(atPath: $0)
        }
    }

    private let process: ToolProcess

    /// Starts a server for juliet, and waits until it listens.
    ///
    /// - Parameters:
    ///   - mechanisms: The offered mechanisms.
    ///   - bindings: The types of channel binding that it names and takes.
    package static func serve(
        port: UInt16,
        certificate: String,
        key: String,
        mechanisms: [String],
        bindings: [String],
        _ arguments: [String] = []
    ) async throws -> BindingPeer {
        let peer = try BindingPeer(
            [
                "serve", "--port", "\(port)", "--certificate", certificate, "--key", key, "--mechanisms",
                mechanisms.joined(separator: ","), "--bindings", bindings.joined(separator: ","), "--password",
                Account.juliet.password,
            ] + arguments
        )
        _ = try await peer.process.line(of: .standardOutput) { $0.contains("listening") }
        return peer
    }

    /// Logs juliet in, and returns the result.
    ///
    /// - Parameters:
    ///   - authority: Path of the one certificate that the client trusts.
    ///   - binding: The type by which it binds.
    package static func logIn(
        port: UInt16,
        trusting authority: String,
        binding: String,
        _ arguments: [String] = []
    ) async throws -> Parameters {
        let peer = try BindingPeer(
            [
                "client", "--port", "\(port)", "--ca", authority, "--binding", binding, "--jid", Account.juliet.jid,
                "--password", Account.juliet.password,
            ] + arguments
        )
        _ = try await peer.process.ending()
        guard let parameters = peer.parameters.last else { throw peer.process.failure("told nothing") }
        return parameters
    }

    /// The reports about connections so far.
    package var parameters: [Parameters] {
        process.lines(of: .standardOutput).filter { !$0.contains("listening") }
            .compactMap { try? JSONDecoder().decode(Parameters.self, from: Data($0.utf8)) }
    }

    /// The server's report about the first connection with a login, after its end. Other connections only checked
    /// whether it listens.
    package func login() async throws -> Parameters {
        let end = ContinuousClock.now + .seconds(10)
        while true {
            if let found = parameters.first(where: { $0.mechanism != nil }) { return found }
            guard ContinuousClock.now < end else { throw process.failure("nobody has logged in") }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Ends it.
    package func stop() async throws { _ = try await process.terminate() }

    private init(_ arguments: [String]) throws {
        process = try ToolProcess(
            "/usr/bin/python3",
            [Self.script] + arguments,
            environment: ["PYTHONPATH": Self.library, "PYTHONWARNINGS": "ignore"]
        )
    }
}
