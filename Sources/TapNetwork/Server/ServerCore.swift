internal import TapCore
internal import XMPPCore

/// The built-in server without its sockets: it receives connections and bytes, and returns commands.
///
/// Its only source of randomness is the given cryptography; it uses no sockets, clocks or threads. It belongs to one
/// event loop.
struct ServerCore {
    let directory: ServerDirectory
    private var sessions: [ConnectionID: ServerSession] = [:]
    private let parser = StanzaParser()
    private var lastConnection: UInt64 = 0

    /// - Throws: An error if an account's name is not a valid local part, or if the cryptographic library fails.
    init(settings: ServerSettings, cryptography: any Cryptography, responder: (any ServerResponder)? = nil) throws {
        directory = try ServerDirectory(settings: settings, cryptography: cryptography, responder: responder)
    }

    /// - Parameter isSecure: Whether the stream needs no STARTTLS.
    mutating func connect(isSecure: Bool = false) -> ConnectionID {
        lastConnection += 1
        let connection = ConnectionID(number: lastConnection)
        sessions[connection] = ServerSession(connection: connection, directory: directory, isSecure: isSecure)
        return connection
    }

    /// Handles bytes from a client.
    mutating func receive(_ bytes: Span<UInt8>, from connection: ConnectionID) -> [ServerCommand] {
        sessions[connection]?.receive(bytes, parser: parser)
        return performPending()
    }

    /// Handles the end of a client's connection, whether or not its stream was closed before.
    mutating func disconnected(_ connection: ConnectionID) -> [ServerCommand] {
        sessions.removeValue(forKey: connection)?.end(isLost: true)
        return performPending()
    }

    /// Closes a stream with an error, at the request of the connection handlers.
    mutating func terminate(_ connection: ConnectionID, _ condition: StreamErrorCondition) -> [ServerCommand] {
        directory.command(.terminate(connection, condition))
        return performPending()
    }

    /// Closes a stream with an error, because its bytes could not be decoded.
    mutating func fail(_ connection: ConnectionID, _ condition: StreamErrorCondition, _ text: String) -> [ServerCommand]
    {
        sessions[connection]?.fail(condition, text)
        return performPending()
    }

    /// Closes all streams, because the server shuts down.
    mutating func shutDown() -> [ServerCommand] {
        for connection in sessions.keys.sorted(by: { $0.number < $1.number }) {
            directory.command(.terminate(connection, .systemShutdown))
        }
        let commands = performPending()
        directory.responder?.stop()
        return commands
    }

    /// Performs the commands that sessions have for each other, which may cause further ones; returns the remaining
    /// commands.
    func performPending() -> [ServerCommand] {
        var settled: [ServerCommand] = []
        var pending = directory.takeCommands()[...]
        while let command = pending.popFirst() {
            guard case .terminate(let connection, let condition) = command else {
                settled.append(command)
                continue
            }
            sessions[connection]?.fail(condition)
            pending += directory.takeCommands()
        }
        return settled
    }
}
