import TapTestKit

/// A TCP connection to a port of 127.0.0.1, for what no client would ever send.
///
/// It never blocks: a test that holds a thread of Swift's pool keeps the peers of other tests from answering.
final class PlainSocket {
    private let connection: RawConnection
    private(set) var received = ""

    init(port: UInt16) throws { connection = try RawConnection(port: port) }

    func write(_ text: String) async throws {
        let bytes = Array(text.utf8)
        let count = try await connection.write(bytes, patience: .seconds(60))
        guard count == bytes.count else {
            throw KitError("the peer took \(count) of \(bytes.count) bytes: \(text.prefix(200))")
        }
    }

    /// Reads until `text` has come, or to the end where that is nil.
    func read(until text: String? = nil) async throws {
        while text.map({ !received.contains($0) }) ?? true {
            let (bytes, end) = try await connection.read(within: .seconds(60)) { !$0.isEmpty }
            received += String(decoding: bytes, as: UTF8.self)
            switch end {
            case .enough: continue
            case .finished:
                guard let text else { return }
                throw KitError("the connection ended before \(text) came: \(received.suffix(500))")
            case .reset, .silent: throw KitError("no \(text ?? "end") came, but \(end): \(received.suffix(500))")
            }
        }
    }

    /// Opens a stream to a domain and waits for what the server offers.
    func openStream(to domain: String = "localhost") async throws {
        try await write(
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='\(domain)' "
                + "version='1.0'>"
        )
        try await read(until: "</stream:features>")
    }
}
