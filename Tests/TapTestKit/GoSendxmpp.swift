/// go-sendxmpp, a command-line client that requires TLS. It sends one message, or prints received messages.
package struct GoSendxmpp: Sendable {
    private let process: ToolProcess
    private let folder: TemporaryFolder

    /// Logs in and sends a message.
    ///
    /// - Parameters:
    ///   - authority: Path of the only certificate that the client trusts; by default, it accepts any certificate.
    ///   - direct: Whether the client uses direct TLS instead of STARTTLS.
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
    ///   - authority: Path of the only certificate that the client trusts; by default, it accepts any certificate.
    ///   - direct: Whether the client uses direct TLS instead of STARTTLS.
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
            // The client also reads the system's folder of roots, unless another folder is set.
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

    /// Waits for a printed line that contains the text.
    @discardableResult
    package func line(holding text: String, within limit: Duration = .seconds(60)) async throws -> String {
        try await process.line(of: .standardOutput, within: limit) { $0.contains(text) }
    }

    /// Waits until the client has sent its message.
    ///
    /// - Throws: ``KitError`` if the client failed.
    package func finish(within limit: Duration = .seconds(60)) async throws {
        let ending = try await process.ending(within: limit)
        guard ending == .exited(0) else { throw process.failure("ended with \(ending)") }
    }

    /// Stops the client.
    package func stop() async throws {
        try await process.terminate()
    }
}
