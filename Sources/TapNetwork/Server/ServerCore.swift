internal import TapCore
internal import XMPPCore

/// The built-in server without its sockets: connections come and go, bytes go in, commands come out.
///
/// Deterministic but for the random bytes it is handed; no socket, no clock, no thread. It belongs to one event loop.
struct ServerCore {
    private(set) var directory: ServerDirectory
    private var sessions: [ConnectionID: ServerSession] = [:]
    private let parser = StanzaParser()
    private var lastConnection: UInt64 = 0

    /// - Throws: Where an account's name is no local part, or the cryptographic library fails.
    init(settings: ServerSettings, cryptography: any Cryptography) throws {
        directory = try ServerDirectory(settings: settings, cryptography: cryptography)
    }

    /// A client has connected.
    mutating func connect() -> ConnectionID {
        lastConnection += 1
        let connection = ConnectionID(number: lastConnection)
        sessions[connection] = ServerSession(connection: connection)
        return connection
    }

    /// A client has sent these bytes.
    mutating func receive(_ bytes: Span<UInt8>, from connection: ConnectionID) -> [ServerCommand] {
        guard let session = sessions[connection] else { return [] }
        var output: [ServerCommand] = []
        session.receive(bytes, parser: parser, directory: &directory, &output)
        return settle(output)
    }

    /// A client's connection is gone, whether or not its stream was closed before.
    mutating func disconnected(_ connection: ConnectionID) -> [ServerCommand] {
        guard let session = sessions.removeValue(forKey: connection) else { return [] }
        var output: [ServerCommand] = []
        session.end(directory: &directory, &output)
        return settle(output)
    }

    /// Ends a stream with an error, for a reason the driver knows.
    mutating func terminate(_ connection: ConnectionID, _ condition: StreamErrorCondition) -> [ServerCommand] {
        settle([.terminate(connection, condition)])
    }

    /// Ends every stream: the server goes down.
    mutating func shutDown() -> [ServerCommand] {
        settle(sessions.keys.sorted { $0.number < $1.number }.map { .terminate($0, .systemShutdown) })
    }

    /// Performs what sessions ask to be done to each other, which may cause more of the same.
    private mutating func settle(_ commands: [ServerCommand]) -> [ServerCommand] {
        var settled: [ServerCommand] = []
        var pending = commands[...]
        while let command = pending.popFirst() {
            guard case .terminate(let connection, let condition) = command else {
                settled.append(command)
                continue
            }
            guard let session = sessions[connection] else { continue }
            var output: [ServerCommand] = []
            session.fail(condition, directory: &directory, &output)
            pending.append(contentsOf: output)
        }
        return settled
    }
}
