import Foundation
import TapTestKit
import Testing

/// A service of many parts: HAProxy before three taps, two servers behind them, and a store of two shards. A tap is killed, a shard is
/// away, and a tap is drained and stopped.
@Suite(
    .serialized,
    .timeLimit(.minutes(10)),
    .enabled(
        if: BuildMode.isReleaseProgram && TestProgram.areInstalled(.clickHouse, .prosody, .haproxy, .slixmpp),
        "release builds only, and clickhouse-server, Prosody and haproxy must be installed"
    )
)
struct FleetLongTests {
    private static let sessions = 2000
    /// How long the shard is away after the sessions have sent messages for it.
    private static let absence = Duration.seconds(60)

    /// A tap with a port for each server.
    private struct FleetTap {
        let ports: [UInt16]
        let arguments: [String]
        var binary: XMPPTapBinary

        init(_ servers: [ProsodyServer], store: String, spool: String) async throws {
            var listeners: [String] = []
            var ports: [UInt16] = []
            for server in servers {
                let port = try FreePort.next()
                ports.append(port)
                listeners += ["--listen", "127.0.0.1:\(port)=127.0.0.1:\(server.port)"]
            }
            self.ports = ports
            arguments =
                ["proxy"] + listeners + [
                    "--tls", "passthrough", "--proxy-protocol", "accept", "--log", "off", "--control", "none",
                    "--store", "\(store),filter=message", "--store-spool", spool,
                    "--store-tap", URL(filePath: spool).lastPathComponent,
                ]
            binary = try XMPPTapBinary(arguments, environment: ["XDG_STATE_HOME": spool])
            _ = try await binary.port()
        }

        mutating func restart(spool: String) async throws {
            binary = try XMPPTapBinary(arguments, environment: ["XDG_STATE_HOME": spool])
            _ = try await binary.port()
        }
    }

    /// HAProxy with a port for each server, before all taps, and a port for commands.
    private struct Front {
        let process: ToolProcess
        let ports: [UInt16]
        let control: UInt16

        /// Lets no new connection come to a tap.
        func drain(_ tap: Int) async throws {
            for server in ports.indices {
                let connection = try RawConnection(port: control)
                try await connection.write("set server server\(server)/tap\(tap) state drain\n")
                let (answer, _) = try await connection.read(within: .seconds(30)) { _ in false }
                // HAProxy says nothing if it has done it.
                let isDone = String(decoding: answer, as: UTF8.self).allSatisfy(\.isWhitespace)
                #expect(isDone)
            }
        }
    }

    private static func front(_ taps: [FleetTap], in folder: TemporaryFolder) async throws -> Front {
        let control = try FreePort.next()
        var configuration = """
            global
                stats socket ipv4@127.0.0.1:\(control) level admin
            defaults
                mode tcp
                maxconn 10000
                timeout connect 5s
                timeout client 10m
                timeout server 10m
                balance leastconn
                option redispatch

            """
        var ports: [UInt16] = []
        for server in taps[0].ports.indices {
            let port = try FreePort.next()
            ports.append(port)
            configuration += "listen server\(server)\n    bind 127.0.0.1:\(port)\n"
            for (number, tap) in taps.enumerated() {
                configuration +=
                    "    server tap\(number) 127.0.0.1:\(tap.ports[server]) send-proxy-v2 check inter 200ms\n"
            }
        }
        let path = try folder.write(configuration, to: "haproxy.cfg")
        let process = try ToolProcess(TestProgram.haproxy.rawValue, ["-db", "-f", path])
        for port in ports {
            while !FreePort.accepts(port) {
                guard process.isRunning else { throw process.failure("does not accept") }
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        return Front(process: process, ports: ports, control: control)
    }

    @Test(
        "A killed tap, a drained one and a shard that is away lose none of the messages of two thousand sessions, each found once"
    )
    func losesNothing() async throws {
        let folder = try TemporaryFolder()
        let shards = [try await ClickHouse(), try await ClickHouse()]
        let store = "clickhouse://\(shards.map { "127.0.0.1:\($0.port)" }.joined(separator: "+"))/audit"
        let created = try await XMPPTapBinary.run(["store", "init", store])
        #expect(created.ending == .exited(0), "\(created)")
        let domains = ["a.example", "b.example"]
        var servers: [ProsodyServer] = []
        for domain in domains {
            servers.append(
                try await ProsodyServer(
                    accounts: [Account("juliet", domain: domain, password: "secret")],
                    users: Self.sessions / 2,
                    settings: "unlimited_jids = {}"
                )
            )
        }
        let spools = (0..<3).map { folder.path(of: "spool\($0)") }
        var taps: [FleetTap] = []
        for spool in spools { taps.append(try await FleetTap(servers, store: store, spool: spool)) }
        let front = try await Self.front(taps, in: folder)

        let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "TapTestKit/Clients/fleet_clients.py").path
        let clients = try ToolProcess(
            "/usr/bin/python3",
            [script, "\(Self.sessions)", "3", folder.path]
                + zip(domains, front.ports).map { "\($0)=\($1)" }
        )
        func round(_ number: Int) async throws {
            _ = try folder.write("", to: "\(number)")
            _ = try await clients.line(of: .standardOutput, within: .seconds(240)) { $0 == "done \(number)" }
        }
        _ = try await clients.line(of: .standardOutput, within: .seconds(240)) { $0 == "ready" }
        try await round(0)
        // Acknowledged messages are in the spools a moment later.
        try await Task.sleep(for: .seconds(2))
        taps[1].binary.process.signal(SIGKILL)
        _ = try await taps[1].binary.process.ending()
        try await shards[1].kill()
        try await round(1)
        try await Task.sleep(for: Self.absence)
        try await taps[1].restart(spool: spools[1])
        try await shards[1].start()
        try await front.drain(2)
        #expect(try await taps[2].binary.process.terminate(within: .seconds(60)) == .exited(0))
        try await round(2)
        _ = try folder.write("", to: "end")
        _ = try await clients.ending()
        for tap in taps.dropLast() {
            #expect(try await tap.binary.process.terminate(within: .seconds(60)) == .exited(0))
        }
        for spool in spools where FileManager.default.fileExists(atPath: "\(spool)") {
            let sent = try await XMPPTapBinary.run(["store", "send", spool, store])
            #expect(sent.ending == .exited(0), "\(sent)")
        }
        _ = try await front.process.terminate()

        // The sessions of the killed tap were resumed on others.
        let resumptions = clients.lines(of: .standardOutput).filter { $0 == "resumed" }.count
        #expect(resumptions > 0)
        let sent = clients.lines(of: .standardOutput).filter { $0.hasPrefix("sent ") }.map { String($0.dropFirst(5)) }
        #expect(Set(sent).count == 3 * Self.sessions)
        let search = try await XMPPTapBinary.run(["search", "", store, "--json"])
        var found: [String] = []
        var names: Set<String> = []
        for line in search.output.split(separator: "\n") {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            guard let body = object?["body"] as? String else { continue }
            found.append(body)
            let seen = (object?["copies"] as? [[String: Any]] ?? []).map { $0["tap"] as? String ?? "none" }
            names.formUnion(seen)
            if body.hasPrefix("r2-") { #expect(!seen.contains("spool2"), "\(body) came through the drained tap") }
        }
        #expect(names == ["spool0", "spool1", "spool2"])
        #expect(found.count == Set(found).count)
        #expect(Set(sent).subtracting(found).isEmpty, "\(Set(sent).subtracting(found).prefix(10))")
        // Each shard has its share.
        for shard in shards {
            #expect((Int(try await shard.run("SELECT count() FROM audit.stanza").dropLast()) ?? 0) > Self.sessions)
        }
        for server in servers { try await server.stop() }
    }
}
