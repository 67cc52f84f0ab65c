internal import TapNetwork

/// Why the program cannot go on: one line that names the thing, the cause and the way out, and how to exit.
struct Failure: Error, Hashable {
    /// How the program ends for it.
    let status: ExitStatus
    /// The line, without the program's name before it. Empty where all has been said already.
    let message: String

    /// A flag, or what was typed after it, makes no sense.
    static func usage(_ message: String) -> Failure { Failure(status: .usage, message: message) }
    /// A file cannot be opened, read or written.
    static func file(_ message: String) -> Failure { Failure(status: .file, message: message) }
    /// An address cannot be listened on or reached.
    static func network(_ message: String) -> Failure { Failure(status: .network, message: message) }
    /// Everything has been printed; only the exit code is left.
    static func told(_ status: ExitStatus) -> Failure { Failure(status: status, message: "") }
}

extension Failure: CustomStringConvertible {
    var description: String { message }
}

extension Failure {
    /// The failure of a proxy.
    init(_ error: ProxyError) {
        self.init(status: error.blame == .usage ? .usage : .network, message: error.description)
    }
}
