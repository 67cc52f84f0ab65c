import Foundation
import StanzaMix

/// The speed at which recordings are replayed, compared with a load generator that only writes, and the speed at which
/// they are compared.
///
/// The program's proxy records the captures.
final class RecordingSpeed {
    private let program: String
    private let loop = EventLoop()
    private let sink = ServerConnection.Sink()
    private let listener: Listener
    private let folder: URL

    /// - Parameter program: The path of xmpptap.
    init(_ program: String) throws {
        self.program = program
        let (loop, sink) = (loop, sink)
        sink.echoes = false
        listener = Listener { loop.add(ServerConnection($0, sink)) }
        loop.add(listener)
        folder = FileManager.default.temporaryDirectory.appending(path: "xmpptap-benchmark-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (name, text) in [
            ("password", "roots\n"), ("accounts", "ash@garden.example \(path("password"))\n"),
            ("copies", "ash%d@garden.example \(path("password")) as=ash@garden.example\n"),
        ] {
            try text.write(toFile: path(name), atomically: true, encoding: .utf8)
            chmod(path(name), 0o600)
        }
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private func path(_ name: String) -> String { folder.appending(path: name).path }

    func run(rounds: Int) throws {
        try compareReplay(rounds, stanzas: 200_000)
        try replayCopies(1_000, stanzas: 100)
        try compareCaptures(stanzas: 1_000_000)
    }

    // MARK: Replay

    private func compareReplay(_ rounds: Int, stanzas: Int) throws {
        try record("replayed.xtap", stanzas, connections: 1, seed: 0)
        let replay = [
            program, "replay", path("replayed.xtap"), "--to", "127.0.0.1:\(listener.port)", "--accounts",
            path("accounts"),
        ]
        let load = [CommandLine.arguments[0], program, "load", "\(listener.port)", "\(stanzas)"]
        let commands = [load + ["1"], load + ["\(64 << 10)"], replay]
        var rates = [[Double]](repeating: [], count: commands.count)
        for _ in 1...rounds {
            for (index, command) in commands.enumerated() { rates[index].append(try rate(command, stanzas)) }
        }
        let medians = rates.map { $0.sorted()[rounds / 2] }
        print("stanzas a second that reach a sink in one session, \(stanzas) of them:")
        for (name, median) in zip(["one write for each", "64 KiB a write", "replay"], medians) {
            let words = "  \(name)".padding(toLength: 22, withPad: " ", startingAt: 0)
            print(
                words,
                String(format: "%10.0f", median),
                name == "replay" ? "" : String(format: "replay: %.2f", medians[2] / median)
            )
        }
    }

    /// Runs a sender, and divides the stanzas by the time from its first bytes to its last.
    private func rate(_ command: [String], _ stanzas: Int) throws -> Double {
        // The replay sends no less than the load generator.
        let (before, bytes) = (sink.received, SenderMix(seed: 0).size(of: stanzas))
        var (first, last, seen) = (0, 0, before)
        let process = try start(command)
        let isDone = loop.run(120) {
            guard sink.received > seen else { return !process.isRunning }
            last = EventLoop.now
            if seen == before { first = last }
            seen = sink.received
            return false
        }
        guard isDone, seen - before >= bytes, last > first else {
            throw Failure("\(command[0]) has sent \(seen - before) of \(bytes) bytes")
        }
        loop.settle()
        return Double(stanzas) / Double(last - first) * 1e9
    }

    /// The load generator, in a separate process. Its data is prepared before, and it writes at least `piece` bytes at
    /// once.
    static func load(_ port: UInt16, _ stanzas: Int, piece: Int) throws {
        let loop = EventLoop()
        guard let descriptor = Connection.connect(port) else { throw Failure("nobody listens") }
        let client = ClientConnection(descriptor)
        loop.add(client)
        client.begin()
        guard loop.run(10, until: { client.isReady }) else { throw Failure("login takes too long") }
        for bytes in SenderMix(seed: 0).pieces(of: stanzas, piece) {
            bytes.withUnsafeBufferPointer { client.send($0) }
            guard loop.run(60, until: { client.waiting == 0 }) else { throw Failure("nobody reads") }
        }
        client.end()
    }

    /// Plays many copies of a session at once to a server that returns every stanza, and counts missing and changed
    /// ones.
    private func replayCopies(_ copies: Int, stanzas: Int) throws {
        sink.echoes = true
        defer { sink.echoes = false }
        try record("copied.xtap", stanzas, connections: 1, seed: 0, hasRequests: false)
        let process = try start(
            [
                program, "replay", path("copied.xtap"), "--to", "127.0.0.1:\(listener.port)", "--accounts",
                path("copies"),
                "--copies", "\(copies)", "--json",
            ],
            output: path("copies.json")
        )
        let began = EventLoop.now
        guard loop.run(300, until: { !process.isRunning }) else { throw Failure("the copies take too long") }
        let seconds = Double(EventLoop.now - began) / 1e9
        let report = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: path("copies.json"))))
        guard let report = report as? [String: Any], let sessions = report["sessions"] as? [[String: Any]] else {
            throw Failure("the copies have not been played")
        }
        let divergences = sessions.flatMap { $0["divergences"] as? [[String: Any]] ?? [] }
        let lost = divergences.count { $0["code"] as? String == "missing" }
        let compared = report["compared"] as? Int ?? 0
        let errors = report["errors"] as? [String] ?? []
        guard errors.isEmpty, compared + lost >= copies * stanzas else {
            let reasons = errors.isEmpty ? "" : "; \(errors.count) copies were not played to their end: \(errors[0])"
            throw Failure(
                "of \(copies * stanzas) stanzas only \(compared) have been compared, and \(lost) are missing\(reasons)"
            )
        }
        print(
            "\(copies) copies of a session of \(stanzas) stanzas, each sent and received, in",
            String(format: "%.1f s:", seconds),
            "\(compared) compared, \(lost) lost, \(divergences.count - lost) falsely diverging"
        )
    }

    // MARK: Comparison

    private func compareCaptures(stanzas: Int) throws {
        print("diff of two captures of \(stanzas) stanzas:")
        var recorded = 0
        for (name, connections, seed, isMarked) in [
            ("other ids", 8, 3, false), ("other ids and texts", 8, 2, false), ("all of one session", 1, 2, true),
        ] {
            if connections != recorded {
                try record("recorded.xtap", stanzas, connections: connections, seed: 1)
                recorded = connections
            }
            try record("live.xtap", stanzas, connections: connections, seed: seed, isMarked: isMarked)
            let bytes = try ["recorded.xtap", "live.xtap"].reduce(0) { sum, name in
                try sum + (FileManager.default.attributesOfItem(atPath: path(name))[.size] as? Int ?? 0)
            }
            let began = EventLoop.now
            let process = try start([program, "diff", path("recorded.xtap"), path("live.xtap")])
            var peak = 0
            while process.isRunning {
                peak = max(peak, Self.peak(process.processIdentifier))
                usleep(20_000)
            }
            let seconds = Double(EventLoop.now - began) / 1e9
            guard process.terminationStatus <= 1 else { throw Failure("diff has failed") }
            print(
                String(
                    format: "  %@ %6.1f MB/s of both, %4d MiB at most",
                    name.padding(toLength: 20, withPad: " ", startingAt: 0) as NSString,
                    Double(bytes) / seconds / 1e6,
                    peak >> 20
                )
            )
        }
    }

    /// Returns the peak memory of a process so far, in bytes.
    private static func peak(_ process: Int32) -> Int {
        let text = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
        return (line?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) << 10
    }

    // MARK: What both need

    /// Records sessions that send stanzas.
    private func record(
        _ name: String,
        _ stanzas: Int,
        connections: Int,
        seed: Int,
        hasRequests: Bool = true,
        isMarked: Bool = false
    ) throws {
        try? FileManager.default.removeItem(atPath: path(name))
        let kind = Relay.Kind(
            name: "xmpptap",
            command: [program, "proxy", "--listen", "LISTEN", "--upstream", "UPSTREAM", "--log", "off"]
                + ["--capture", path(name), "--rotate-size", "0"]
        )
        let relay = try Relay(kind, upstream: listener.port)
        var clients: [ClientConnection] = []
        var returned = 0
        for _ in 0..<connections {
            guard let descriptor = Connection.connect(relay.port) else { throw Failure("xmpptap refuses") }
            let client = ClientConnection(descriptor)
            client.onReceived = { returned += $1 }
            loop.add(client)
            client.begin()
            guard loop.run(10, until: { client.isReady }) else { throw Failure("login takes too long") }
            clients.append(client)
        }
        let before = sink.received
        let mix = SenderMix(seed: seed, hasRequests: hasRequests, isMarked: isMarked)
        try mix.send(stanzas / connections, by: clients, on: loop)
        let bytes = mix.size(of: stanzas / connections) * connections
        // If a client disconnected earlier, the recording would lack the stanzas in transit.
        guard loop.run(120, until: { sink.received - before >= bytes && (!sink.echoes || returned >= bytes) }) else {
            throw Failure("recording takes too long")
        }
        for client in clients { client.end() }
        loop.settle()
        relay.stop()
    }

    private func start(_ command: [String], output: String? = nil) throws -> Process {
        let process = Process()
        process.executableURL = URL(filePath: command[0])
        process.arguments = Array(command.dropFirst())
        process.standardInput = FileHandle.nullDevice
        if let output {
            _ = FileManager.default.createFile(atPath: output, contents: nil)
            process.standardOutput = FileHandle(forWritingAtPath: output)
        } else {
            process.standardOutput = FileHandle.nullDevice
        }
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }
}
