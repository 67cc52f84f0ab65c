import Foundation

/// The speed of the audit store in a SQLite file, and in ClickHouse.
///
/// ```
/// StoreBenchmark insert [ROWS]         rows per CPU second beside a plain loop in C, and bytes a row
/// StoreBenchmark make FILE ROWS DAYS   makes a store
/// StoreBenchmark search FILE | PORT    the time and the memory of searches in it, or in what `send` left in ClickHouse
/// StoreBenchmark limit FILE ROWS MB    makes a store with a limit of its size, and prints the greatest size
/// StoreBenchmark send [ROWS [PORT]]    rows per CPU second into a server that counts, or into ClickHouse on a port of 127.0.0.1
/// ```
///
/// Other programs affect the figures: compare those of one run.
@main
struct StoreBenchmark {
    static func main() {
        let arguments = Array(CommandLine.arguments.dropFirst())
        do {
            switch (arguments.first, arguments.count) {
            case ("insert", 1...2):
                guard let rows = arguments.count > 1 ? Int(arguments[1]) : 1_000_000, rows > 0 else { break }
                return try InsertComparison(rows).run()
            case ("make", 4):
                guard let rows = Int(arguments[2]), let days = Int(arguments[3]), rows > 0, days > 0 else { break }
                return try SearchTimes.makeStore(arguments[1], rows, days: days)
            case ("send", 1...3):
                guard let rows = arguments.count > 1 ? Int(arguments[1]) : 1_000_000, rows > 0 else { break }
                return try DeliveryTimes(rows, port: arguments.count > 2 ? Int(arguments[2]) : nil).run()
            case ("search", 2):
                return try (Int(arguments[1]).map { try SearchTimes(port: $0) } ?? SearchTimes(arguments[1])).run()
            case ("limit", 4):
                guard let rows = Int(arguments[2]), let size = Int64(arguments[3]), rows > 0, size > 0 else { break }
                return try SearchTimes.makeStore(arguments[1], rows, limit: size * 1_000_000)
            default: break
            }
        } catch {
            FileHandle.standardError.write(Data("benchmark: \(error)\n".utf8))
            exit(1)
        }
        print(
            "usage: StoreBenchmark insert [ROWS] | make FILE ROWS DAYS | search FILE|PORT | limit FILE ROWS MB | send [ROWS [PORT]]"
        )
        exit(2)
    }

    /// The time that this process has used the processors.
    static var processorTime: Double { seconds(CLOCK_PROCESS_CPUTIME_ID) }
    static var now: Double { seconds(CLOCK_MONOTONIC) }

    private static func seconds(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

/// What prevents a measurement.
struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
