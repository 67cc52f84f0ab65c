internal import TapControl

/// The value of `--control`: which control socket to open.
enum ControlFlag: Equatable {
    /// One socket per process, in a folder of this user.
    case usual
    case none
    case path(String)

    init(_ text: String) throws(Failure) {
        guard !text.isEmpty else { throw .usage("write the path of a socket, or none") }
        self = text == "none" ? .none : .path(text)
    }

    /// Opens the control socket; nil if it is disabled, or if the default path cannot be used.
    func open() throws(Failure) -> ControlSocket? {
        do throws(ControlError) {
            switch self {
            case .none: return nil
            case .usual: return try ControlSocket(ControlPath.own, isOwnFolder: true)
            case .path(let path): return try ControlSocket(path, isOwnFolder: false)
            }
        } catch {
            let message = "\(error)\(AdviceTable.advice(for: error.code).map { "; \($0)" } ?? "")"
            if self != .usual { throw error.code == .inUse ? .network(message) : .file(message) }
            Console.printDiagnostic("warning: no control socket: \(message)")
            return nil
        }
    }
}
