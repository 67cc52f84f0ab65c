import Dispatch
import Glibc
import TapTestKit

/// A TCP connection to a port on 127.0.0.1, for data that no client would send.
///
/// It blocks only the threads of its queue. Swift's thread pool has one thread per core, so a test that blocked one of
/// them would keep the peers of other tests from answering.
final class PlainSocket: @unchecked Sendable {  // Sendable: only one test uses it, one call after the other.
    private let descriptor: Int32
    private let queue = DispatchQueue(label: "socket")
    private(set) var received = ""

    init(port: UInt16) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        let outcome = LoopbackAddress.with(port) { connect(descriptor, $0, $1) }
        guard outcome == 0 else {
            throw KitError("cannot connect to port \(port): \(String(cString: strerror(errno)))")
        }
        var patience = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    private func perform(_ body: @escaping @Sendable () throws -> Void) async throws {
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            queue.async { continuation.resume(with: Result { try body() }) }
        }
    }

    func write(_ text: String) async throws { try await perform { try self.send(text) } }

    /// Reads until the text has arrived, or to the end of the connection if it is nil.
    func read(until text: String? = nil) async throws { try await perform { try self.receive(until: text) } }

    private func send(_ text: String) throws {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw KitError("cannot send: \(String(cString: strerror(errno)))") }
            rest = rest.dropFirst(count)
        }
    }

    private func receive(until text: String?) throws {
        var chunk = [UInt8](repeating: 0, count: 65536)
        while text.map({ !received.contains($0) }) ?? true {
            let count = recv(descriptor, &chunk, chunk.count, 0)
            if count == 0 {
                guard let text else { return }
                throw KitError("the connection ended before \(text) came: \(received.suffix(500))")
            }
            guard count > 0 else { throw KitError("no \(text ?? "end") came: \(received.suffix(500))") }
            received += String(decoding: chunk[..<count], as: UTF8.self)
        }
    }

    /// Opens a stream to a domain, and waits for the server's features.
    func openStream(to domain: String = "localhost") async throws {
        try await write(
            "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='\(domain)' "
                + "version='1.0'>"
        )
        try await read(until: "</stream:features>")
    }
}
