import Foundation
import Synchronization

/// A ClickHouse server for one test, with a temporary folder and a free port of 127.0.0.1 for HTTP.
package final class ClickHouse: Sendable {
    package let port: UInt16
    /// The port for HTTPS; nil without a certificate.
    package let securePort: UInt16?
    private let folder: TemporaryFolder
    private let configuration: String
    private let process: Mutex<ToolProcess?>

    /// The folder of chdb, the engine of a current server. It has 530 MB, so CI does not install it:
    /// `pip install --no-deps --target .build/chdb chdb-core==26.9.0`.
    private static let currentEngine =
        URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../.build/chdb").standardized.path

    /// Whether ``init(current:)`` can start a current server.
    package static var hasCurrent: Bool { FileManager.default.fileExists(atPath: "\(currentEngine)/chdb") }

    /// Starts a server with the engine of a current version, and waits until it answers. Debian's is of 2018.
    package init(current folder: TemporaryFolder) async throws {
        self.folder = folder
        port = try FreePort.next()
        securePort = nil
        configuration = ""
        let server = try ToolProcess(
            "/usr/bin/python3",
            [
                URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Clients/chdb_server.py").path,
                "--library", Self.currentEngine, "--port", "\(port)", "--data", folder.path,
            ],
            environment: ["TZ": "America/New_York", "HOME": folder.path, "TMPDIR": folder.path]
        )
        process = Mutex(server)
        _ = try await server.line(of: .standardOutput) { [port] in $0 == "\(port)" }
    }

    /// Starts a server, and waits until it answers.
    ///
    /// - Parameters:
    ///   - users: Names and passwords of users besides `default`, which has none.
    ///   - certificate: A certificate for HTTPS; nil for none.
    package init(
        users: [(name: String, password: String)] = [],
        certificate: TestCertificate? = nil
    ) async throws {
        folder = try TemporaryFolder()
        port = try FreePort.next()
        let securePort = try certificate.map { _ in try FreePort.next() }
        self.securePort = securePort
        let tls = certificate.map { certificate in
            """
            <https_port>\(securePort ?? 0)</https_port><openSSL><server><certificateFile>\(certificate.certificate)</certificateFile>
            <privateKeyFile>\(certificate.key)</privateKeyFile><verificationMode>none</verificationMode></server></openSSL>
            """
        }
        let native = try FreePort.next()
        let others = users.map {
            """
            <\($0.name)><password>\($0.password.replacing("&", with: "&amp;"))</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
            <quota>default</quota></\($0.name)>
            """
        }
        _ = try folder.write(
            """
            <yandex><profiles><default/></profiles><quotas><default/></quotas><users>
            <default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
            <quota>default</quota></default>\(others.joined())</users></yandex>
            """,
            to: "users.xml"
        )
        configuration = try folder.write(
            """
            <yandex><logger><level>error</level><console>1</console></logger><listen_host>127.0.0.1</listen_host>
            <http_port>\(port)</http_port>\(tls ?? "")<tcp_port>\(native)</tcp_port>
            <path>\(folder.path(of: "data"))/</path><tmp_path>\(folder.path(of: "tmp"))/</tmp_path>
            <users_config>\(folder.path(of: "users.xml"))</users_config>
            <default_profile>default</default_profile><default_database>default</default_database>
            <mark_cache_size>16777216</mark_cache_size></yandex>
            """,
            to: "config.xml"
        )
        for name in ["data", "tmp"] {
            try FileManager.default.createDirectory(
                atPath: folder.path(of: name),
                withIntermediateDirectories: false
            )
        }
        process = Mutex(nil)
        try await start()
    }

    /// Starts the server again after ``kill()``, with its port and its data.
    package func start() async throws {
        let process = try ToolProcess(
            TestProgram.clickHouse.rawValue,
            ["--config-file=\(configuration)"],
            // Times of partitions must not depend on the server's zone.
            environment: ["TZ": "America/New_York", "HOME": folder.path]
        )
        self.process.withLock { $0 = process }
        let end = ContinuousClock.now + .seconds(60)
        while !FreePort.accepts(port) {
            guard process.isRunning, ContinuousClock.now < end else {
                throw process.failure("does not accept on port \(port)")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    /// Ends the server without letting it finish its work.
    package func kill() async throws {
        let process = process.withLock { $0 }
        process?.signal(SIGKILL)
        _ = try await process?.ending()
    }

    /// Executes a statement, and returns what the server answers.
    @discardableResult
    package func run(_ statement: String) async throws -> String {
        let request = try ToolProcess(
            "/usr/bin/curl",
            ["--silent", "--show-error", "http://127.0.0.1:\(port)/", "--data-binary", "@-"],
            input: statement
        )
        guard try await request.ending() == .exited(0) else { throw request.failure("no answer") }
        return request.text(of: .standardOutput)
    }
}

extension ClickHouse {
    /// Sends a request over HTTP, and waits for the answer. It blocks the thread.
    package func send(
        _ target: String,
        fields: [(String, String)] = [],
        body: [UInt8]
    ) throws -> (status: Int, body: [UInt8]) {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { throw KitError("no socket: errno \(errno)") }
        defer { close(socket) }
        guard LoopbackAddress.with(port, { connect(socket, $0, $1) }) == 0 else {
            throw KitError("cannot connect to port \(port): errno \(errno)")
        }
        // The answer to HTTP/1.0 is one piece that ends with the connection.
        let lines =
            ["POST \(target) HTTP/1.0", "Content-Length: \(body.count)"] + fields.map { "\($0): \($1)" } + ["", ""]
        var request = Array(lines.joined(separator: "\r\n").utf8) + body
        while !request.isEmpty {
            let count = Glibc.send(socket, request, min(request.count, 1 << 20), Int32(MSG_NOSIGNAL))
            guard count > 0 else { throw KitError("the server does not read the request: errno \(errno)") }
            request.removeFirst(count)
        }
        var answer: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 18)
        while true {
            let count = recv(socket, &piece, piece.count, 0)
            guard count >= 0 else { throw KitError("the answer ended early: errno \(errno)") }
            guard count > 0 else { break }
            answer += piece[..<count]
        }
        let end = Array("\r\n\r\n".utf8)
        guard let head = answer.firstRange(of: end),
            let status = Int(String(decoding: answer[..<head.lowerBound], as: UTF8.self).split(separator: " ")[1])
        else { throw KitError("no HTTP answer: \(String(decoding: answer.prefix(100), as: UTF8.self))") }
        return (status, Array(answer[head.upperBound...]))
    }
}
