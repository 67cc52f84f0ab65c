import Glibc

/// A dnsmasq for one test on a free port of a loopback address. It answers only from the given records.
///
/// It ends when the last reference is released.
package final class NameServer: Sendable {
    /// The port for UDP and TCP.
    package let port: UInt16

    private let process: ToolProcess

    /// Starts the name server and waits until it is ready.
    ///
    /// - Parameters:
    ///   - address: The address to listen on: `127.0.0.1` or `::1`.
    ///   - records: Records as flags of dnsmasq, such as
    ///     `srv-host=_xmpp-client._tcp.example.org,xmpp1.example.org,5222`.
    package init(address: String = "127.0.0.1", _ records: [String]) async throws {
        port = try FreePort.next()
        process = try ToolProcess(
            TestProgram.dnsmasq.rawValue,
            [
                "--no-daemon", "--port=\(port)", "--no-resolv", "--no-hosts", "--conf-file=/dev/null", "--pid-file",
                "--user=", "--group=", "--listen-address=\(address)", "--bind-interfaces", "--local=/#/",
            ] + records.map { "--\($0)" }
        )
        _ = try await process.line(of: .standardError) { $0.contains("started") }
    }

    /// Stops the name server.
    package func stop() async throws { try await process.terminate() }
}
