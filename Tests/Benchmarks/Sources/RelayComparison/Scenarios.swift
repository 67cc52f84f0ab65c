import StanzaMix

/// The measurements of one relay.
struct Measures {
    /// CPU time of a login and its end, in µs.
    var setup = 0.0
    /// CPU time of a relayed stanza, with one stanza in transit on each of 50 connections, in µs.
    var pingPong = 0.0
    /// CPU time of a relayed stanza, with eight connections that send without pauses, in µs.
    var bulk = 0.0
    /// Median round-trip time at 1,000 round trips per second, in µs.
    var latency = 0.0
    /// Memory of an open session, in KiB.
    var idle = 0.0
}

/// The scenarios for one relay, with clients and a server in this process.
final class Scenarios {
    private let loop = EventLoop()
    private let sink = ServerConnection.Sink()
    private let mix: StanzaMix
    private let listener: Listener
    private var relay: Relay
    private var clients: [ClientConnection] = []

    init(_ kind: Relay.Kind, _ mix: StanzaMix = StanzaMix(count: 400)) throws {
        self.mix = mix
        let (loop, sink) = (loop, sink)
        listener = Listener { loop.add(ServerConnection($0, sink)) }
        loop.add(listener)
        relay = try Relay(kind, upstream: listener.port)
    }

    func run(scale: Double, sessions: Int) throws -> Measures {
        var measures = Measures()
        measures.setup = try setUp(max(100, Int(1000 * scale)))
        let before = relay.memory
        try open(sessions)
        measures.idle = (relay.memory - before) / Double(sessions) / 1024
        closeAll()
        try open(50)
        measures.pingPong = try pingPong(max(1000, Int(40_000 * scale)))
        closeAll()
        try open(20)
        measures.latency = try latency(rounds: max(500, Int(3000 * scale)))
        closeAll()
        sink.echoes = false
        try open(8)
        measures.bulk = try bulk(passes: max(4, Int(100 * scale)))
        closeAll()
        relay.stop()
        return measures
    }

    /// Runs only the ping-pong scenario.
    func runPingPong(rounds: Int) throws -> Measures {
        var measures = Measures()
        try open(50)
        measures.pingPong = try pingPong(rounds)
        closeAll()
        relay.stop()
        return measures
    }

    // MARK: Connections

    private func connect(_ ready: @escaping (ClientConnection) -> Void) throws {
        guard let descriptor = Connection.connect(relay.port) else { throw Failure("\(relay.kind.name) refuses") }
        let client = ClientConnection(descriptor)
        client.onReady = ready
        loop.add(client)
        client.begin()
        clients.append(client)
    }

    private func open(_ count: Int) throws {
        var ready = 0
        for started in 0..<count {
            try connect { _ in ready += 1 }
            try wait("login") { started - ready < 16 }
        }
        try wait("login") { ready == count }
        // Work left after a login is completed.
        loop.settle()
    }

    private func closeAll() {
        for client in clients { client.end() }
        clients = []
        loop.settle()
    }

    private func wait(_ what: String, _ condition: () -> Bool) throws {
        guard loop.run(60, until: condition) else { throw Failure("\(relay.kind.name): \(what) takes too long") }
    }

    /// Sends the next stanza of the mix, which the server returns.
    private func sendNext(_ client: ClientConnection) {
        let stanza = mix.stanzas[client.position % mix.stanzas.count]
        client.position += 1
        client.expected = stanza.count
        mix.stream.withUnsafeBufferPointer { client.send(UnsafeBufferPointer(rebasing: $0[stanza])) }
    }

    // MARK: Scenarios

    private func setUp(_ count: Int) throws -> Double {
        let start = relay.cpu
        var done = 0
        for started in 0..<count {
            try connect { client in
                done += 1
                client.end()
            }
            try wait("login") { started - done < 16 }
            clients.removeAll { $0.isOver }
        }
        try wait("login") { done == count }
        loop.settle()
        return (relay.cpu - start) / Double(count)
    }

    private func pingPong(_ rounds: Int) throws -> Double {
        let before = relay.kind.logs ? relay.logLines : 0
        let start = relay.cpu
        var done = 0
        for (index, client) in clients.enumerated() {
            client.position = index * 7
            client.onReceived = { [self] client, count in
                client.expected -= count
                guard client.expected == 0 else { return }
                done += 1
                if done < rounds { sendNext(client) }
            }
            sendNext(client)
        }
        try wait("ping-pong") { done >= rounds }
        loop.settle()
        let cpu = relay.cpu - start
        if relay.kind.logs, relay.logLines - before < done * 2 {
            throw Failure("\(relay.kind.name): lines are missing")
        }
        return cpu / Double(done * 2)
    }

    private func bulk(passes: Int) throws -> Double {
        let piece = 64 << 10
        var stanzas: [UInt8] = []
        for _ in 0..<passes { stanzas += mix.stream[mix.headerCount...] }
        let start = relay.cpu
        let before = sink.received
        for client in clients {
            client.position = 0
            client.onDrained = { client in
                // Data sent immediately is not reported as drained.
                while client.waiting == 0, client.position < stanzas.count {
                    let end = min(client.position + piece, stanzas.count)
                    stanzas.withUnsafeBufferPointer {
                        client.send(UnsafeBufferPointer(rebasing: $0[client.position..<end]))
                    }
                    client.position = end
                }
            }
            client.onDrained(client)
        }
        try wait("bulk") { sink.received - before >= clients.count * stanzas.count }
        loop.settle()
        return (relay.cpu - start) / Double(clients.count * passes * mix.stanzas.count)
    }

    /// Returns the median round-trip time. Round trips start on schedule, even if the previous one has not completed.
    private func latency(rounds: Int) throws -> Double {
        let interval = 1_000_000
        var times: [Int] = []
        for client in clients {
            client.onReceived = { client, count in
                client.expected -= count
                if client.expected == 0 { times.append(EventLoop.now - client.since) }
            }
        }
        let start = EventLoop.now
        for round in 0..<rounds {
            let due = start + round * interval
            while EventLoop.now < due { loop.turn(due - EventLoop.now > 1_500_000 ? 1 : 0) }
            let client = clients[round % clients.count]
            try wait("a round trip") { client.expected == 0 }
            client.since = due
            sendNext(client)
        }
        try wait("a round trip") { times.count == rounds }
        return Double(times.sorted()[rounds / 2]) / 1000
    }
}
