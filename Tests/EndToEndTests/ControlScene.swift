import Foundation
import TapTestKit

/// A proxy with a control socket and the built-in server, and juliet's session through it.
final class ControlScene {
    let folder: TemporaryFolder
    let binary: XMPPTapBinary
    let port: UInt16
    let juliet: Account
    let client: PlainClient
    var path: String { folder.path(of: "control.sock") }

    init(_ arguments: [String] = ["--log", "info"]) async throws {
        let folder = try TemporaryFolder()
        self.folder = folder
        binary = try XMPPTapBinary(
            ["proxy", "--listen", "127.0.0.1:0", "--control", folder.path(of: "control.sock")] + arguments
        )
        let line = try await binary.process.line(of: .standardError, within: .seconds(60)) {
            $0.contains("juliet@localhost")
        }
        port = try await binary.port()
        juliet = Account("juliet", password: line.split(separator: " ").last.map(String.init) ?? "")
        client = try await PlainClient(juliet, port: port, resource: "balcony")
    }

    /// A response from the control socket.
    struct Answer {
        var status: Int
        var head: String
        var body: String
        /// The body as JSON.
        var json: [String: Any] {
            (try? JSONSerialization.jsonObject(with: Data(body.utf8)) as? [String: Any]) ?? [:]
        }
    }

    /// Sends a request to the control socket, and returns the response.
    func ask(_ method: String, _ target: String, _ body: String? = nil, over path: String? = nil) async throws -> Answer
    {
        let connection = try RawConnection(path: path ?? self.path)
        return try await Self.ask(connection, method, target, body)
    }

    static func ask(
        _ connection: RawConnection,
        _ method: String,
        _ target: String,
        _ body: String? = nil
    ) async throws -> Answer {
        let length = body.map { "Content-Length: \($0.utf8.count)\r\n" } ?? ""
        try await connection.write(
            "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\(length)\r\n\(body ?? "")"
        )
        let (bytes, end) = try await connection.read(within: .seconds(60)) { _ in false }
        let text = String(decoding: bytes, as: UTF8.self)
        guard let gap = text.firstRange(of: "\r\n\r\n"), let status = Int(text.dropFirst(9).prefix(3)) else {
            throw KitError("\(method) \(target): no answer but \(end): \(text.prefix(500))")
        }
        return Answer(status: status, head: String(text[..<gap.lowerBound]), body: String(text[gap.upperBound...]))
    }

    /// Returns the number of bytes that the proxy has received from the client.
    func bytesSent() async throws -> Int {
        let session = try await ask("GET", "/sessions/1")
        guard session.status == 200, let sent = session.json["sent"] as? [String: Any],
            let bytes = sent["bytes"] as? Int
        else { throw KitError("no count of bytes: \(session.body)") }
        return bytes
    }

    /// Checks that the client's session still works: the server answers a ping.
    func isUntouched() async throws -> Bool {
        let id = UUID().uuidString
        try await client.socket.write("<iq type='get' id='\(id)' to='localhost'><ping xmlns='urn:xmpp:ping'/></iq>")
        try await client.socket.read(until: id)
        return true
    }
}

extension XMPPTapBinary {
    /// Returns the port on which the proxy serves its metrics (`--metrics`).
    func metricsPort() throws -> UInt16 {
        let line = process.lines(of: .standardError).first { $0.hasPrefix("metrics on ") } ?? ""
        guard let port = line.split(separator: ":").last.flatMap({ UInt16($0.prefix { $0.isNumber }) }) else {
            throw process.failure("no metrics")
        }
        return port
    }

    /// Returns the metrics that the proxy serves.
    func metrics() async throws -> String {
        try await ControlScene.ask(RawConnection(port: metricsPort()), "GET", "/metrics").body
    }
}
