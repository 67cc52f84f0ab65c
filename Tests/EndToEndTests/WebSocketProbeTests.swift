import Foundation
import TapTestKit
import Testing

/// Files that are served over HTTPS.
struct HTTPSFiles {
    /// The path of the server's program.
    static let script = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../TapTestKit/Clients/https_files.py").standardized.path

    let port: UInt16
    let folder: TemporaryFolder
    private let process: ToolProcess

    init(_ certificate: TestCertificate) async throws {
        folder = try TemporaryFolder()
        process = try ToolProcess(
            "/usr/bin/python3",
            [Self.script, certificate.certificate, certificate.key, folder.path]
        )
        let line = try await process.line(of: .standardOutput, within: .seconds(60)) { UInt16($0) != nil }
        port = UInt16(line) ?? 0
    }

    var address: String { "https://localhost:\(port)" }

    static func xrd(_ links: String...) -> String {
        "<?xml version='1.0' encoding='utf-8'?>\n<!-- <Link> --><XRD xmlns='http://docs.oasis-open.org/ns/xri/xrd-1.0'>\n"
            + links.map { "<Link rel='urn:xmpp:alt-connections:websocket' href='\($0)'/>" }.joined() + "</XRD>\n"
    }

    static func json(_ links: String...) -> String {
        let list = links.map { "{\"rel\":\"urn:xmpp:alt-connections:websocket\",\"href\":\"\($0)\"}" }
        return "{\"links\":[{\"rel\":\"self\"},\(list.joined(separator: ","))]}"
    }
}

extension Probed {
    /// The output in one line.
    fileprivate var text: String { output.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
}

/// `probe --ws` with Prosody, by a URL and by host-meta.
@Suite(
    .serialized,
    .timeLimit(.minutes(5)),
    .enabled(if: TestProgram.areInstalled(.prosody, .slixmpp, .openssl), "Prosody, Python or openssl is missing")
)
struct WebSocketProbeTests {
    private static func password() throws -> (folder: TemporaryFolder, arguments: [String]) {
        let folder = try TemporaryFolder()
        return (folder, ["--password-file", try folder.write("\(Account.juliet.password)\n", to: "password")])
    }

    @Test("A WebSocket is probed by its URL: handshake, certificate, login and grades")
    func probesURLs() async throws {
        let certificate = try await TestCertificate()
        let server = try await WebSocketScene(certificate)
        let (folder, password) = try Self.password()
        let trust = ["--upstream-ca", certificate.certificate]
        let probed = try await Probed(["juliet@localhost", "--ws", server.secureURL] + password + trust)
        #expect(probed.ending == .exited(0), "\(probed)")
        #expect(probed.tells("✓ websocket", "HTTP 101, subprotocol xmpp"), "\(probed)")
        #expect(probed.tells("A  websocket", "wss") && probed.tells("✓ login"), "\(probed)")
        #expect(!probed.tells("direct TLS") && !probed.tells("required TLS"), "\(probed)")
        let objects = try await Probed(["juliet@localhost", "--ws", server.secureURL, "--json"] + trust).objects()
        #expect(objects.contains { $0["step"] as? String == "websocket" || $0["name"] as? String == "websocket" })
        let clear = try await Probed(["juliet@localhost", "--ws", server.url] + password)
        #expect(clear.tells("F  websocket", "clear text"), "\(clear)")
        let untrusted = try await Probed(["juliet@localhost", "--ws", server.secureURL] + password)
        #expect(untrusted.ending == .exited(1) && untrusted.tells("password not sent"), "\(untrusted)")
        let path = try await Probed(
            ["juliet@localhost", "--ws", "wss://localhost:\(server.https)/nowhere?t=s3cr3t"] + trust
        )
        #expect(path.ending == .exited(4) && path.tells("✗ websocket") && path.text.contains("HTTP 404"), "\(path)")
        #expect(!path.text.contains("s3cr3t"))
        try await server.prosody.stop()
        _ = folder
    }

    @Test("The WebSocket is found by host-meta, and differences between the files are reported")
    func findsWebSockets() async throws {
        let certificate = try await TestCertificate()
        let server = try await WebSocketScene(certificate)
        let files = try await HTTPSFiles(certificate)
        try files.folder.write(HTTPSFiles.xrd(server.secureURL), to: "host-meta")
        try files.folder.write(HTTPSFiles.json(server.secureURL), to: "host-meta.json")
        let arguments = ["juliet@localhost", "--ws", files.address, "--upstream-ca", certificate.certificate]
        let both = try await Probed(arguments)
        #expect(both.ending == .exited(0), "\(both)")
        #expect(both.tells("✓ host meta", "host-meta: wss://localhost:\(server.https)/"), "\(both)")
        #expect(both.tells("A  host meta") && both.tells("✓ websocket"), "\(both)")

        try files.folder.write(
            HTTPSFiles.json("ws://localhost:1/x?token=s3cr3t", "wss://[bad"),
            to: "host-meta.json"
        )
        let different = try await Probed(arguments)
        #expect(different.text.contains("the files differ: only host-meta has wss://localhost"), "\(different)")
        #expect(different.text.contains("clients must not use it") && different.tells("C  host meta"), "\(different)")
        #expect(different.text.contains("not the URL of a WebSocket"), "\(different)")
        #expect(!different.text.contains("s3cr3t"))

        try FileManager.default.removeItem(atPath: files.folder.path(of: "host-meta.json"))
        let alone = try await Probed(arguments)
        #expect(alone.ending == .exited(0) && alone.tells("B  host meta"), "\(alone)")
        #expect(alone.text.contains("host-meta.json: HTTP 404"), "\(alone)")

        let xrd = HTTPSFiles.xrd(server.secureURL)
        try files.folder.write("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n\(xrd)", to: "host-meta.raw")
        #expect(try await Probed(arguments).text.contains("no field Access-Control-Allow-Origin"))
        let untrusted = try await Probed(Array(arguments.prefix(3)))
        #expect(
            untrusted.ending == .exited(4) && untrusted.text.contains("certificate of the server is not trusted"),
            "\(untrusted)"
        )
        try await server.prosody.stop()
    }

    @Test("Redirections to https are followed, at most three; malformed files are clear errors")
    func readsFiles() async throws {
        let certificate = try await TestCertificate()
        let files = try await HTTPSFiles(certificate)
        let url = "wss://localhost:1/ws"
        func probe(_ answer: String, as name: String = "host-meta.raw", timeout: String = "20") async throws -> Probed {
            try files.folder.write(answer, to: name)
            return try await Probed([
                "localhost", "--ws", files.address, "--upstream-ca", certificate.certificate, "--timeout", timeout,
            ])
        }
        func redirection(_ location: String) -> String {
            "HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\n\r\n"
        }
        try files.folder.write(HTTPSFiles.xrd(url), to: "other")
        for location in ["/other", "https://localhost:{port}/other?t=s3cr3t"] {
            let probed = try await probe(redirection(location))
            #expect(probed.text.contains("host-meta: \(url)"), "\(location): \(probed)")
        }
        for (answer, expected) in [
            (redirection("/host-meta"), "more than 3 redirections"),
            (redirection("http://localhost/?t=s3cr3t"), "a redirection to \"http://localhost/\", which"),
            (redirection("file:///etc/passwd"), "which is not an https URL"),
            ("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", "HTTP 503"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n<XRD", "cut off"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n<XRD", "cut off"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n<XRD", "not HTTP"),
            ("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nx", "compressed"),
            ("SSH-2.0-x\r\n", "not HTTP"), ("", "the server ended its answer"),
            (
                "HTTP/1.1 200 OK\r\n" + String(repeating: "X: yyyyyyyy\r\n", count: 10_000) + "\r\n",
                "longer than 80 KiB"
            ),
        ] {
            let probed = try await probe(answer)
            #expect(probed.ending == .exited(4) && probed.text.contains(expected), "\(expected): \(probed)")
            #expect(!probed.text.contains("s3cr3t"))
        }
        try FileManager.default.removeItem(atPath: files.folder.path(of: "host-meta.raw"))
        let bomb =
            "<!DOCTYPE x [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]><XRD "
            + "xmlns='http://docs.oasis-open.org/ns/xri/xrd-1.0'>&b;</XRD>"
        for (file, expected) in [
            (bomb, "not XML"), (String(repeating: " ", count: 70_000), "longer than 64 KiB"), ("", "it is empty"),
            (HTTPSFiles.xrd(url) + "<x/>", "not XML"), ("<XRD/>", "not an XRD file"), ("<html>", "not XML"),
            ("<!-- <XRD/>", "it is empty"), ("{}", "not XML"),
            (String(repeating: "<a>", count: 20_000), "not XML"),
        ] {
            let probed = try await probe(file, as: "host-meta")
            #expect(probed.ending == .exited(4) && probed.text.contains(expected), "\(expected): \(probed)")
        }
        for (file, expected) in [
            ("[]", "not a JSON object"), ("{\"links\":{}}", "not an array"), ("{\"links\":[1,null,{}]}", "no link"),
            ("{\"links\":", "not JSON"), (String(repeating: "[", count: 60_000), "not JSON"),
            ("{\"links\":[{\"rel\":\"\\ud800\"}]}", "not JSON"),
        ] {
            let probed = try await probe(file, as: "host-meta.json")
            #expect(probed.ending == .exited(4) && probed.text.contains(expected), "\(expected): \(probed)")
        }
        let silent = try await probe("", as: "host-meta.slow", timeout: "1")
        #expect(silent.ending == .exited(4) && silent.text.contains("no whole answer within 1 s"), "\(silent)")
    }

    @Test("proxy finds the WebSocket of a domain by host-meta, and says if there is none")
    func findsUpstreams() async throws {
        let certificate = try await TestCertificate()
        let server = try await WebSocketScene(certificate)
        let files = try await HTTPSFiles(certificate)
        try files.folder.write(HTTPSFiles.xrd(server.secureURL), to: "host-meta")
        let authority = try await InterceptAuthority()
        let arguments =
            authority.arguments + [
                "--listen-ws", "127.0.0.1:0", "--upstream", files.address, "--upstream-ca", certificate.certificate,
            ]
        let tap = try await Tap(listen: [], arguments: arguments)
        let port = try await tap.binary.port()
        let probed = try await Probed(["juliet@localhost", "--ws", "ws://127.0.0.1:\(port)/any"])
        #expect(probed.tells("✓ websocket") && probed.tells("✓ offer"), "\(probed)")
        #expect(tap.binary.process.text(of: .standardError).contains("names \(server.secureURL)"))
        try await tap.stop()
        // The certificate is for the domain, but not for the address in the URL.
        let address = "wss://127.0.0.1:\(server.https)/xmpp-websocket"
        try files.folder.write(HTTPSFiles.xrd(address), to: "host-meta")
        let other = try await Tap(listen: [], arguments: arguments)
        let second = try await Probed([
            "juliet@localhost", "--ws", "ws://127.0.0.1:\(try await other.binary.port())/any",
        ])
        #expect(second.tells("✓ websocket") && second.tells("✓ offer"), "\(second)")
        try await other.stop()
        let direct = try await Probed(["juliet@localhost", "--ws", files.address] + arguments.suffix(2))
        #expect(direct.ending == .exited(0) && direct.text.contains("but not for 127.0.0.1"), "\(direct)")
        #expect(direct.tells("C  websocket", "browsers refuse it"), "\(direct)")
        try FileManager.default.removeItem(atPath: files.folder.path(of: "host-meta"))
        let none = try await XMPPTapBinary.run(["proxy"] + arguments)
        #expect(none.ending == .exited(4) && none.error.contains("names no WebSocket with TLS"), "\(none)")
        #expect(none.error.contains("host-meta: HTTP 404"), "\(none)")
        try await server.prosody.stop()
    }
}
