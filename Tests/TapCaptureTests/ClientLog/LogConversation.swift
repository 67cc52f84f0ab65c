import Foundation
import TapRecord
import TapTestKit

@testable import TapCapture

/// Conversations of a client and a server, for logs of any layout.
enum LogConversation {
    struct Item {
        var isSent: Bool
        var xml: String
    }

    static let header =
        "<stream:stream to='example.org' xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>"
    static let answer =
        "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' id='a1b2' from='example.org' version='1.0' xml:lang='en'>"
    private static let mechanisms =
        "<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>SCRAM-SHA-1</mechanism><mechanism>PLAIN</mechanism></mechanisms></stream:features>"

    private static func auth(_ user: String) -> Item {
        let message = Data("\u{0}\(user)\u{0}R0m30myr0m30".utf8).base64EncodedString()
        return Item(
            isSent: true,
            xml: "<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>\(message)</auth>"
        )
    }

    private static func sent(_ xml: String) -> Item { Item(isSent: true, xml: xml) }
    private static func received(_ xml: String) -> Item { Item(isSent: false, xml: xml) }

    /// A login that the server refuses.
    static func refused(_ user: String = "juliet") -> [Item] {
        [
            sent(header), received(answer), received(mechanisms), auth(user),
            received("<failure xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><not-authorized/></failure>"),
            sent("</stream:stream>"), received("</stream:stream>"),
        ]
    }

    /// A successful login with a few stanzas.
    static func ready(_ user: String = "romeo") -> [Item] {
        [
            sent(header), received(answer), received(mechanisms), auth(user),
            received("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>"), sent(header), received(answer),
            received(
                "<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/><sm xmlns='urn:xmpp:sm:3'/></stream:features>"
            ),
            sent(
                "<iq type='set' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>x</resource></bind></iq>"
            ),
            received(
                "<iq type='result' id='b1'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>\(user)@example.org/x</jid></bind></iq>"
            ),
            sent("<presence/>"),
            received(
                "<message from='nurse@example.org/y' to='\(user)@example.org/x'><body>Peter &amp; \"fan\"</body></message>"
            ),
            sent("<message to='nurse@example.org'><body>It's \\ late</body></message>"),
        ]
    }

    /// Two conversations of one log, in turns.
    static func interleaved(_ one: [Item], _ other: [Item]) -> [(session: Int, item: Item)] {
        var merged: [(session: Int, item: Item)] = []
        for index in 0..<max(one.count, other.count) {
            if index < one.count { merged.append((0, one[index])) }
            if index < other.count { merged.append((1, other[index])) }
        }
        return merged
    }

    /// Returns the outcome of each session of a log: `ready JID`, a cause, or `open`.
    static func outcomes(_ text: String) throws -> [String] { try outcomes(bytes: Array(text.utf8)) }

    static func outcomes(bytes: [UInt8]) throws -> [String] {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "x.log")
        try Data(bytes).write(to: URL(filePath: path))
        return try outcomes(path: path)
    }

    static func outcomes(path: String) throws -> [String] {
        let reader = try RecordReader([path])
        var sessions: [UInt64: String] = [:]
        var users: [UInt64: String] = [:]
        while let entry = try reader.next() {
            guard case .record(let line) = entry else { continue }
            let record = line.record
            if record.code == Record.Code.sessionBegan { sessions[record.session] = "open" }
            if let user = record.details?["user"]?.text { users[record.session] = user }
            if record.code == Record.Code.sessionReady { sessions[record.session] = "ready \(record.jid ?? "")" }
            if record.code == Record.Code.loginFailed {
                sessions[record.session] = record.details?[Record.Detail.cause]?.text ?? ""
            }
            if record.code == "unreadable-item" {
                sessions[0, default: ""] += "\(record.message.map { "\($0)" } ?? "")\n"
            }
        }
        return sessions.keys.sorted().compactMap { sessions[$0] }
    }
}
