import Foundation

/// A real client that plays one scripted session and reports its events: slixmpp or profanity behind a script.
///
/// After login it fetches the roster, sends presence, pings if asked, is `ready`, then sends and waits for messages.
package struct ScriptedClient: Sendable {
    /// The clients there are scripts for.
    package enum Program: Sendable {
        /// The Python library.
        case slixmpp
        /// The terminal client, in a separate terminal.
        case profanity
    }

    /// A session's actions beyond login, roster and presence.
    package struct Script: Sendable {
        /// Whether it pings the server before it is ready.
        package var ping: Bool
        /// Messages sent once it is ready, one after the other.
        package var send: [(to: Account, body: String)]
        /// The reply to each received message.
        package var reply: String?
        /// How many messages it waits for before it leaves.
        package var receive: Int

        /// A script; by default it leaves once it is ready.
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

    /// One line of a script's output. A field that an event does not have is nil.
    package struct Event: Decodable, Sendable {
        /// connected, tls, bound, roster, present, pong, sent, received, ready, failed or disconnected.
        package let event: String
        /// The full JID that was bound.
        package let jid: String?
        /// Who a message came from.
        package let from: String?
        /// Who a message went to.
        package let to: String?
        /// A message's id.
        package let id: String?
        /// A message's text.
        package let body: String?
        /// The bare JIDs in the roster, sorted.
        package let items: [String]?
        /// Round trip of a ping.
        package let seconds: Double?
        /// Why it failed or was disconnected.
        package let reason: String?
    }

    private let process: ToolProcess
    private let folder: TemporaryFolder

    /// Starts the client.
    ///
    /// - Parameters:
    ///   - program: which client.
    ///   - account: who it logs in as.
    ///   - port: where on 127.0.0.1 it connects.
    ///   - startTLS: whether it insists on STARTTLS, any certificate accepted; otherwise it stays in plain text.
    ///   - script: the actions of the session.
    ///   - options: further flags of the script of that client.
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

    /// The first event of that name, as soon as it happens.
    @discardableResult
    package func event(_ name: String, within limit: Duration = .seconds(60)) async throws -> Event {
        let line = try await process.line(of: .standardOutput, within: limit) { Self.event($0)?.event == name }
        guard let event = Self.event(line) else { throw process.failure("unreadable: \(line)") }
        return event
    }

    /// All events, once the client has ended.
    ///
    /// - Throws: `KitError` when it could not do what its script asks.
    @discardableResult
    package func finish(within limit: Duration = .seconds(60)) async throws -> [Event] {
        let ending = try await process.ending(within: limit)
        guard ending == .exited(0) else { throw process.failure("ended with \(ending)") }
        return events
    }

    /// Kills it in the middle of its work.
    package func kill() async throws {
        process.signal(SIGKILL)
        try await process.ending()
    }

    private static func event(_ line: String) -> Event? {
        try? JSONDecoder().decode(Event.self, from: Data(line.utf8))
    }
}
