import Foundation
import TapTestKit

/// What the system says of connections on loopback.
enum Loopback {
    /// How many of the bytes that the system took from one end the program at the other end has read: those that wait in
    /// neither queue of the system (`/proc/net/tcp`, proc(5)).
    ///
    /// - Parameters:
    ///   - connection: the end that wrote.
    ///   - port: the port of the other end, on 127.0.0.1.
    ///   - taken: how many bytes it wrote.
    static func bytesRead(from connection: RawConnection, by port: UInt16, of taken: Int) throws -> Int {
        let own = try connection.localPort
        let table = try String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)
        let rows = table.split(separator: "\n").dropFirst().map { $0.split(separator: " ") }
        func queue(local: UInt16, remote: UInt16, _ part: Int) throws -> Int {
            let ends = [local, remote].map { ":" + String(format: "%04X", $0) }
            guard let row = rows.first(where: { $0[1].hasSuffix(ends[0]) && $0[2].hasSuffix(ends[1]) }),
                let count = Int(row[4].split(separator: ":")[part], radix: 16)
            else { throw KitError("the system knows no connection from port \(local) to \(remote)") }
            return count
        }
        let (unsent, unread) = (try queue(local: own, remote: port, 0), try queue(local: port, remote: own, 1))
        return taken - unsent - unread
    }
}
