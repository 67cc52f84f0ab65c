import Glibc

/// The cost of the core per stanza: scanner, parser, redaction, summary, session and forms, on generated stanzas.
///
/// ```
/// CoreBenchmark time [ROUNDS [CASE]]    ns a stanza: medians of interleaved rounds, CPU time of this thread
/// CoreBenchmark count [CASE]            runs each case once between two functions that callgrind knows
/// CoreBenchmark bytes                   bytes of memory after each case with a memory measurement
/// ```
///
/// `Tests/Benchmarks/run` runs both and compares.
@main
struct CoreBenchmark {
    static func main() {
        let arguments = CommandLine.arguments
        switch arguments.dropFirst().first {
        case "time":
            let rounds = arguments.count > 2 ? Int(arguments[2]) ?? 0 : 31
            guard rounds > 0 else { fallthrough }
            time(Case.all().filter { $0.name.hasPrefix(arguments.count > 3 ? arguments[3] : "") }, rounds)
        case "bytes": bytes(Case.all())
        case "count": count(Case.all().filter { $0.name.hasPrefix(arguments.count > 2 ? arguments[2] : "") })
        default:
            print("usage: CoreBenchmark time [ROUNDS [CASE]] | count [CASE] | bytes")
            exit(2)
        }
    }

    private static func time(_ cases: [Case], _ rounds: Int) {
        var times = [[Int]](repeating: [], count: cases.count)
        for round in -1..<rounds {
            for (index, one) in cases.enumerated() {
                let start = now()
                run(one)
                // The first round warms up.
                if round >= 0 { times[index].append(now() - start) }
            }
        }
        for (index, one) in cases.enumerated() {
            print("\(times[index].sorted()[rounds / 2] / one.units)\t\(one.name)")
        }
    }

    /// Prints the units and the name of each case, in the order of callgrind's dumps.
    private static func count(_ cases: [Case]) {
        for one in cases {
            // Complete the work that is done only at first use.
            run(one)
            run(one)
            benchmarkBegins()
            run(one)
            benchmarkEnds()
            print("\(one.units)\t\(one.name)")
        }
    }

    /// Prints the memory and the name of each case with a memory measurement.
    private static func bytes(_ cases: [Case]) {
        for one in cases {
            guard let bytes = one.bytes else { continue }
            run(one)
            print("\(bytes())\t\(one.name)")
        }
    }

    private static func run(_ one: Case) {
        let seen = one.run()
        guard seen >= one.units else {
            print("\(one.name): \(seen) of \(one.units)")
            exit(1)
        }
    }

    private static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

private nonisolated(unsafe) var marks = 0

/// Callgrind resets its counts when this function is called.
@inline(never)
func benchmarkBegins() { marks += 1 }

/// Callgrind dumps its counts when this function is called.
@inline(never)
func benchmarkEnds() { marks += 2 }
