import Foundation
import TapTestKit

/// Juliet and Romeo talk through a server with stream management (XEP-0198), juliet by way of a tap that ends TLS, and
/// loses her connection again and again.
struct TalkScene {
    /// One line of the clients' output.
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
    let clients: ClientsScene

    /// - Parameters:
    ///   - arguments: The tap's, beside those that end TLS and have it trust the server.
    ///   - translatesCounts: false has the tap leave the counts of stream management as they are.
    init(_ kind: ClientsScene.Kind, arguments: [String] = [], translatesCounts: Bool = true) async throws {
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

    /// The clients' output and result; stops the tap and the server.
    func finish(_ talk: ToolProcess) async throws -> (events: [Event], ending: ToolProcess.Ending) {
        let ending = try await talk.ending(within: .seconds(150))
        if tap.binary.process.isRunning { try await tap.stop() }
        try await clients.stop()
        let decoder = JSONDecoder()
        let events = talk.lines(of: .standardOutput).compactMap { try? decoder.decode(Event.self, from: Data($0.utf8)) }
        return (events, ending)
    }

    /// Stanzas that were put into juliet's session.
    struct Injected {
        /// The ids of messages, by who was to get them.
        var juliet: [String] = []
        var romeo: [String] = []
        /// Pings to the server.
        var answered = 0
        var unanswered = 0
    }

    /// Injects messages and pings on both sides of juliet's session until the clients have sent all.
    func inject(during talk: ToolProcess, control: String) async throws -> Injected {
        struct Outcome: Decodable { let id: String? }
        var injected = Injected()
        func run(_ command: String, _ arguments: String...) async throws -> String? {
            let session = [command, "--control", control, "--jid", Account.juliet.jid]
            let (ending, output, _) = try await XMPPTapBinary.run(session + arguments)
            return ending == .exited(0) ? output : nil
        }
        func say(to side: String) async throws -> String? {
            let output = try await run(
                "inject",
                "--to",
                side,
                "--message",
                "From the side",
                "--peer",
                Account.romeo.jid,
                "--json"
            )
            return output.flatMap { try? JSONDecoder().decode(Outcome.self, from: Data($0.utf8)).id }
        }
        func hasTold(_ event: String) -> Bool { talk.text(of: .standardOutput).contains("\"\(event)\"") }
        // Who is not there yet gets no message.
        while talk.isRunning, !hasTold("ready") { try await Task.sleep(for: .milliseconds(20)) }
        while talk.isRunning, !hasTold("sent") {
            if let id = try await say(to: "client") { injected.juliet.append(id) }
            if let id = try await say(to: "server") { injected.romeo.append(id) }
            _ = try await run("ping", "--to", "client", "--count", "1", "--timeout", "2s")
            if try await run("ping", "--to", "server", "--count", "1", "--timeout", "2s") != nil {
                injected.answered += 1
            } else {
                injected.unanswered += 1
            }
        }
        return injected
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
