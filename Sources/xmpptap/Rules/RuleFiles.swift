internal import Glibc
internal import TapRecord
internal import TapRules

/// Rule files, and the lists they name.
enum RuleFiles {
    /// Throws where standard input is named twice.
    static func checkInputs(_ files: [String]) throws(Failure) {
        guard files.count(where: { $0 == "-" }) < 2 else {
            throw .usage("\"-\" is named twice; there is one standard input")
        }
    }

    /// Loads rule files in this order. Mistakes and warnings go to standard error, a line each; with `isJSON` to standard
    /// output, an object each.
    ///
    /// - Throws: A ``Failure`` if a file cannot be read, or has a mistake.
    static func load(_ files: [String], defaultChain: String, isJSON: Bool = false) throws(Failure) -> RuleSet {
        var sources: [RuleSource] = []
        for file in files { sources.append(RuleSource(name: file, text: try TextFile.read(file))) }
        do throws(RuleSet.LoadError) {
            let rules = try RuleSet(sources, defaultChain: defaultChain, resource: resource)
            for warning in rules.warnings { isJSON ? print(warning, "warning") : Console.tell("warning: \(warning)") }
            return rules
        } catch {
            for fault in error.faults { isJSON ? print(fault, "error") : Console.tell("\(fault)") }
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

    /// Loads rule files again, of a proxy that runs.
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

    /// The time of day in the time zone of this machine.
    static func localTime(_ time: Timestamp) -> RuleLocalTime {
        localTime(time, offset: LocalZone.system.offset(at: time))
    }

    /// The time of day in a time zone.
    ///
    /// - Parameter offset: Seconds by which the zone is ahead of UTC.
    static func localTime(_ time: Timestamp, offset: Int64) -> RuleLocalTime {
        let seconds = floor(time.nanoseconds, 1_000_000_000) + offset
        let (days, minutes) = (floor(seconds, 86_400), floor(seconds, 60))
        // The first of January 1970 was a Thursday.
        let weekday = days + 4 - 7 * floor(days + 4, 7)
        return RuleLocalTime(minute: Int(minutes - 1440 * days), weekday: Int(weekday))
    }

    /// The quotient, rounded down: for times before 1970.
    private static func floor(_ value: Int64, _ divisor: Int64) -> Int64 {
        value / divisor - (value % divisor < 0 ? 1 : 0)
    }

    /// A file that a rule file names, relative to the current directory.
    private static func resource(_ path: String) -> RuleResource {
        guard access(path, F_OK) == 0 else { return .missing }
        guard TextFile.isRegular(path) else { return .unreadable("it is not a regular file") }
        do throws(Failure) {
            // One byte over the limit of lists is enough to see that a file is larger.
            return .contents(try TextFile.start(of: path, count: RuleSet.mostListBytes + 1))
        } catch {
            return .unreadable(String(error.message.trimmingPrefix("cannot read \(path): ")))
        }
    }
}
