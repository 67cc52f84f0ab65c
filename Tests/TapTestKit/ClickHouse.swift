import Foundation
import Synchronization

/// A ClickHouse server for one test, with a temporary folder and a free port of 127.0.0.1 for HTTP.
package final class ClickHouse: Sendable {
    package let port: UInt16
    private let folder: TemporaryFolder
    private let configuration: String
    private let process: Mutex<ToolProcess?>

    /// Starts a server, and waits until it answers.
    ///
    /// - Parameter users: Names and passwords of users besides `default`, which has none.
    package init(users: [(name: String, password: String)] = []) async throws {
        folder = try TemporaryFolder()
        port = try FreePort.next()
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
            <http_port>\(port)</http_port><tcp_port>\(native)</tcp_port>
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
