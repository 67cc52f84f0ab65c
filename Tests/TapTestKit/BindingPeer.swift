import Foundation

/// One end of a channel-bound login: `binding_peer.py`, with pyOpenSSL. The client also uses aiosasl from PyPI.
package struct BindingPeer: Sendable {
    /// The peer's report about a connection. Unknown values are nil.
    package struct Parameters: Decodable, Sendable {
        /// The TLS version, such as `TLSv1.3`.
        package let version: String?
        /// The mechanism that was used.
        package let mechanism: String?
        /// Client only: the offered mechanisms.
        package let mechanisms: [String]?
        /// Client only: the offered binding types.
        package let bindings: [String]?
        /// Client only: the attributes with which the server signed the offer (`h`, `t`); all were correct.
        package let signed: [String]?
        /// Client only: the bound JID.
        package let jid: String?
        /// Server only: the client's GS2 flag, with the type of the binding.
        package let flag: String?
        /// Server only: the authorization identity of a client that logs in with its certificate.
        package let authzid: String?
        /// Server only: the common name of the client's certificate.
        package let subject: String?
        /// The error; nil if there was none.
        package let error: String?
    }

    private static let script = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "Clients/binding_peer.py").path
    /// The folder in which `.ci/packages test` installs packages from PyPI.
    private static let library = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../.build/python").standardized.path

    /// Whether everything that the script needs is installed.
    package static var isInstalled: Bool {
        ["\(library)/aiosasl", "/usr/lib/python3/dist-packages/OpenSSL"].allSatisfy {
            FileManager.default.fileExists(atPath: $0)
        }
    }

    private let process: ToolProcess

    /// Starts a server with the account juliet, and waits until it listens.
    ///
    /// - Parameters:
    ///   - mechanisms: The offered mechanisms.
    ///   - bindings: The types of channel binding that the server offers and accepts.
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

    /// Logs in as juliet, and returns the result.
    ///
    /// - Parameters:
    ///   - authority: Path of the only certificate that the client trusts.
    ///   - binding: The type of channel binding that the client uses.
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

    /// Waits for the end of the first connection with a login, and returns the server's report about it. Other
    /// connections only checked whether the server listens.
    package func login() async throws -> Parameters {
        let end = ContinuousClock.now + .seconds(10)
        while true {
            if let found = parameters.first(where: { $0.mechanism != nil }) { return found }
            guard ContinuousClock.now < end else { throw process.failure("nobody has logged in") }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Stops the process.
    package func stop() async throws { _ = try await process.terminate() }

    private init(_ arguments: [String]) throws {
        process = try ToolProcess(
            "/usr/bin/python3",
            [Self.script] + arguments,
            environment: ["PYTHONPATH": Self.library, "PYTHONWARNINGS": "ignore"]
        )
    }
}
