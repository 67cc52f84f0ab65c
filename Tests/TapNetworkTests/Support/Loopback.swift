import Foundation
import TapTestKit

/// The system's data about loopback connections.
enum Loopback {
    /// Returns how many of the bytes written to a connection were read by the program at the other end: those that are
    /// in neither queue of the system (`/proc/net/tcp`, proc(5)).
    ///
    /// - Parameters:
    ///   - connection: The end that wrote.
    ///   - port: The port of the other end, on 127.0.0.1.
    ///   - taken: Number of bytes written.
    static func bytesRead(from connection: RawConnection, by port: UInt16, of taken: Int) throws -> Int {
        let own = try connection.localPort
        return try taken - queues(of: own, towards: port).unsent - queues(of: port, towards: own).unread
    }

    /// Returns the number of bytes that the system holds for one end of a connection on 127.0.0.1: sent but not
    /// acknowledged, and received but not read.
    static func queues(of local: UInt16, towards remote: UInt16) throws -> (unsent: Int, unread: Int) {
        let table = try wholeTable()
        let ends = [local, remote].map { ":" + String(format: "%04X", $0) }
        for row in table.split(separator: "\n").dropFirst().lazy.map({ $0.split(separator: " ") })
        where row[1].hasSuffix(ends[0]) && row[2].hasSuffix(ends[1]) {
            let counts = row[4].split(separator: ":").compactMap { Int($0, radix: 16) }
            if counts.count == 2 { return (counts[0], counts[1]) }
        }
        throw KitError("no connection from port \(local) to \(remote):\n\(table)")
    }

    /// Returns the whole table: the system returns one page per read, and reports the file size as 0.
    private static func wholeTable() throws -> String {
        guard let file = FileHandle(forReadingAtPath: "/proc/net/tcp") else { throw KitError("no /proc/net/tcp") }
        var bytes = Data()
        while let page = try file.read(upToCount: 1 << 16), !page.isEmpty { bytes += page }
        return String(decoding: bytes, as: UTF8.self)
    }
}
