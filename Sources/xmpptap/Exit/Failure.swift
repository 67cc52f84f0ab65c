internal import TapCapture
internal import TapNetwork
internal import TapRecord
internal import TapStore

/// An error that ends the program: its exit code, and one line with the failure, its cause, and the remedy.
struct Failure: Error, Hashable {
    let status: ExitStatus
    /// The line, without the program's name. Empty if all messages have already been printed.
    let message: String

    /// Creates a failure for an invalid flag or value.
    static func usage(_ message: String) -> Failure { Failure(status: .usage, message: message) }
    /// Creates a failure for a file that cannot be opened, read or written.
    static func file(_ message: String) -> Failure { Failure(status: .file, message: message) }
    /// Creates a failure for an address that cannot be listened on or reached.
    static func network(_ message: String) -> Failure { Failure(status: .network, message: message) }
    /// Creates a failure whose messages have already been printed; only the exit code remains.
    static func reported(_ status: ExitStatus) -> Failure { Failure(status: status, message: "") }
}

extension Failure: CustomStringConvertible {
    var description: String { message }
}

extension Failure {
    init(_ error: ProxyError) {
        self.init(
            status: error.blame == .usage ? .usage : .network,
            message: "\(error); \(AdviceTable.advice(for: error.code))"
        )
    }
}

extension Failure {
    /// Creates a failure for a file that cannot be read.
    init(_ fault: ReaderFault) {
        self = .file(AdviceTable.advice(for: fault.code).map { "\(fault); \($0)" } ?? "\(fault)")
    }
}

/// The exit codes of the program.
enum ExitStatus: Int32, CaseIterable {
    /// Success, also after SIGTERM.
    case success = 0
    /// A comparison, check or probe failed, or `explain` shows a failed login.
    case checkFailed = 1
    case usage = 2
    /// A file cannot be read or written, or does not contain what the command needs.
    case file = 3
    /// A network or DNS error, or no running proxy.
    case network = 4
    /// A login or its preparation failed.
    case preparation = 5
}

extension Failure {
    init(_ error: ControlClientError) {
        let status: ExitStatus =
            switch error {
            case .severalProxies: .usage
            case .refused: .checkFailed
            case .noProxy, .unreachable, .timeout, .ended, .unexpected: .network
            }
        let advice = AdviceTable.advice(for: error).map { "; \($0)" } ?? ""
        self.init(status: status, message: LineBuffer.escaped("\(error)\(advice)"))
    }
}

extension Failure {
    /// Calls `body`; a store that cannot be opened, read or written is a failure of the command.
    static func ofStore<Outcome>(_ body: () throws(StoreFault) -> Outcome) throws(Failure) -> Outcome {
        do throws(StoreFault) {
            return try body()
        } catch {
            throw .file(LineBuffer.escaped("\(error)"))
        }
    }
}
