import Foundation

/// One end of a login that is bound to TLS: `binding_peer.py`, on pyOpenSSL, the client with PyPI's aiosasl.
public struct BindingPeer: Sendable {
    /// The peer's report about a connection. Unknown values are nil.
    public struct Parameters: Decodable, Sendable {
        /// `TLSv1.3`.
        public let version: String?
        /// The mechanism that was used.
        public let mechanism: String?
        /// A client: the offered mechanisms.
        public let mechanisms: [String]?
        /// A client: the offered binding types.
        public let bindings: [String]?
        /// A client: the attributes by which the offer was signed, and which were right.
        public let signed: [String]?
        /// A client: the address that was bound.
        public let jid: String?
        /// A server: the client's gs2 flag, with the type of the binding.
        public let flag: String?
        /// A server: whom a client that logs in by its certificate wants to act as.
        public let authzid: String?
        /// A server: the common name of that certificate.
        public let subject: String?
        /// What went wrong.
        public let error: String?
    }

    private static let script = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "Clients/binding_peer.py").path
    /// Where `.ci/packages test` puts what comes from PyPI.
    private static let library = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../.build/python").standardized.path

    /// Whether all that it needs is there.
    public static var isInstalled: Bool {
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
    public static func serve(
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
    public static func logIn(
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
    public var parameters: [Parameters] {
        process.lines(of: .standardOutput).filter { !$0.contains("listening") }
            .compactMap { try? JSONDecoder().decode(Parameters.self, from: Data($0.utf8)) }
    }

    /// The server's report about the first connection with a login, after its end. Other connections only checked
    /// whether it listens.
    public func login() async throws -> Parameters {
        let end = ContinuousClock.now + .seconds(10)
        while true {
            if let found = parameters.first(where: { $0.mechanism != nil }) { return found }
            guard ContinuousClock.now < end else { throw process.failure("nobody has logged in") }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Ends it.
    public func stop() async throws { _ = try await process.terminate() }

    private init(_ arguments: [String]) throws {
        process = try ToolProcess(
            "/usr/bin/python3",
            [Self.script] + arguments,
            environment: ["PYTHONPATH": Self.library, "PYTHONWARNINGS": "ignore"]
        )
    }
}
