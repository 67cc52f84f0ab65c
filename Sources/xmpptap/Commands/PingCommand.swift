internal import ArgumentParser
internal import TapCapture
internal import TapCore
internal import TapNetwork
internal import TapRecord

struct PingCommand: AsyncParsableCommand, Configurable {
    static let configuration = CommandConfiguration(
        commandName: "ping",
        abstract: "Ping the client or server of a session of a running proxy.",
        discussion: """
            Injects pings (XEP-0199) and measures how long their answers take; an error is an answer too. The other side \
            does not see them. Runs until Ctrl-C. The exit code is 1 if no ping was answered.

            Examples:

              xmpptap ping --session 3
              xmpptap ping --jid juliet@example.org --to server --count 5 --interval 500ms
              xmpptap ping --session 3 --count 10 --json | jq .round_trip_ns
            """
    )

    @OptionGroup var session: SessionOption

    @Option(
        help: ArgumentHelp("Side to ping (default: client).", valueName: "client|server"),
        completion: .choices(Side.self),
        transform: Side.typed
    )
    var to = Side.client

    @Option(
        help: ArgumentHelp("Number of pings (default: until Ctrl-C).", valueName: "number"),
        transform: { try Number.parse($0, in: 1...Int.max) }
    )
    var count: Int?

    @Option(
        help: ArgumentHelp("Time from one ping to the next (default: 1s).", valueName: "time"),
        transform: TimeSpan.parse
    )
    var interval: Int64 = 1_000_000_000

    @Option(
        help: ArgumentHelp("Time to wait for each answer (100ms to 5m; default: 10s).", valueName: "time"),
        transform: { try TimeSpan.parse($0, atMost: Injection.maximumTimeout) }
    )
    var timeout = Injection.usualTimeout

    @Flag(help: "Print JSON, one ping per line, and last the summary.")
    var json = false

    @OptionGroup var control: ControlOption
    @OptionGroup var config: ConfigOption

    func run() async throws {
        let client = try control.client()
        let chosen = try await session.choose(client)
        try await Interruption.cancels { [self] in try await ping(chosen, client) }
    }

    private func ping(_ session: RunningSession, _ client: ControlClient) async throws {
        let clock = ContinuousClock()
        let name = session.name(of: to)
        if !json { Console.printEscaped("PING \(name), \(to.rawValue) of session \(session.number)") }
        let body = LineBuffer.object {
            $0.field("to", to.rawValue)
            $0.field("timeout_ns", Int(timeout))
        }
        let request = ControlClient.Request("POST", session.path("/ping"), body: body)
        let began = clock.now
        var statistics = PingStatistics()
        var failure: ControlClientError?
        while statistics.sent < count ?? .max, failure == nil, !Task.isCancelled {
            let sent = clock.now
            do throws(ControlClientError) {
                let answer = try await client.ask(request, timeout: .nanoseconds(2 * timeout) + .seconds(10))
                guard let roundTrip = answer["round_trip_ns"]?.integer, let type = answer["type"]?.text else {
                    throw .unexpected("a ping's answer without its round trip")
                }
                statistics.add(roundTrip)
                show(statistics.sent, type, roundTrip, name)
            } catch {
                // A ping that Ctrl-C interrupts is not counted.
                guard !Task.isCancelled else { break }
                if case .refused(.noAnswer, _, _) = error {
                    statistics.add(nil)
                    show(statistics.sent, "timeout", nil, name)
                } else {
                    failure = error
                }
            }
            guard failure == nil, statistics.sent < count ?? .max else { break }
            try? await clock.sleep(until: sent + .nanoseconds(interval))
        }
        let time = (clock.now - began).wholeNanoseconds
        if json {
            Console.print(statistics.json(time: time))
        } else {
            for line in statistics.lines(name, time: time) { Console.printEscaped(line) }
        }
        if let failure { throw failure }
        if statistics.sent > 0, statistics.answered == 0 { throw Failure.reported(.checkFailed) }
    }

    private func show(_ number: Int, _ type: String, _ roundTrip: Int64?, _ name: String) {
        if json {
            let line = LineBuffer.object {
                $0.field("sequence", number)
                $0.field("type", type)
                if let roundTrip { $0.field("round_trip_ns", Int(roundTrip)) }
            }
            return Console.print(line)
        }
        if let roundTrip {
            let word = type == "error" ? "error" : "answer"
            Console.printEscaped(
                "\(word) from \(name): seq=\(number) time=\(PingStatistics.milliseconds(roundTrip)) ms"
            )
        } else {
            Console.printEscaped("no answer from \(name): seq=\(number) within \(LineBuffer.duration(timeout))")
        }
    }
}
