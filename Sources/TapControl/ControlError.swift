internal import Glibc

/// Why the control socket or the metrics port cannot be used, as one line with its path or address.
package struct ControlError: Error, Sendable, Hashable {
    /// The kind of error.
    package enum Code: Sendable, Hashable {
        /// A running program listens on the socket.
        case inUse
        /// The path is not a socket.
        case notSocket
        /// The path exceeds this many bytes.
        case tooLong(limit: Int)
        /// The folder belongs to another user, or other users can access it.
        case foreignFolder
        /// Another program listens on the TCP port.
        case portInUse
        /// An `errno` value.
        case system(Int32)
    }

    /// The kind of error.
    package let code: Code
    /// The path, or the address.
    package let place: String
}

extension ControlError: CustomStringConvertible {
    /// A human-readable line.
    package var description: String {
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
