internal import Glibc
internal import TapRecord
internal import TapRules

/// Loads rule files, and the lists that they name.
enum RuleFiles {
    /// Throws a failure if standard input is named more than once.
    static func checkInputs(_ files: [String]) throws(Failure) {
        guard files.count(where: { $0 == "-" }) < 2 else {
            throw .usage("\"-\" is named twice; there is one standard input")
        }
    }

    /// Loads rule files, in the given order. Errors and warnings are printed one per line to standard error, or with
    /// `isJSON` as objects to standard output.
    ///
    /// - Throws: A ``Failure`` if a file cannot be read, or has an error.
    static func load(_ files: [String], defaultChain: String, isJSON: Bool = false) throws(Failure) -> RuleSet {
        var sources: [RuleSource] = []
        for file in files { sources.append(RuleSource(name: file, text: try TextFile.read(file))) }
        do throws(RuleSet.LoadError) {
            let rules = try RuleSet(sources, defaultChain: defaultChain, resource: resource)
            for warning in rules.warnings {
                isJSON ? print(warning, "warning") : Console.printStandardError("warning: \(warning)")
            }
            return rules
        } catch {
            for fault in error.faults { isJSON ? print(fault, "error") : Console.printStandardError("\(fault)") }
            throw .reported(.checkFailed)
        }
    }

    private static func print(_ fault: RuleFault, _ severity: String) {
        Console.print(
            LineBuffer.object { line in
                line.field("severity", severity)
                line.field("file", fault.place.file)
                line.field("line", fault.place.line)
                line.field("column", fault.column)
                line.field("message", "\(fault)")
            }
        )
    }

    /// Loads the rule files of a running proxy again.
    static func reload(_ files: [String], defaultChain: String) throws(RuleSet.LoadError) -> RuleSet {
        var sources: [RuleSource] = []
        for file in files {
            do throws(Failure) {
                sources.append(RuleSource(name: file, text: try TextFile.read(file)))
            } catch {
                throw RuleSet.LoadError(faults: [RuleFault(file: file, error.message)])
            }
        }
        return try RuleSet(sources, defaultChain: defaultChain, resource: resource)
    }

    /// Returns the time of day in the time zone of this machine.
    static func localTime(_ time: Timestamp) -> RuleLocalTime {
        localTime(time, offset: LocalZone.system.offset(at: time))
    }

    /// Returns the time of day in a time zone.
    ///
    /// - Parameter offset: Seconds by which the zone is ahead of UTC.
    static func localTime(_ time: Timestamp, offset: Int64) -> RuleLocalTime {
        let seconds = floor(time.nanoseconds, 1_000_000_000) + offset
        let (days, minutes) = (floor(seconds, 86_400), floor(seconds, 60))
        // 1 January 1970 was a Thursday.
        let weekday = days + 4 - 7 * floor(days + 4, 7)
        return RuleLocalTime(minute: Int(minutes - 1440 * days), weekday: Int(weekday))
    }

    /// Returns the quotient, rounded down also for negative values (times before 1970).
    private static func floor(_ value: Int64, _ divisor: Int64) -> Int64 {
        value / divisor - (value % divisor < 0 ? 1 : 0)
    }

    /// Reads a file named in a rule file; the path is relative to the current directory.
    private static func resource(_ path: String) -> RuleResource {
        guard access(path, F_OK) == 0 else { return .missing }
        guard TextFile.isRegular(path) else { return .unreadable("it is not a regular file") }
        do throws(Failure) {
            // One byte more than the limit shows that the file is too large.
            return .contents(try TextFile.start(of: path, count: RuleSet.maximumListBytes + 1))
        } catch {
            return .unreadable(String(error.message.trimmingPrefix("cannot read \(path): ")))
        }
    }
}
