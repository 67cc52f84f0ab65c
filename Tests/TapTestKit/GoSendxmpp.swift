/// go-sendxmpp, a command-line client that insists on TLS: sends one message, or prints those it receives.
package struct GoSendxmpp: Sendable {
    private let process: ToolProcess
    private let folder: TemporaryFolder

    /// Logs in and sends a message.
    ///
    /// - Parameters:
    ///   - authority: path of the one certificate it trusts; by default it accepts any server's.
    ///   - direct: whether it begins with TLS, rather than ask for it.
    package init(
        as account: Account,
        port: UInt16,
        trusting authority: String? = nil,
        direct: Bool = false,
        send body: String,
        to recipient: Account
    ) throws {
        try self.init(account, port, authority, (direct ? ["--tls"] : []) + [recipient.jid], input: body)
    }

    /// Logs in and prints messages until it is terminated.
    ///
    /// - Parameters:
    ///   - authority: path of the one certificate it trusts; by default it accepts any server's.
    ///   - direct: whether it begins with TLS, rather than ask for it.
    package init(
        listeningAs account: Account,
        port: UInt16,
        trusting authority: String? = nil,
        direct: Bool = false
    ) throws {
        try self.init(account, port, authority, (direct ? ["--tls"] : []) + ["--listen"], input: "")
    }

    private init(
        _ account: Account,
        _ port: UInt16,
        _ authority: String?,
        _ arguments: [String],
        input: String
    ) throws {
        folder = try TemporaryFolder()
        var environment = ["HOME": folder.path, "XDG_CONFIG_HOME": folder.path, "XDG_DATA_HOME": folder.path]
        if let authority {
            // The system's folder of roots is read beside the file, unless another is named.
            environment.merge(["SSL_CERT_FILE": authority, "SSL_CERT_DIR": folder.path]) { $1 }
        }
        // A separate home, so that the user's configuration is not read.
        process = try ToolProcess(
            TestProgram.goSendxmpp.rawValue,
            [
                "--username", account.jid, "--password", account.password, "--jserver", "127.0.0.1:\(port)",
            ] + (authority == nil ? ["--no-tls-verify"] : []) + arguments,
            environment: environment,
            input: input
        )
    }

    /// Waits for a printed line that holds the text.
    @discardableResult
    package func line(holding text: String, within limit: Duration = .seconds(60)) async throws -> String {
        try await process.line(of: .standardOutput, within: limit) { $0.contains(text) }
    }

    /// Waits until it has sent its message.
    ///
    /// - Throws: `KitError` when it failed.
    package func finish(within limit: Duration = .seconds(60)) async throws {
        let ending = try await process.ending(within: limit)
        guard ending == .exited(0) else { throw process.failure("ended with \(ending)") }
    }

    /// Ends it.
    package func stop() async throws {
        try await process.terminate()
    }
}
