import Foundation
import TapTestKit

/// The system's data about connections on loopback.
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
        return try taken - queues(of: own, towards: port).unsent - queues(of: port, towards: own).unread
    }

    /// The bytes that the system holds for one end of a connection on 127.0.0.1: sent and not taken by the other end, and
    /// received and not read.
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

    /// The table in all its pages: the system gives one with each read, and says that the file is empty.
    private static func wholeTable() throws -> String {
        guard let file = FileHandle(forReadingAtPath: "/proc/net/tcp") else { throw KitError("no /proc/net/tcp") }
        var bytes = Data()
        while let page = try file.read(upToCount: 1 << 16), !page.isEmpty { bytes += page }
        return String(decoding: bytes, as: UTF8.self)
    }
}
