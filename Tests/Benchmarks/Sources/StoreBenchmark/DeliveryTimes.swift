import Foundation
import Glibc
import Synchronization
import TapStore

/// Sends rows by the spool to a server of this process, which counts bytes and confirms everything, or to a ClickHouse server.
struct DeliveryTimes {
    private static let chunk = 20_000

    private let count: Int
    private let port: Int?

    /// - Parameter port: The port of a ClickHouse server on 127.0.0.1, whose database `benchmark` is made anew; nil for a server that counts.
    init(_ count: Int, port: Int?) { (self.count, self.port) = (count, port) }

    func run() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "store-benchmark-\(getpid())").path
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let bytes = Mutex(0)
        let place =
            try port.map { try Self.place(port: $0, spool: folder) }
            ?? Self.place(spool: folder) { request in
                let isVersion = String(decoding: request.body.prefix(40), as: UTF8.self).contains("version()")
                bytes.withLock { $0 += request.body.count }
                return ClickHouseAnswer(status: 200, exception: nil, body: isVersion ? Array("18.16.1".utf8) : [])
            }
        if let port {
            _ = try Self.post(Array("DROP DATABASE IF EXISTS benchmark".utf8), to: "/", [], port)
            _ = try place.initialize()
        }
        var writing = StorePlace.Writing(run: SampleRows.run)
        writing.whenFull = .wait
        let writer = try place.openWriter(writing)
        var sample = SampleRows(count, days: 1)
        var (seconds, wall) = (0.0, 0.0)
        while true {
            let rows = sample.next(Self.chunk)
            guard !rows.isEmpty else { break }
            let (began, start) = (StoreBenchmark.processorTime, StoreBenchmark.now)
            for row in rows { try writer.add(.stanza(row)) }
            try writer.commit()
            seconds += StoreBenchmark.processorTime - began
            wall += StoreBenchmark.now - start
        }
        let (began, start) = (StoreBenchmark.processorTime, StoreBenchmark.now)
        try writer.finish()
        seconds += StoreBenchmark.processorTime - began
        wall += StoreBenchmark.now - start
        let target = port == nil ? "a server that counts" : "ClickHouse"
        print("\(count) rows into \(target):")
        print(String(format: "  %.0f rows per CPU second of this process", Double(count) / seconds))
        print(String(format: "  %.0f rows a second, with the server on the same processors", Double(count) / wall))
        if port == nil {
            print(String(format: "  %.1f bytes a row", Double(bytes.withLock { $0 }) / Double(count)))
        } else {
            let overview = try place.open().overview()
            print(String(format: "  %.1f bytes a row of %d", Double(overview.bytes) / Double(count), overview.stanzas))
        }
    }

    /// The database `benchmark` of a server on 127.0.0.1.
    static func place(port: Int, spool: String = "") throws -> StorePlace {
        try place(port, spool: spool) { request throws(ClickHouseUnreachable) in
            try post(request.body, to: request.target, request.fields, port)
        }
    }

    private static func place(
        _ port: Int = 8123,
        spool: String,
        _ transport: @escaping ClickHouseTransport
    ) throws -> StorePlace {
        .clickHouse(
            try ClickHouseAddress("clickhouse://127.0.0.1:\(port)/benchmark"),
            password: nil,
            spool: Spool.Configuration(folder: spool)
        ) { _ in transport }
    }

    /// Sends a request to a server on 127.0.0.1: one connection for each, as little as is possible besides the benchmark.
    private static func post(
        _ body: [UInt8],
        to target: String,
        _ fields: [(String, String)],
        _ port: Int
    ) throws(ClickHouseUnreachable) -> ClickHouseAnswer {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw ClickHouseUnreachable(text: "no socket") }
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = withUnsafeBytes(of: &address) { place in
            connect(descriptor, place.assumingMemoryBound(to: sockaddr.self).baseAddress, UInt32(place.count))
        }
        guard result == 0 else { throw ClickHouseUnreachable(text: "connection refused") }
        var head = "POST \(target) HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        head += "Content-Length: \(body.count)\r\n\r\n"
        var rest = (Array(head.utf8) + body)[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { throw ClickHouseUnreachable(text: "cannot send") }
            rest = rest.dropFirst(sent)
        }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = recv(descriptor, &buffer, buffer.count, 0), count > 0 { answer += buffer[..<count] }
        return try Self.answer(answer)
    }

    /// Parses an answer with a body in chunks (RFC 9112 §7.1).
    private static func answer(_ bytes: [UInt8]) throws(ClickHouseUnreachable) -> ClickHouseAnswer {
        let text = String(decoding: bytes.prefix(1000), as: UTF8.self)
        guard let status = text.split(separator: " ").dropFirst().first.flatMap({ Int($0) }),
            var position = bytes.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound
        else { throw ClickHouseUnreachable(text: "no HTTP") }
        var body: [UInt8] = []
        while let end = bytes[position...].firstIndex(of: 0x0D),
            let count = Int(String(decoding: bytes[position..<end], as: UTF8.self), radix: 16), count > 0,
            end + 2 + count + 2 <= bytes.count
        {
            body += bytes[(end + 2)..<(end + 2 + count)]
            position = end + 2 + count + 2
        }
        return ClickHouseAnswer(status: status, exception: nil, body: body)
    }
}
