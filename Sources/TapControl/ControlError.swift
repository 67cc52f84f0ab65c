internal import Glibc

/// Why a control socket, or the port of the metrics, cannot be used: what happened, and to which path, in one line.
public struct ControlError: Error, Sendable, Hashable {
    /// What happened.
    public enum Code: Sendable, Hashable {
        /// A running program listens on it.
        case inUse
        /// A file that is no socket stands there.
        case notSocket
        /// The path is longer than this many bytes.
        case tooLong(limit: Int)
        /// The folder belongs to another user, or is open to others.
        case foreignFolder
        /// Something listens on the TCP port.
        case portInUse
        /// An error number of the operating system.
        case system(Int32)
    }

    /// What happened.
    public let code: Code
    /// The path, or the address.
    public let place: String
}

extension ControlError: CustomStringConvertible {
    /// One line for people.
    public var description: String {
        switch code {
        case .inUse: "\(place): a running program listens there"
        case .notSocket: "\(place) is a file, not a socket"
        case .tooLong(let limit): "\(place): the path of a socket has at most \(limit) bytes"
        case .foreignFolder: "\(place): the folder of control sockets must be yours and closed to others (0700)"
        case .portInUse: "cannot listen on \(place): the port is already in use"
        case .system(let number): "cannot listen on \(place): \(String(cString: strerror(number)))"
        }
    }
}
