internal import ArgumentParser
internal import Glibc
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import XMPPCore

struct InjectCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "inject",
        abstract: "Send a stanza into a session of a running proxy.",
        discussion: """
            Sends the stanza between two others: to the client as if from the server, or to the server as if from the \
            client. The other side does not see it. The answer to an iq request is printed here and not relayed, and the \
            counts of stream management are translated. Logs mark the stanza with "tap". The exit code is 1 if the stanza \
            is refused or not answered.

            Examples:

              xmpptap inject --session 3 --to client --message 'Ay me!' --peer romeo@example.org
              echo '<presence/>' | xmpptap inject --jid juliet@example.org --to server
              xmpptap inject --session 3 --to server version.xml
              xmpptap inject --session 3 --to client --raw broken.xml
            """
    )

    @Argument(
        help: ArgumentHelp("File with one stanza (default: -, standard input).", valueName: "file"),
        completion: .file()
    )
    var file: String?

    @OptionGroup var session: SessionOption

    @Option(
        help: ArgumentHelp("Side to send the stanza to.", valueName: "client|server"),
        completion: .choices(Side.self),
        transform: Side.typed
    )
    var to: Side

    @Option(help: ArgumentHelp("Send a chat message with this text instead of a file.", valueName: "body"))
    var message: String?

    @Option(
        help: ArgumentHelp(
            "JID at the other end of the message.",
            discussion: "The sender with --to client, the addressee with --to server.",
            valueName: "jid"
        ),
        transform: JID.typed
    )
    var peer: JID?

    @Option(
        help: ArgumentHelp("Sender of the message, instead of the usual one.", valueName: "jid"),
        transform: JID.typed
    )
    var from: JID?

    @Flag(help: "Send the bytes of the file as they are, for tests with malformed streams.")
    var raw = false

    @Flag(
        inversion: .prefixedNo,
        help: "Wait for the answer to an iq request, and print it (default: yes, except with --raw)."
    )
    var wait: Bool?

    @Option(
        help: ArgumentHelp("Time to wait for a boundary or the answer (100ms to 5m; default: 10s).", valueName: "time"),
        transform: { try TimeSpan.parse($0, atMost: Injection.maximumTimeout) }
    )
    var timeout = Injection.usualTimeout

    @Flag(help: "Print the result as JSON.")
    var json = false

    @OptionGroup var control: ControlOption
    @OptionGroup var config: ConfigOption

    func validate() throws {
        guard message == nil || file == nil else {
            throw ValidationError("--message and a file both give a stanza; leave one out")
        }
        guard message == nil || !raw else {
            throw ValidationError("--raw sends a file; --message is always well-formed")
        }
        guard (message == nil) == (peer == nil) else {
            throw ValidationError(
                message == nil
                    ? "--peer has no effect without --message" : "--message needs --peer, the JID at its other end"
            )
        }
        guard message != nil || from == nil else {
            throw ValidationError("--from needs --message; for a file, write the sender into the stanza")
        }
    }

    func run() async throws {
        let body = try body()
        let client = try control.client()
        let chosen = try await session.choose(client)
        let answer = try await client.ask(
            .init("POST", chosen.path("/inject"), body: body),
            // The proxy enforces the time limit, first for the boundary and then for the answer: wait longer than both.
            timeout: .nanoseconds(2 * timeout) + .seconds(10)
        )
        if json { return Console.print(answer.json) }
        if let iq = answer["answer"]?.text {
            Console.printEscaped(iq)
            let time = answer["round_trip_ns"]?.integer.map { " after \(LineBuffer.duration($0))" } ?? ""
            Console.printStandardError("answered by \(chosen.name(of: to))\(time)")
        } else {
            let id = answer["id"]?.text.map { ", id \($0)" } ?? ""
            let time = answer["delay_ns"]?.integer.map { " after \(LineBuffer.duration($0))" } ?? ""
            Console.printEscaped("sent to \(chosen.name(of: to)) in session \(chosen.number)\(time)\(id)")
        }
    }

    private func body() throws(Failure) -> String {
        let stanza = message == nil ? try StanzaFile.read(file ?? "-", isText: !raw) : nil
        return LineBuffer.object {
            $0.field("to", to.rawValue)
            if let stanza { $0.field("stanza", stanza.span.bytes, orBase64: "base64") }
            if let message, let peer {
                $0.field("message")
                $0.openObject()
                $0.field("body", message)
                $0.field("peer", peer.description)
                if let from { $0.field("from", from.description) }
                $0.closeObject()
            }
            if raw { $0.field("raw", true) }
            if let wait { $0.field("await_answer", wait) }
            $0.field("timeout_ns", Int(timeout))
        }
    }
}

/// Reads files that contain a stanza.
enum StanzaFile {
    /// Maximum size in bytes; larger than the limit of a session by default.
    private static let limit = 16 << 20

    /// Returns the content of a file; `-` is standard input. The file must be UTF-8 if it is used as text.
    static func read(_ path: String, isText: Bool = true) throws(Failure) -> [UInt8] {
        if path == "-", isatty(STDIN_FILENO) == 1 {
            Console.printStandardError("reading the stanza from standard input; end it with Ctrl-D")
        }
        return isText ? Array(try TextFile.read(path, limit: limit).utf8) : try TextFile.bytes(path, limit: limit)
    }
}
