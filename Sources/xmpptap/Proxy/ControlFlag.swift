internal import TapControl

/// The control socket as `--control` asks for it.
enum ControlFlag: Equatable {
    /// A socket for each process, in this user's folder.
    case usual
    case none
    case path(String)

    init(_ text: String) throws(Failure) {
        guard !text.isEmpty else { throw .usage("write the path of a socket, or none") }
        self = text == "none" ? .none : .path(text)
    }

    /// Opens the socket; nil if it is disabled, or the default path cannot be used.
    func open() throws(Failure) -> ControlSocket? {
        do throws(ControlError) {
            switch self {
            case .none: return nil
            case .usual: return try ControlSocket(ControlPath.own, isOwnFolder: true)
            case .path(let path): return try ControlSocket(path, isOwnFolder: false)
            }
        } catch {
            let words = "\(error)\(AdviceTable.words(for: error.code).map { "; \($0)" } ?? "")"
            if self != .usual { throw error.code == .inUse ? .network(words) : .file(words) }
            Console.complain("warning: no control socket: \(words)")
            return nil
        }
    }
}
