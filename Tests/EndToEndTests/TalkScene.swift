import Foundation
import TapTestKit

/// Juliet and romeo talk through a server with stream management (XEP-0198). Juliet connects through a proxy that
/// terminates TLS, and repeatedly loses her connection.
struct TalkScene {
    /// One line of the clients' output.
    struct Event: Decodable {
        let event: String
        /// The ids of the messages that juliet and romeo have received.
        let juliet: [String]?
        let romeo: [String]?
        /// The numbers of stanzas that juliet has handled and sent, according to her own count.
        let handled: Int?
        let sent: Int?
        let jid: String?
        let reason: String?
    }

    let tap: Tap
    let clients: ClientsScene

    /// - Parameters:
    ///   - arguments: Further arguments for the proxy; it always terminates TLS and trusts the server's certificate.
    ///   - translatesCounts: Whether the proxy translates the counts of stream management.
    init(_ kind: ClientsScene.Kind, arguments: [String] = [], translatesCounts: Bool = true) async throws {
        clients = try await ClientsScene(kind, version: "1.3")
        tap = try await clients.tap(
            .startTLS,
            // With ejabberd, slixmpp would use tls-unique, which TLS 1.3 does not define.
            kind == .ejabberd ? .strip : .keep,
            arguments: arguments,
            environment: translatesCounts ? [:] : ["XMPPTAP_TRANSLATE_COUNTS": "no"]
        )
    }

    /// Starts the clients, which exit on their own.
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

    /// Waits for the clients to exit, stops the proxy and the server, and returns the clients' output and exit code.
    func finish(_ talk: ToolProcess) async throws -> (events: [Event], ending: ToolProcess.Ending) {
        let ending = try await talk.ending(within: .seconds(150))
        if tap.binary.process.isRunning { try await tap.stop() }
        try await clients.stop()
        let decoder = JSONDecoder()
        let events = talk.lines(of: .standardOutput).compactMap { try? decoder.decode(Event.self, from: Data($0.utf8)) }
        return (events, ending)
    }

    /// The stanzas that were injected into juliet's session.
    struct Injected {
        /// The ids of the injected messages, by recipient.
        var juliet: [String] = []
        var romeo: [String] = []
        /// The numbers of pings to the server with and without an answer.
        var answered = 0
        var unanswered = 0
    }

    /// Injects messages and pings on both sides of juliet's session until the clients have sent everything.
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
        // Waits until both clients are connected, because they receive no messages before.
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

    /// Kills the proxy, and starts another one on the same port.
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
