import Foundation
import TapTestKit

/// Juliet and Romeo talk through a server with stream management (XEP-0198), juliet by way of a tap that ends TLS, and
/// loses her connection again and again.
struct TalkScene {
    /// One line of what the clients tell.
    struct Event: Decodable {
        let event: String
        /// The ids of the messages that each has got.
        let juliet: [String]?
        let romeo: [String]?
        /// Stanzas that juliet has handled and sent, as she counts them.
        let handled: Int?
        let sent: Int?
        let jid: String?
        let reason: String?
    }

    let tap: Tap
    private let clients: ClientsScene
    private let kind: ClientsScene.Kind

    /// - Parameters:
    ///   - arguments: The tap's, beside those that end TLS and have it trust the server.
    ///   - translatesCounts: false has the tap leave the counts of stream management as they are.
    init(_ kind: ClientsScene.Kind, arguments: [String] = [], translatesCounts: Bool = true) async throws {
        self.kind = kind
        clients = try await ClientsScene(kind, version: "1.3")
        tap = try await clients.tap(
            .startTLS,
            // slixmpp binds by tls-unique to ejabberd, which TLS 1.3 does not define.
            kind == .ejabberd ? .strip : .keep,
            arguments: arguments,
            environment: translatesCounts ? [:] : ["XMPPTAP_TRANSLATE_COUNTS": "no"]
        )
    }

    /// Starts the clients, which end by themselves.
    func talk(_ options: [String] = []) throws -> ToolProcess {
        let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "TapTestKit/Clients/slixmpp_talk.py").path
        return try ToolProcess(
            "/usr/bin/python3",
            [
                script, "--juliet", Account.juliet.jid, Account.juliet.password, "--romeo", Account.romeo.jid,
                Account.romeo.password, "--port", "\(tap.port)", "--server", "\(clients.port(.startTLS))", "--ca",
                clients.trusted,
            ] + options
        )
    }

    /// What the clients have told, and how they ended; the tap and the server are ended then.
    func finish(_ talk: ToolProcess) async throws -> (events: [Event], ending: ToolProcess.Ending) {
        let ending = try await talk.ending(within: .seconds(150))
        if tap.binary.process.isRunning { try await tap.stop() }
        try await clients.stop()
        let decoder = JSONDecoder()
        let events = talk.lines(of: .standardOutput).compactMap { try? decoder.decode(Event.self, from: Data($0.utf8)) }
        return (events, ending)
    }

    /// Kills the tap and starts another one in its place.
    func restart() async throws -> Tap {
        tap.binary.process.signal(SIGKILL)
        try await tap.binary.process.ending()
        return try await clients.tap(
            .startTLS,
            .keep,
            port: tap.port,
            environment: ["XDG_STATE_HOME": tap.folder.path]
        )
    }
}
