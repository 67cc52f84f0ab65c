/// The verbosity of a log, from nothing to everything; each level includes the previous ones.
///
/// The raw value is the order: a record is shown if `record.level <= filter.level`.
public enum Level: UInt8, Sendable, Hashable, Comparable, CaseIterable {
    case off
    /// Stream errors, failed TLS, failed logins with their diagnosis, unparsable streams, refused peers.
    case error
    /// Stanza errors, suspicious input, limits nearly reached, dropped records.
    case warn
    /// The events of sessions and streams, and one summary line per stanza.
    case info
    /// SEND and RECV lines with the whole XML.
    case verbose
    /// Chunks, TLS records, the steps of scanner and rules.
    case trace

    /// Creates the level with a name as in log specifications; `nil` if unknown. Names are lower case.
    package init?(name: some StringProtocol) {
        guard let level = Level.allCases.first(where: { $0.name == name }) else { return nil }
        self = level
    }

    /// The name in specifications, records and log lines: `off`, `error`, `warn`, `info`, `verbose`, `trace`.
    package var name: String { String(describing: literal) }

    /// ``name`` as a literal, for appending without a string.
    package var literal: StaticString {
        switch self {
        case .off: "off"
        case .error: "error"
        case .warn: "warn"
        case .info: "info"
        case .verbose: "verbose"
        case .trace: "trace"
        }
    }

    /// Returns whether a log of level `lhs` shows less than one of level `rhs`.
    public static func < (lhs: Level, rhs: Level) -> Bool { lhs.rawValue < rhs.rawValue }
}

/// The part of the program that makes a record; each part can have its own log level.
package enum Part: UInt8, Sendable, Hashable, CaseIterable {
    /// Streams, stanzas, sessions: everything that belongs to no other part.
    case session
    case sasl
    /// TLS on the client's or the server's leg.
    case tls
    case rules
    /// Data that xmpptap injects into a stream.
    case inject
    /// Sockets, listeners, name resolution.
    case net
    /// Log and capture files and their readers.
    case capture
    case replay
    /// Control of the running program.
    case control

    /// Creates the part with a name as in log specifications; `nil` if unknown. Names are lower case.
    package init?(name: some StringProtocol) {
        guard let part = Part.allCases.first(where: { $0.name == name }) else { return nil }
        self = part
    }

    /// The name in specifications and log lines: the name of the case.
    package var name: String { String(describing: literal) }

    /// ``name`` as a literal, for appending without a string.
    package var literal: StaticString {
        switch self {
        case .session: "session"
        case .sasl: "sasl"
        case .tls: "tls"
        case .rules: "rules"
        case .inject: "inject"
        case .net: "net"
        case .capture: "capture"
        case .replay: "replay"
        case .control: "control"
        }
    }
}
