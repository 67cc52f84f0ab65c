import Foundation
import TapTestKit
import Testing

/// Plays sessions between a scripted client and a scripted server through the built proxy, and checks the diagnosis of
/// each failed login.
enum WhyScripted {
    /// A session.
    struct Case: Sendable {
        /// The turns after the client's first data; the server sends the first one.
        let said: [String]
        /// The peer that disconnects after the turns: `client` or `server`.
        let leaver: String
        /// The expected step, cause and side, separated by spaces.
        let diagnosis: String
        let rule: String
        /// A part of the expected message.
        let words: String
        /// The client's first data.
        let opening: String

        init(
            _ said: [String],
            _ leaver: String,
            _ diagnosis: String,
            _ rule: String,
            _ words: String,
            opening: String = WhyScripted.header
        ) {
            self.said = said
            self.leaver = leaver
            self.diagnosis = diagnosis
            self.rule = rule
            self.words = words
            self.opening = opening
        }
    }

    static let header =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>"
    static let answer =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' from='localhost' id='1' version='1.0'>"
    static let sasl = "xmlns='urn:ietf:params:xml:ns:xmpp-sasl'"

    static func features(_ mechanisms: [String]) -> String {
        "<stream:features><mechanisms \(sasl)>" + mechanisms.map { "<mechanism>\($0)</mechanism>" }.joined()
            + "</mechanisms></stream:features>"
    }

    static func error(_ condition: String, _ content: String = "", text: String? = nil) -> String {
        let namespace = "xmlns='urn:ietf:params:xml:ns:xmpp-streams'"
        return "<stream:error><\(condition) \(namespace)>\(content)</\(condition)>"
            + (text.map { "<text \(namespace)>\($0)</text>" } ?? "") + "</stream:error></stream:stream>"
    }

    static func auth(_ mechanism: String, _ message: String) -> String {
        "<auth \(sasl) mechanism='\(mechanism)'>\(Data(message.utf8).base64EncodedString())</auth>"
    }

    static func say(_ name: String, _ message: String) -> String {
        "<\(name) \(sasl)>\(Data(message.utf8).base64EncodedString())</\(name)>"
    }

    static func failure(_ condition: String) -> String { "<failure \(sasl)><\(condition)/></failure>" }

    static let first = "n=juliet,r=fyko+d2lbbFgONRv9qkxdawL"
    static let challenge =
        "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096"
    static let final =
        "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts="

    /// Plays the sessions one after the other through a new proxy, and checks the diagnosis of each.
    static func judge(_ cases: [Case], arguments: [String] = []) async throws {
        let listener = try RawListener()
        let tap = try await Tap(upstream: listener.port, arguments: arguments)
        for one in cases { try await play(one, tap, listener) }
        try await tap.stop()
        let records = try tap.records()
        for (index, one) in cases.enumerated() {
            let diagnoses = records.filter { $0.session == UInt64(index + 1) && $0.code == "login-failed" }
            try #require(diagnoses.count == 1, "\(one.diagnosis): \(diagnoses.count)")
            let details = try #require(diagnoses[0].details)
            #expect("\(details.step ?? "") \(details.cause ?? "") \(details.side ?? "")" == one.diagnosis)
            #expect(
                details.rule == one.rule && details.proxyIsCause == false,
                "\(one.diagnosis): \(details.rule ?? "")"
            )
            #expect(diagnoses[0].message?.contains(one.words) == true, "\(diagnoses[0].message ?? "")")
            let explained = try await XMPPTapBinary.run(["explain", tap.json, "--session", "\(index + 1)"])
            #expect(explained.ending == .exited(1) && explained.output.contains(one.words), "\(explained.output)")
        }
        let log = Tap.read(tap.json) + Tap.read(tap.text)
        #expect(!log.contains("R0m30myr0m30") && !log.contains("v0X8v3Bz2T0CJGbJQyF0X"))
    }

    private static func play(_ one: Case, _ tap: Tap, _ listener: RawListener) async throws {
        let client = try RawConnection(port: tap.port)
        try await client.write(one.opening)
        var server = try await listener.accept()
        // The proxy's first connection only checks whether the server accepts connections.
        if try await server.read(until: { $0.count >= one.opening.utf8.count }).end != .enough {
            server = try await listener.accept()
            try await server.read(through: one.opening)
        }
        for (index, text) in one.said.enumerated() {
            let (from, to) = index.isMultiple(of: 2) ? (server, client) : (client, server)
            try await from.write(text)
            try await to.read(through: text)
        }
        (one.leaver == "server" ? server : client).finish()
        _ = try await (one.leaver == "server" ? client : server).read { _ in false }
        client.close()
        server.close()
    }
}
