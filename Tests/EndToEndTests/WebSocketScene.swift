import Foundation
import TapTestKit

/// Prosody with WebSocket and BOSH over HTTP, and over HTTPS if it has a certificate.
struct WebSocketScene {
    let prosody: ProsodyServer
    let http: UInt16
    let https: UInt16

    /// - Parameter host: Further lines for the section of the domain.
    init(_ certificate: TestCertificate? = nil, host: String = "") async throws {
        let (http, https) = (try FreePort.next(), try FreePort.next())
        (self.http, self.https) = (http, https)
        let secure = certificate.map {
            """
            https_ports = { \(https) }
            https_ssl = { key = "\($0.key)", certificate = "\($0.certificate)" }
            """
        }
        prosody = try await ProsodyServer(
            settings: """
                http_ports = { \(http) }
                http_interfaces = { "127.0.0.1" }
                https_interfaces = { "127.0.0.1" }
                http_default_host = "localhost"
                \(secure ?? "https_ports = {}")
                consider_websocket_secure = true
                consider_bosh_secure = true
                """,
            host: "modules_enabled = { \"websocket\", \"bosh\" }\n\(host)"
        )
    }

    var url: String { "ws://localhost:\(http)/xmpp-websocket" }
    var secureURL: String { "wss://localhost:\(https)/xmpp-websocket" }

    /// Starts Strophe in Node; it sends each line of `sending` to itself.
    static func strophe(_ url: String, trusting file: String? = nil, sending: String) throws -> ToolProcess {
        let script = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../TapTestKit/Clients/strophe_client.js").standardized.path
        return try ToolProcess(
            "/usr/bin/node",
            [script, url, Account.juliet.jid, Account.juliet.password],
            environment: file.map { ["NODE_EXTRA_CA_CERTS": $0] } ?? [:],
            input: sending
        )
    }
}
