import Foundation

/// A real client that plays one scripted session and reports its events: slixmpp or profanity, controlled by a script.
///
/// After the login it requests the roster, sends presence, and sends a ping if requested. It then reports `ready`,
/// sends messages and waits for messages.
package struct ScriptedClient: Sendable {
    /// The clients for which scripts exist.
    package enum Program: Sendable {
        /// The Python library slixmpp.
        case slixmpp
        /// The terminal client profanity, in a separate terminal.
        case profanity
    }

    /// The actions of a session after login, roster and presence.
    package struct Script: Sendable {
        /// Whether the client pings the server before it is ready.
        package var ping: Bool
        /// Messages to send when the client is ready, one after the other.
        package var send: [(to: Account, body: String)]
        /// The text with which the client replies to each received message; nil sends no reply.
        package var reply: String?
        /// Number of messages for which the client waits before it leaves.
        package var receive: Int

        /// Creates a script; by default, the client leaves when it is ready.
        package init(
            ping: Bool = false,
            send: [(to: Account, body: String)] = [],
            reply: String? = nil,
            receive: Int = 0
        ) {
            self.ping = ping
            self.send = send
            self.reply = reply
            self.receive = receive
        }
    }

    /// A line of the script's output. Fields that an event does not have are nil.
    package struct Event: Decodable, Sendable {
        /// The name of the event: connected, tls, bound, roster, present, pong, sent, received, ready, failed or
        /// disconnected.
        package let event: String
        /// The bound full JID.
        package let jid: String?
        /// The sender of a message.
        package let from: String?
        /// The recipient of a message.
        package let to: String?
        /// The id of a message.
        package let id: String?
        /// The text of a message.
        package let body: String?
        /// The bare JIDs in the roster, sorted.
        package let items: [String]?
        /// Round-trip time of a ping in seconds.
        package let seconds: Double?
        /// The reason of a failure or disconnection.
        package let reason: String?
    }

    private let process: ToolProcess
    private let folder: TemporaryFolder

    /// Starts the client.
    ///
    /// - Parameters:
    ///   - program: The client.
    ///   - account: The account that the client logs in to.
    ///   - port: The port on 127.0.0.1.
    ///   - startTLS: Whether the client requires STARTTLS, with any certificate; otherwise it uses no TLS.
    ///   - script: The actions of the session.
    ///   - options: Additional flags for the script of this client.
    package init(
        _ program: Program,
        as account: Account,
        port: UInt16,
        startTLS: Bool = false,
        _ script: Script = Script(),
        options: [String] = []
    ) throws {
        let name =
            switch program {
            case .slixmpp: "slixmpp_client.py"
            case .profanity: "profanity_client.py"
            }
        var arguments = [
            URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Clients/\(name)").path,
            "--jid", account.jid, "--password", account.password, "--port", "\(port)",
            "--receive", "\(script.receive)",
        ]
        if !startTLS { arguments.append("--no-tls") }
        if script.ping { arguments.append("--ping") }
        if let reply = script.reply { arguments += ["--reply", reply] }
        for message in script.send { arguments += ["--send", message.to.jid, message.body] }
        folder = try TemporaryFolder()
        process = try ToolProcess(
            "/usr/bin/python3",
            arguments + options,
            environment: ["TMPDIR": folder.path, "PYTHONUTF8": "1"]
        )
    }

    /// The events so far.
    package var events: [Event] {
        process.lines(of: .standardOutput).compactMap(Self.event)
    }

    /// Waits for the first event with this name.
    @discardableResult
    package func event(_ name: String, within limit: Duration = .seconds(60)) async throws -> Event {
        let line = try await process.line(of: .standardOutput, within: limit) { Self.event($0)?.event == name }
        guard let event = Self.event(line) else { throw process.failure("unreadable: \(line)") }
        return event
    }

    /// Waits until the client has ended, and returns all events.
    ///
    /// - Throws: ``KitError`` if the client could not perform the actions of its script.
    @discardableResult
    package func finish(within limit: Duration = .seconds(60)) async throws -> [Event] {
        let ending = try await process.ending(within: limit)
        guard ending == .exited(0) else { throw process.failure("ended with \(ending)") }
        return events
    }

    /// Kills the client with SIGKILL.
    package func kill() async throws {
        process.signal(SIGKILL)
        try await process.ending()
    }

    private static func event(_ line: String) -> Event? {
        try? JSONDecoder().decode(Event.self, from: Data(line.utf8))
    }
}
