internal import TapCore
internal import XMPPCore

/// The built-in server without its sockets: it receives connections and bytes, and returns commands.
///
/// Deterministic apart from the random bytes it is given; it uses no socket, clock or thread. It belongs to one event
/// loop.
struct ServerCore {
    let directory: ServerDirectory
    private var sessions: [ConnectionID: ServerSession] = [:]
    private let parser = StanzaParser()
    private var lastConnection: UInt64 = 0

    /// - Throws: If an account's name is not a valid local part, or the cryptographic library fails.
    init(settings: ServerSettings, cryptography: any Cryptography, responder: (any ServerResponder)? = nil) throws {
        directory = try ServerDirectory(settings: settings, cryptography: cryptography, responder: responder)
    }

    mutating func connect() -> ConnectionID {
        lastConnection += 1
        let connection = ConnectionID(number: lastConnection)
        sessions[connection] = ServerSession(connection: connection, directory: directory)
        return connection
    }

    /// A client has sent these bytes.
    mutating func receive(_ bytes: Span<UInt8>, from connection: ConnectionID) -> [ServerCommand] {
        sessions[connection]?.receive(bytes, parser: parser)
        return settle()
    }

    /// A client's connection is gone, whether or not its stream was closed before.
    mutating func disconnected(_ connection: ConnectionID) -> [ServerCommand] {
        sessions.removeValue(forKey: connection)?.end(isLost: true)
        return settle()
    }

    /// Ends a stream with an error, for a reason the driver knows.
    mutating func terminate(_ connection: ConnectionID, _ condition: StreamErrorCondition) -> [ServerCommand] {
        directory.command(.terminate(connection, condition))
        return settle()
    }

    /// Ends every stream, because the server shuts down.
    mutating func shutDown() -> [ServerCommand] {
        for connection in sessions.keys.sorted(by: { $0.number < $1.number }) {
            directory.command(.terminate(connection, .systemShutdown))
        }
        let commands = settle()
        directory.responder?.stop()
        return commands
    }

    /// Performs what sessions ask to be done to each other, which may cause more of the same.
    func settle() -> [ServerCommand] {
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
