import Foundation
import TapTestKit
import Testing

/// Tests of the diagnosis of failed logins in the log, with a real server.
@Suite(
    .serialized,
    .timeLimit(.minutes(2)),
    .enabled(if: TestProgram.areInstalled(.prosody), "Prosody is missing")
)
struct WhyTests {
    private static let sasl = "urn:ietf:params:xml:ns:xmpp-sasl"

    private static func auth(_ mechanism: String, _ message: String) -> String {
        "<auth xmlns='\(sasl)' mechanism='\(mechanism)'>\(Data(message.utf8).base64EncodedString())</auth>"
    }

    /// Runs clients one after another, and returns the diagnoses.
    private func diagnoses(
        _ tap: Tap,
        _ clients: [(PlainSocket) async throws -> Void]
    ) async throws -> [LogRecord] {
        for client in clients {
            let socket = try PlainSocket(port: tap.port)
            try await client(socket)
            try? await socket.write("</stream:stream>")
            try? await socket.read()
        }
        try await tap.stop()
        let records = try tap.records()
        // Sessions run on several threads, so one may end after the next has begun.
        let diagnoses = records.filter { $0.code == "login-failed" }.sorted { $0.session ?? 0 < $1.session ?? 0 }
        #expect(diagnoses.count == clients.count, "\(diagnoses)")
        #expect(diagnoses.allSatisfy { $0.kind == "note" && $0.level == "error" })
        let text = Tap.read(tap.json) + Tap.read(tap.text)
        #expect(!text.contains("wr0ng-passw0rd") && !text.contains("d3JvbmctcGFzc3cwcmQ"))
        return diagnoses
    }

    private func causes(_ diagnoses: [LogRecord]) -> [String] {
        diagnoses.map { "\($0.details?.step ?? "") \($0.details?.cause ?? "") \($0.details?.side ?? "")" }
    }

    @Test func `Wrong names, passwords, mechanisms, domains and resources are diagnosed`() async throws {
        let server = try await ProsodyServer(settings: "conflict_resolve = \"kick_new\"")
        let tap = try await Tap(upstream: server.port)
        let first = try await PlainClient(.juliet, port: server.port, resource: "balcony")
        let juliet = Account.juliet
        let diagnoses = try await diagnoses(
            tap,
            [
                { socket in
                    try await socket.openStream()
                    try await socket.write(Self.auth("PLAIN", "\0juliet\0wr0ng-passw0rd"))
                    try await socket.read(until: "</failure>")
                },
                { socket in
                    try await socket.openStream()
                    try await socket.write(Self.auth("SCRAM-SHA-1", "n,,n=nobody,r=fyko+d2lbbFgONRv9qkxdawL"))
                    try await socket.read(until: "</failure>")
                },
                { socket in
                    try await socket.openStream()
                    try await socket.write(Self.auth("X-NONE", "hello"))
                    try await socket.read(until: "</failure>")
                },
                { socket in try await socket.openStream() },
                { socket in
                    try await socket.write(
                        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
                            + "to='capulet.example' version='1.0'>"
                    )
                    try await socket.read(until: "host-unknown")
                },
                { socket in
                    try await socket.write(
                        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/brooks' "
                            + "to='localhost' version='1.0'>"
                    )
                },
                { socket in
                    try await socket.openStream()
                    try await socket.write(Self.auth("PLAIN", "\0\(juliet.user)\0\(juliet.password)"))
                    try await socket.read(until: "<success")
                    try await socket.write(
                        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' "
                            + "to='localhost' version='1.0'>"
                    )
                    try await socket.read(until: "urn:ietf:params:xml:ns:xmpp-bind")
                    try await socket.write(
                        "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>"
                            + "<resource>balcony</resource></bind></iq>"
                    )
                    try await socket.read(until: "<conflict")
                },
            ]
        )
        #expect(
            causes(diagnoses) == [
                "sasl not-authorized client", "sasl unknown-user client", "sasl no-common-mechanism client",
                "mechanism no-common-mechanism client", "features host-unknown client",
                "stream-open namespace-mismatch client", "bind conflict client",
            ]
        )
        #expect(diagnoses.allSatisfy { $0.details?.proxyIsCause == false })
        #expect(diagnoses.first?.details?.rule == "RFC 6120 §6.5.10")
        try await first.leave()
        try await server.stop()
    }

    @Test func `A server that requires TLS is diagnosed, also if only for PLAIN`() async throws {
        let certificate = try await TestCertificate()
        let server = try await ProsodyServer(encryption: .startTLS(certificate))
        let tap = try await Tap(upstream: server.port)
        let diagnoses = try await diagnoses(tap, [{ socket in try await socket.openStream() }])
        #expect(causes(diagnoses) == ["starttls tls-required client"])
        #expect(diagnoses.first?.message?.contains("c2s_require_encryption = false") == true)
        try await server.stop()
    }

    @Test func `A registration with a taken name and a refused registration are diagnosed`() async throws {
        func register(_ name: String) -> (PlainSocket) async throws -> Void {
            { socket in
                try await socket.openStream()
                try await socket.write(
                    "<iq type='set' id='r'><query xmlns='jabber:iq:register'><username>\(name)</username>"
                        + "<password>wr0ng-passw0rd</password></query></iq>"
                )
                try await socket.read(until: "</iq>")
            }
        }
        let open = try await ProsodyServer(host: "modules_enabled = { \"register\" }; allow_registration = true")
        let taken = try await diagnoses(try await Tap(upstream: open.port), [register("juliet")])
        #expect(causes(taken) == ["register account-exists client"])
        try await open.stop()
        let closed = try await ProsodyServer()
        let refused = try await diagnoses(try await Tap(upstream: closed.port), [register("mercutio")])
        #expect(causes(refused) == ["register registration-not-allowed server"], "\(refused)")
        try await closed.stop()
    }

    @Test func `An unreachable server and a silent server are diagnosed`() async throws {
        let tap = try await Tap(upstream: try FreePort.next())
        let nobody = try await diagnoses(
            tap,
            [
                { socket in
                    try await socket.write("<stream:stream xmlns:stream='http://etherx.jabber.org/streams' to='x'>")
                }
            ]
        )
        #expect(causes(nobody) == ["connect connection-refused server"])
        let mute = try RawListener()
        let second = try await Tap(upstream: mute.port, arguments: ["--limit", "login=1"])
        let silent = try await diagnoses(
            second,
            [
                { socket in
                    try await socket.write(
                        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='x' "
                            + "version='1.0'>"
                    )
                    try await socket.read()
                }
            ]
        )
        // The server may expect TLS, so it is not known to be at fault.
        #expect(causes(silent) == ["stream-open server-silent network"])
    }
}
