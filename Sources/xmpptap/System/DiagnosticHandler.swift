internal import Logging

/// Writes what parts of the program say about themselves to standard error, one line each; a part of SwiftLog.
struct DiagnosticHandler: LogHandler {
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]

    /// A logger that tells what is of that level or worse.
    static func logger(_ level: Logger.Level = .info) -> Logger {
        Logger(label: "xmpptap") { _ in DiagnosticHandler(logLevel: level) }
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        Console.complain(Self.line(event.level, "\(event.message)"))
    }

    /// The words, with what they weigh in front where that is not plain.
    static func line(_ level: Logger.Level, _ message: String) -> String {
        switch level {
        case .trace, .debug, .info, .notice, .error, .critical: message
        case .warning: "warning: \(message)"
        }
    }
}
