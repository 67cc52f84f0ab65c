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
        let table = try wholeTable()
        let rows = table.split(separator: "\n").dropFirst().map { $0.split(separator: " ") }
        func queue(local: UInt16, remote: UInt16, _ part: Int) throws -> Int {
            let ends = [local, remote].map { ":" + String(format: "%04X", $0) }
            guard let row = rows.first(where: { $0[1].hasSuffix(ends[0]) && $0[2].hasSuffix(ends[1]) }),
                let count = Int(row[4].split(separator: ":")[part], radix: 16)
            else { throw KitError("no connection from port \(local) to \(remote), \(taken) bytes written:\n\(table)") }
            return count
        }
        let (unsent, unread) = (try queue(local: own, remote: port, 0), try queue(local: port, remote: own, 1))
        return taken - unsent - unread
    }

    /// The table in all its pages: the system gives one with each read, and says that the file is empty.
    private static func wholeTable() throws -> String {
        guard let file = FileHandle(forReadingAtPath: "/proc/net/tcp") else { throw KitError("no /proc/net/tcp") }
        var bytes = Data()
        while let page = try file.read(upToCount: 1 << 16), !page.isEmpty { bytes += page }
        return String(decoding: bytes, as: UTF8.self)
    }
}
