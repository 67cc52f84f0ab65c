internal import Synchronization

/// Warnings about typed values. Values are parsed before the command runs, and some of them twice.
enum TypedWarnings {
    private static let waiting = Mutex<[String]>([])

    /// Stores a warning until the arguments are parsed.
    static func append(_ warning: String) {
        waiting.withLock { if !$0.contains(warning) { $0.append(warning) } }
    }

    /// Prints the stored warnings.
    static func print() {
        let warnings = waiting.withLock { waiting in
            defer { waiting = [] }
            return waiting
        }
        for warning in warnings { Console.printDiagnostic("warning: \(warning)") }
    }
}
