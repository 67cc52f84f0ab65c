internal import Logging

/// Writes swift-log messages to standard error, one line each.
struct DiagnosticHandler: LogHandler {
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]

    static func logger(_ level: Logger.Level = .info) -> Logger {
        Logger(label: "xmpptap") { _ in DiagnosticHandler(logLevel: level) }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        Console.printDiagnostic(Self.line(event.level, "\(event.message)"))
    }

    /// Returns the message, with a prefix for warnings.
    static func line(_ level: Logger.Level, _ message: String) -> String {
        switch level {
        case .trace, .debug, .info, .notice, .error, .critical: message
        case .warning: "warning: \(message)"
        }
    }
}
