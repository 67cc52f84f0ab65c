internal import Glibc

/// The paths of control sockets.
package enum ControlPath {
    /// The folder of this user's control sockets: `xmpptap` under `$XDG_RUNTIME_DIR` or `/run/user/UID`, else `xmpptap-UID`
    /// under `$TMPDIR` or `/tmp`.
    package static var folder: String {
        if let runtime = environment("XDG_RUNTIME_DIR") { return "\(runtime)/xmpptap" }
        let user = geteuid()
        let runtime = "/run/user/\(user)"
        if access(runtime, W_OK) == 0 { return "\(runtime)/xmpptap" }
        return "\(environment("TMPDIR") ?? "/tmp")/xmpptap-\(user)"
    }

    /// Returns the path of the socket of a process, given by its id.
    package static func socket(of process: Int32) -> String { "\(folder)/control-\(process).sock" }

    /// The path of the socket of this process.
    package static var own: String { socket(of: getpid()) }

    private static func environment(_ name: String) -> String? {
        guard let value = getenv(name), value.pointee != 0 else { return nil }
        return String(cString: value)
    }
}
