internal import TapNetwork

/// An error that ends the program: its exit code, and one line with what failed, why, and what to do.
struct Failure: Error, Hashable {
    /// The exit code.
    let status: ExitStatus
    /// The line, without the program's name. Empty if everything is already printed.
    let message: String

    /// A flag or its value is wrong.
    static func usage(_ message: String) -> Failure { Failure(status: .usage, message: message) }
    /// A file cannot be opened, read or written.
    static func file(_ message: String) -> Failure { Failure(status: .file, message: message) }
    /// An address cannot be listened on or reached.
    static func network(_ message: String) -> Failure { Failure(status: .network, message: message) }
    /// Everything is already printed; only the exit code remains.
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
