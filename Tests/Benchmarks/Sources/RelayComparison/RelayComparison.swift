import Foundation
import StanzaMix

/// The cost of relaying with xmpptap, compared with relaying without decoding by haproxy, on one machine in one run.
///
/// ```
/// RelayComparison XMPPTAP [ROUNDS [SCALE]]    medians of interleaved rounds (3); SCALE shortens or lengthens them (1)
/// RelayComparison XMPPTAP injection           the delay of injected stanzas while others pass
/// RelayComparison XMPPTAP recordings          the speed of replay and diff
/// RelayComparison XMPPTAP captures            ping-pong with captures, and with sniff, beside the text log
/// RelayComparison XMPPTAP pages SCRIPT        ping-pong with a page and its viewers, against none
/// RelayComparison XMPPTAP store               ping-pong with an audit store beside the text log
/// RelayComparison XMPPTAP rules [FILE ...]    ping-pong with rule files (samples), against none
/// ```
///
/// Clients and server run in this process, on loopback. CPU time is that of the relay alone, user and system. Other
/// load on the machine affects the figures: compare columns of one run.
@main
struct RelayComparison {
    static func main() {
        let arguments = CommandLine.arguments
        if arguments.count == 3, arguments[2] == "injection" {
            do {
                return try InjectionDelay(arguments[1]).run(seconds: 20)
            } catch {
                FileHandle.standardError.write(Data("benchmark: \(error)\n".utf8))
                exit(1)
            }
        }
        if arguments.count > 2, ["recordings", "load"].contains(arguments[2]) {
            do {
                guard arguments.count == 6, let port = UInt16(arguments[3]), let count = Int(arguments[4]),
                    let piece = Int(arguments[5])
                else {
                    _ = raiseDescriptorLimit()
                    return try RecordingSpeed(arguments[1]).run(rounds: 5)
                }
                // The process that the command above starts.
                return try RecordingSpeed.load(port, count, piece: piece)
            } catch {
                FileHandle.standardError.write(Data("benchmark: \(error)\n".utf8))
                exit(1)
            }
        }
        if arguments.count > 2, arguments[2] == "rules" {
            return compareRules(arguments[1], Array(arguments.dropFirst(3)))
        }
        if arguments.count == 4, arguments[2] == "pages" { return comparePages(arguments[1], script: arguments[3]) }
        if arguments.count == 3, arguments[2] == "store" { return compareStores(arguments[1]) }
        if arguments.count == 3, arguments[2] == "captures" {
            for level in ["info", "verbose"] { compareCaptures(arguments[1], level) }
            return
        }
        let rounds = arguments.count > 2 ? Int(arguments[2]) ?? 0 : 3
        let scale = arguments.count > 3 ? Double(arguments[3]) ?? 0 : 1
        guard arguments.count > 1, rounds > 0, scale > 0 else {
            print(
                "usage: RelayComparison XMPPTAP [ROUNDS [SCALE] | injection | recordings | captures | store | pages SCRIPT | rules [FILE ...]]"
            )
            exit(2)
        }
        do {
            let kinds = kinds(arguments[1])
            var measures = [[Measures]](repeating: [], count: kinds.count)
            let sessions = raiseDescriptorLimit() >= 4096 ? 1000 : 300
            for round in 1...rounds {
                for (index, kind) in kinds.enumerated() {
                    FileHandle.standardError.write(Data("round \(round) of \(rounds): \(kind.name)\n".utf8))
                    measures[index].append(try Scenarios(kind).run(scale: scale, sessions: sessions))
                }
            }
            report(kinds.map(\.name), measures)
        } catch {
            FileHandle.standardError.write(Data("benchmark: \(error)\n".utf8))
            exit(1)
        }
    }

    /// Compares ping-pong without rules to ping-pong with each of the rule files. Without files, the rules are: 100
    /// that do not match, 100 for other addresses, and one that rewrites each stanza.
    private static func compareRules(_ program: String, _ files: [String]) {
        let proxy = [program, "proxy", "--listen", "LISTEN", "--upstream", "UPSTREAM", "--log", "off"]
        let rules = proxy + ["--rules", "FOLDER/configuration"]
        let samples = [
            Relay.Kind(name: "100 that do not match", command: rules, configuration: SampleRules.unmatched),
            Relay.Kind(name: "100 for other addresses", command: rules, configuration: SampleRules.unmatchedAddresses),
            Relay.Kind(name: "every stanza rewritten", command: rules, configuration: SampleRules.rewriting),
        ]
        let kinds =
            [Relay.Kind(name: "no rules", command: proxy)]
            + (files.isEmpty ? samples : files.map { Relay.Kind(name: $0, command: proxy + ["--rules", $0]) })
        // Servers and edits refuse a sender other than the client.
        comparePingPong(kinds, StanzaMix(count: 400, withSender: false))
    }

    /// Ping-pong with a text log, with a capture beside it, and with a live capture of the same packets.
    private static func compareCaptures(_ program: String, _ level: String) {
        let proxy = [
            program, "proxy", "--listen", "LISTEN", "--upstream", "UPSTREAM", "--log", "off", "--log-to",
            "FOLDER/log,\(level)",
        ]
        let capture = proxy + ["--capture", "FOLDER/x.xtap"]
        let sniff = [program, "sniff", "-i", "lo", "--port", "PORT", "--log", level]
        let kinds = [
            Relay.Kind(name: "log \(level)", command: proxy, logs: true),
            Relay.Kind(name: "and --capture", command: capture, logs: true),
            Relay.Kind(name: "and --hash-chain", command: capture + ["--hash-chain"], logs: true),
            Relay.Kind(
                name: "and --capture-when",
                command: capture + ["--capture-when", "body:nowhere"],
                logs: true
            ),
            Relay.Kind(name: "and sniff", command: proxy, watcher: sniff, logs: true),
            Relay.Kind(
                name: "and sniff --write",
                command: proxy,
                watcher: sniff + ["--write", "FOLDER/x.pcapng"],
                logs: true
            ),
        ]
        comparePingPong(kinds, StanzaMix(count: 400))
    }

    /// Ping-pong with a text log, with the page beside it, and with viewers of the page.
    ///
    /// - Parameter script: `page.mjs`, which opens pages.
    private static func comparePages(_ program: String, script: String) {
        let proxy = [
            program, "proxy", "--listen", "LISTEN", "--upstream", "UPSTREAM", "--log", "off", "--log-to",
            "FOLDER/log,info",
        ]
        func kind(_ name: String, pages: Int?) -> Relay.Kind {
            Relay.Kind(
                name: name,
                command: pages == nil ? proxy : proxy + ["--web", "0"],
                companion: pages.map { $0 > 0 ? ["/usr/bin/node", script, "open", "FOLDER/messages", "\($0)"] : [] }
                    ?? [],
                logs: true
            )
        }
        comparePingPong(
            [
                kind("log info", pages: nil), kind("and --web", pages: 0), kind("and one page", pages: 1),
                kind("and five pages", pages: 5),
            ],
            StanzaMix(count: 400),
            // So long that the page has been loaded, and many, because they differ more than the columns.
            rounds: 80_000,
            repetitions: 15
        )
    }

    /// Ping-pong with a text log, and with an audit store beside it.
    private static func compareStores(_ program: String) {
        for level in ["info", "verbose"] {
            let proxy = [
                program, "proxy", "--listen", "LISTEN", "--upstream", "UPSTREAM", "--log", "off", "--log-to",
                "FOLDER/log,\(level)",
            ]
            comparePingPong(
                [
                    Relay.Kind(name: "log \(level)", command: proxy, logs: true),
                    Relay.Kind(name: "and --store", command: proxy + ["--store", "FOLDER/audit.sqlite"], logs: true),
                ],
                StanzaMix(count: 400)
            )
        }
    }

    private static func comparePingPong(
        _ kinds: [Relay.Kind],
        _ mix: StanzaMix,
        rounds: Int = 40_000,
        repetitions: Int = 7
    ) {
        do {
            var measures = [[Measures]](repeating: [], count: kinds.count)
            for repetition in 1...repetitions {
                for (index, kind) in kinds.enumerated() {
                    FileHandle.standardError.write(Data("round \(repetition) of \(repetitions): \(kind.name)\n".utf8))
                    measures[index].append(try Scenarios(kind, mix).runPingPong(rounds: rounds))
                }
            }
            report(kinds.map(\.name), measures, [("CPU per relayed stanza, ping-pong (µs)", \.pingPong)])
        } catch {
            FileHandle.standardError.write(Data("benchmark: \(error)\n".utf8))
            exit(1)
        }
    }

    private static let allRows: [(String, @Sendable (Measures) -> Double)] = [
        ("CPU per relayed stanza, ping-pong (µs)", \.pingPong), ("CPU per stanza, bulk (µs)", \.bulk),
        ("CPU per login (µs)", \.setup), ("p50 of a round trip at 1,000/s (µs)", \.latency),
        ("memory per idle session (KiB)", \.idle),
    ]

    private static func kinds(_ program: String) -> [Relay.Kind] {
        let proxy = [program, "proxy", "--listen", "LISTEN", "--upstream", "UPSTREAM", "--log", "off"]
        var kinds = [
            Relay.Kind(name: "xmpptap off", command: proxy),
            Relay.Kind(name: "xmpptap info", command: proxy + ["--log-to", "FOLDER/log,info"], logs: true),
            Relay.Kind(name: "xmpptap verbose", command: proxy + ["--log-to", "FOLDER/log,verbose"], logs: true),
        ]
        let haproxy = ["/usr/sbin/haproxy", "/usr/local/sbin/haproxy", "/usr/bin/haproxy"].first {
            FileManager.default.isExecutableFile(atPath: $0)
        }
        if let haproxy {
            kinds.insert(
                Relay.Kind(
                    name: "haproxy",
                    command: [haproxy, "-db", "-q", "-f", "FOLDER/configuration"],
                    configuration: """
                        global
                            nbthread 1
                            maxconn 1500
                        defaults
                            mode tcp
                            timeout connect 5s
                            timeout client 1h
                            timeout server 1h
                        listen relay
                            bind LISTEN
                            server upstream UPSTREAM

                        """
                ),
                at: 0
            )
        }
        return kinds
    }

    /// Raises the limit of descriptors to the maximum, because each session needs two; returns the limit.
    private static func raiseDescriptorLimit() -> Int {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        getrlimit(resource, &limit)
        limit.rlim_cur = min(limit.rlim_max, 16_384)
        setrlimit(resource, &limit)
        return Int(limit.rlim_cur)
    }

    private static func report(
        _ names: [String],
        _ measures: [[Measures]],
        _ rows: [(String, @Sendable (Measures) -> Double)] = allRows
    ) {
        print("| | " + names.joined(separator: " | ") + " |")
        print("|---|" + names.map { _ in "--:|" }.joined())
        for (title, value) in rows {
            let cells = measures.map { rounds in
                // Processors of a virtual machine change their speed, so that only neighbours are compared.
                let ratios = zip(rounds, measures[0]).map { value($0) / value($1) }.filter(\.isFinite)
                let ratio = ratios.isEmpty ? "" : String(format: " (%.2f)", median(ratios))
                return String(format: "%.1f", median(rounds.map(value))) + ratio
            }
            print("| \(title) | " + cells.joined(separator: " | ") + " |")
        }
        print("\nIn parentheses: how many times \(names[0]), the median of the rounds.")
    }

    private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }
}
