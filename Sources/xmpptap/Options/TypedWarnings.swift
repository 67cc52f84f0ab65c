internal import Synchronization

/// Warnings about values that were typed. Values are parsed before a command runs, some of them twice.
enum TypedWarnings {
    private static let waiting = Mutex<[String]>([])

    /// Keeps a warning until the arguments are parsed.
    static func append(_ warning: String) {
        waiting.withLock { if !$0.contains(warning) { $0.append(warning) } }
    }

    /// Prints the warnings.
    static func print() {
        let warnings = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for warning in warnings { Console.complain("warning: \(warning)") }
    }
}
