import Foundation
import Glibc
import StanzaMix

/// The delay of an injected stanza while others are relayed: from the request at the control socket to the client, and
/// within the proxy.
final class InjectionDelay {
    /// Relayed stanzas per second, in both directions together.
    private static let rate = 10_000
    private static let sessions = 20
    /// Injections per second.
    private static let injections = 50

    private let loop = EventLoop()
    private let mix = StanzaMix(count: 400)
    private let listener: Listener
    private let relay: Relay
    private var clients: [ClientConnection] = []

    /// - Parameter program: The path of xmpptap.
    init(_ program: String) throws {
        let (loop, sink) = (loop, ServerConnection.Sink())
        listener = Listener { loop.add(ServerConnection($0, sink)) }
        loop.add(listener)
        let proxy = [program, "proxy", "--listen", "LISTEN", "--upstream", "UPSTREAM", "--log", "off"]
        relay = try Relay(
            Relay.Kind(name: "xmpptap", command: proxy + ["--control", "FOLDER/control.sock"]),
            upstream: listener.port
        )
    }

    /// Injects for `seconds` and prints the percentiles.
    func run(seconds: Int) throws {
        for _ in 0..<Self.sessions { try connect() }
        let control = try ControlConnection(relay.path(of: "control.sock"))
        loop.add(control)
        let numbers = try sessionNumbers(control)
        var pending: (marker: [UInt8], since: Int)?
        var delays: [Int] = []
        for client in clients {
            var tail: [UInt8] = []
            client.onReceivedBytes = { bytes in
                guard let waiting = pending else { return }
                let seen = tail + bytes
                if seen.firstRange(of: waiting.marker) != nil {
                    delays.append(EventLoop.now - waiting.since)
                    pending = nil
                }
                tail = Array(seen.suffix(waiting.marker.count - 1))
            }
        }
        let start = EventLoop.now
        // The server returns each stanza that it gets.
        let interval = 2_000_000_000 / Self.rate
        var (sent, injected) = (0, 0)
        while injected < seconds * Self.injections || pending != nil || control.isWaiting {
            let now = EventLoop.now
            while start + sent * interval <= now {
                sendNext(clients[sent % clients.count])
                sent += 1
            }
            if pending == nil, !control.isWaiting, injected < seconds * Self.injections,
                start + injected * 1_000_000_000 / Self.injections <= now
            {
                let marker = Array("xt-benchmark-\(injected)-".utf8)
                let stanza = "<message id='\(String(decoding: marker, as: UTF8.self))'><body>a</body></message>"
                pending = (marker, EventLoop.now)
                control.ask(
                    "POST /sessions/\(numbers[injected % numbers.count])/inject",
                    #"{"to":"client","stanza":"\#(stanza)"}"#
                )
                injected += 1
            }
            loop.turn(0)
            guard EventLoop.now - start < (seconds + 60) * 1_000_000_000 else {
                throw Failure("an injection takes too long")
            }
        }
        let passed = Double(sent * 2) * 1e9 / Double(EventLoop.now - start)
        let within = control.answers.compactMap { answer in
            answer.firstMatch(of: /"delay_ns":(\d+)/).flatMap { Int($0.1) }
        }
        guard delays.count == injected, within.count >= injected else {
            throw Failure("\(within.count) of \(injected) injections were sent: \(control.answers.last ?? "")")
        }
        print("\(injected) stanzas injected while \(Int(passed)) a second passed in \(Self.sessions) sessions:\n")
        print("| delay (ms) | p50 | p99 | longest |\n|---|--:|--:|--:|")
        Self.report("from the request to the client that gets it", delays)
        Self.report("within xmpptap", within)
        relay.stop()
    }

    private static func report(_ name: String, _ delays: [Int]) {
        let sorted = delays.sorted()
        let cells = [sorted[sorted.count / 2], sorted[sorted.count * 99 / 100], sorted[sorted.count - 1]]
        print("| \(name) | " + cells.map { String(format: "%.3f", Double($0) / 1e6) }.joined(separator: " | ") + " |")
    }

    private func connect() throws {
        guard let descriptor = Connection.connect(relay.port) else { throw Failure("xmpptap refuses") }
        let client = ClientConnection(descriptor)
        clients.append(client)
        loop.add(client)
        client.begin()
        guard loop.run(60, until: { client.isReady }) else { throw Failure("a login takes too long") }
    }

    private func sessionNumbers(_ control: ControlConnection) throws -> [Int] {
        control.ask("GET /sessions", "")
        guard loop.run(60, until: { !control.isWaiting }), let answer = control.answers.popLast() else {
            throw Failure("the control socket does not answer")
        }
        let numbers = answer.matches(of: /"session":(\d+)/).compactMap { Int($0.1) }
        guard numbers.count == Self.sessions else { throw Failure("\(numbers.count) sessions: \(answer)") }
        return numbers
    }

    private func sendNext(_ client: ClientConnection) {
        let stanza = mix.stanzas[client.position % mix.stanzas.count]
        client.position += 1
        mix.stream.withUnsafeBufferPointer { client.send(UnsafeBufferPointer(rebasing: $0[stanza])) }
    }
}

/// A connection to the control socket, for one request at a time.
private final class ControlConnection: Connection {
    /// The bodies of the answers so far.
    var answers: [String] = []
    private(set) var isWaiting = false
    private var seen = ""

    init(_ path: String) throws {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw Failure("no control socket at \(path)") }
        super.init(descriptor)
    }

    func ask(_ request: String, _ body: String) {
        isWaiting = true
        send("\(request) HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
    }

    override func received(_ bytes: UnsafeBufferPointer<UInt8>) {
        seen += String(decoding: bytes, as: UTF8.self)
        guard let end = seen.firstRange(of: "\r\n\r\n"),
            let length = seen.firstMatch(of: /content-length: (\d+)/.ignoresCase()).flatMap({ Int($0.1) }),
            seen[end.upperBound...].utf8.count >= length
        else { return }
        answers.append(String(seen[end.upperBound...]))
        seen = ""
        isWaiting = false
    }
}
