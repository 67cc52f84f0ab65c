package import NIOCore
package import TapReplay
internal import TapSecurity
internal import XMPPCore

/// Runs a scansion script against a live server.
package struct ScriptRun: Sendable {
    private let script: Script
    private let settings: ScriptPlay.Settings
    private let clients: [(account: LiveAccount, server: LiveServer)]

    /// - Parameters:
    ///   - script: The script to run.
    ///   - server: The live server; clients of the script may override it with `connect_host` and `connect_port`.
    ///   - accounts: Accounts that take precedence over the passwords in the script.
    ///   - settings: Settings of the run.
    /// - Throws: ``ScriptRunError`` if a client has no password.
    package init(
        _ script: Script,
        at server: LiveServer,
        accounts: [ReplayRun.Account],
        settings: ScriptPlay.Settings = ScriptPlay.Settings()
    ) throws(ScriptRunError) {
        var clients: [(account: LiveAccount, server: LiveServer)] = []
        for character in script.characters {
            let account = accounts.first { $0.recorded.description == character.jid }
            guard let jid = account?.live ?? JID(character.jid), let password = account?.password ?? character.password
            else { throw ScriptRunError(character: character.name, jid: character.jid, line: character.line) }
            let live = LiveAccount(jid: jid, password: password, resource: character.resource, resumption: nil)
            clients.append((live, server.at(host: character.host, port: character.port)))
        }
        self.script = script
        self.settings = settings
        self.clients = clients
    }

    /// Runs the script to its end, and closes all connections.
    package func run(on group: any EventLoopGroup) async -> ScriptPlay.Outcome {
        let loop = group.next()
        return await withCheckedContinuation { continuation in
            loop.execute {
                ScriptDriver(script, clients, settings: settings, on: loop) { continuation.resume(returning: $0) }
                    .begin()
            }
        }
    }
}

/// A client of a script has no password, so that it cannot log in.
package struct ScriptRunError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The client's name in the script.
    package let character: String
    /// The client's account.
    package let jid: String
    /// The line that defines the client, from 1.
    package let line: Int

    /// The problem and its remedy.
    package var description: String {
        "no password for \(character) (\(jid)): add it to the accounts file, or as \"password:\" to the script"
    }
}

/// Performs the commands of a ``ScriptPlay`` on one event loop; kept alive by its clients and its timer.
private final class ScriptDriver {
    private var play: ScriptPlay
    private let accounts: [(account: LiveAccount, server: LiveServer)]
    private let loop: any EventLoop
    private let parser = StanzaParser()
    private var clients: [LiveClient?]
    /// Number of connections that each client has made.
    private var connections: [Int]
    private var timer: Scheduled<Void>?
    /// Accounts that were created for this script.
    private var created: [JID: (account: LiveAccount, server: LiveServer)] = [:]
    private var isPerforming = false
    /// Receives the outcome; nil after that.
    private var onOutcome: ((ScriptPlay.Outcome) -> Void)?

    init(
        _ script: Script,
        _ accounts: [(account: LiveAccount, server: LiveServer)],
        settings: ScriptPlay.Settings,
        on loop: any EventLoop,
        onOutcome: @escaping (ScriptPlay.Outcome) -> Void
    ) {
        play = ScriptPlay(script, accounts: accounts.map(\.account.jid.description), settings: settings)
        self.accounts = accounts
        self.loop = loop
        self.onOutcome = onOutcome
        clients = accounts.map { _ in nil }
        connections = accounts.map { _ in 0 }
    }

    private var now: Int64 { Int64(clamping: NIODeadline.now().uptimeNanoseconds) }

    func begin() {
        play.start(at: now)
        perform()
    }

    private func perform() {
        guard !isPerforming else { return }
        isPerforming = true
        while let command = play.next() {
            switch command {
            case .connect(let index): connect(index)
            case .send(let index, let bytes): clients[index]?.send(bytes)
            case .disconnect(let index): clients[index]?.close()
            }
        }
        isPerforming = false
        timer?.cancel()
        timer = play.deadline.map { deadline in
            loop.assumeIsolated().scheduleTask(in: .nanoseconds(max(0, deadline - now))) { [self] in
                play.tick(at: now)
                perform()
            }
        }
        guard let outcome = play.outcome, clients.allSatisfy({ $0 == nil }), let onOutcome else { return }
        self.onOutcome = nil
        delete(Array(created.values)[...]) { onOutcome(outcome) }
    }

    /// Deletes the created accounts one after another (XEP-0077 §3.2), so that the next script can create them again.
    private func delete(
        _ accounts: ArraySlice<(account: LiveAccount, server: LiveServer)>,
        then end: @escaping () -> Void
    ) {
        guard let (account, server) = accounts.first else { return end() }
        var known = server
        known.registers = false
        var client: LiveClient?
        client = LiveClient(account, at: known, parser: parser, on: loop) { [self] event in
            switch event {
            case .bound:
                client?.send(
                    XMLWriter.bytes {
                        $0.element("iq", ["type": "set", "id": "unregister"]) {
                            $0.element("query", .register) { $0.element("remove") }
                        }
                    }
                )
            case .received(_, let element):
                if element.attribute("id") == "unregister" { client?.close() }
            case .ended:
                client = nil
                delete(accounts.dropFirst(), then: end)
            case .resumed: break
            }
        }
        client?.connect()
    }

    private func connect(_ index: Int) {
        let (account, server) = accounts[index]
        connections[index] += 1
        let number = connections[index]
        let client = LiveClient(account, at: server, parser: parser, on: loop) { [self] event in
            // A connection that took too long to close may end after the next one was opened: ignore its events.
            guard connections[index] == number else { return }
            switch event {
            case .bound(let jid, _):
                if clients[index]?.hasCreatedAccount == true { created[account.jid] = (account, server) }
                play.bound(index, to: jid.description, at: now)
            case .received(let bytes, let element): play.receive(element, bytes, for: index, at: now)
            case .ended(let end):
                clients[index] = nil
                var isUnreachable = false
                if case .unreachable = end { isUnreachable = true }
                play.closed(index, end.reason, isUnreachable: isUnreachable, at: now)
            case .resumed: break
            }
            perform()
        }
        clients[index] = client
        client.connect()
    }
}

extension LiveServer {
    /// Returns a copy with another host or port.
    fileprivate func at(host: String?, port: Int?) -> LiveServer {
        var server = self
        let endpoint = address.endpoint
        server.address.endpoint = Endpoint(host: host ?? endpoint.host, port: port ?? endpoint.port)
        return server
    }
}

extension LiveEnd {
    /// The reason for the end, as a clause.
    var reason: String {
        switch self {
        case .closed: "the server closed the stream"
        case .unreachable(let reason), .untrusted(let reason): reason
        case .failed(let fault): fault.reason
        }
    }
}
