import TapRecord
import TapTestKit
import Testing

@testable import TapCapture

/// Clients that connect again within one log, and logs that show one side only.
struct LogReconnectTests {
    private static func sent(_ xml: String) -> LogConversation.Item { .init(isSent: true, xml: xml) }
    private static func received(_ xml: String) -> LogConversation.Item { .init(isSent: false, xml: xml) }

    /// A connection that is lost in the TLS handshake, such as that of a client which refuses the certificate.
    private static let lostInTLS: [LogConversation.Item] = [
        sent(LogConversation.header), received(LogConversation.answer),
        received("<stream:features><starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/></stream:features>"),
        sent("<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
        received("<proceed xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
    ]

    /// A log of several connections, with a line of the program between them.
    private static func outcomes(
        _ layout: LogLayoutTests.Layout,
        _ connections: [[LogConversation.Item]]
    ) throws -> [String] {
        let log = connections.enumerated().map { index, items in
            items.enumerated().map { layout.line($1, index * 20 + $0, 0) }.joined()
        }
        return try LogConversation.outcomes(layout.before + log.joined(separator: "reconnecting\n"))
    }

    @Test(arguments: LogLayoutTests.layouts)
    func `A client that reconnects begins a new session`(layout: LogLayoutTests.Layout) throws {
        let (ready, refused) = (LogConversation.ready(), LogConversation.refused())
        let bound = "ready romeo@example.org/x"
        #expect(try Self.outcomes(layout, [Array(refused.dropLast(2)), ready]) == ["not-authorized", bound])
        #expect(try Self.outcomes(layout, [ready, ready]) == [bound, bound])
        #expect(try Self.outcomes(layout, [ready, refused]) == [bound, "not-authorized"])
        #expect(try Self.outcomes(layout, [Array(ready.prefix(5)), ready]) == ["open", bound])
        #expect(try Self.outcomes(layout, [Self.lostInTLS, Self.lostInTLS]) == ["open", "open"])
        #expect(try Self.outcomes(layout, [Self.lostInTLS, Self.lostInTLS + ready]) == ["open", bound])
    }

    @Test(arguments: LogLayoutTests.layouts)
    func `Connection attempts without an answer have no diagnosis`(layout: LogLayoutTests.Layout) throws {
        let header = Array(LogConversation.ready().prefix(1))
        let outcomes = try Self.outcomes(layout, [header, header, LogConversation.ready()])
        #expect(outcomes.last == "ready romeo@example.org/x", "\(outcomes)")
        #expect(outcomes.dropLast().allSatisfy { $0 == "open" }, "\(outcomes)")
    }

    @Test(arguments: LogLayoutTests.layouts)
    func `Logins in a log without stream headers become sessions in order`(layout: LogLayoutTests.Layout) throws {
        let headers = [LogConversation.header, LogConversation.answer]
        let ready = LogConversation.ready().filter { !headers.contains($0.xml) }
        let refused = LogConversation.refused().filter { !headers.contains($0.xml) }
        let bound = "ready romeo@example.org/x"
        #expect(try Self.outcomes(layout, [ready, ready]) == [bound, bound])
        #expect(try Self.outcomes(layout, [ready, refused]) == [bound, "not-authorized"])
    }

    @Test(arguments: LogLayoutTests.layouts)
    func `Features that the server offers again do not end a session`(layout: LogLayoutTests.Layout) throws {
        var items = LogConversation.ready()
        let offer = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
        let mechanisms = items[2].xml.replacing("<stream:features>", with: "").replacing("</stream:features>", with: "")
        items[7].xml = items[7].xml.replacing("<stream:features>", with: "<stream:features>\(offer)\(mechanisms)")
        #expect(try Self.outcomes(layout, [items]) == ["ready romeo@example.org/x"])
        #expect(try Self.outcomes(layout, [Array(items.prefix(8))]).allSatisfy { $0 == "open" })
    }

    @Test func `Overlapping sessions reconnect independently`() throws {
        let layout = LogLayoutTests.concurrent[0]
        let lost = Array(LogConversation.ready().prefix(5))
        let merged = LogConversation.interleaved(lost + LogConversation.ready(), Self.lostInTLS + Self.lostInTLS)
        let log = merged.enumerated().map { layout.line($1.item, $0, $1.session) }.joined()
        #expect(
            try LogConversation.outcomes(log).sorted() == ["open", "open", "open", "ready romeo@example.org/x"]
        )
    }

    @Test func `Concurrent logins of two accounts are not mistaken for echoes`() throws {
        let ready = LogConversation.ready().filter { !$0.xml.hasPrefix("<auth") }
        let merged = LogConversation.interleaved(ready, ready)
        let log = merged.map { session, item in
            let name = ["verona", "mantua"][session]
            let xml = item.xml.replacing("id='a1b2'", with: "id='\(name)'").replacing("romeo@", with: "\(name)@")
            return "10:12:01 (\(name)) \(item.isSent ? "SENT" : "RECEIVED") \(xml)\n"
        }
        let outcomes = try LogConversation.outcomes(log.joined())
        #expect(
            ["open", "ready verona@example.org/x, ready mantua@example.org/x"].contains(
                outcomes.joined(separator: ", ")
            )
        )
    }

    // MARK: One side

    /// The warnings about a log as a whole.
    private static func remarks(_ log: String) throws -> [String] {
        let folder = try TemporaryFolder()
        let reader = try RecordReader([try folder.write(log, to: "x.log")])
        var remarks: [String] = []
        while let entry = try reader.next() {
            guard case .record(let line) = entry, line.record.code == Record.Code.logUnderstoodInPart else { continue }
            remarks.append(line.record.message.map { "\($0)" } ?? "")
        }
        return remarks
    }

    @Test(arguments: LogLayoutTests.layouts)
    func `A log of one side has no diagnosis about the other side`(layout: LogLayoutTests.Layout) throws {
        for (items, expected) in [
            (LogConversation.ready().filter(\.isSent), "open"), (LogConversation.refused().filter(\.isSent), "open"),
            (LogConversation.refused().filter { !$0.isSent }, "not-authorized"),
            (LogConversation.refused().prefix(3).filter { !$0.isSent }, "open"),
            (LogConversation.refused().prefix(3).filter { !$0.isSent } + [Self.received("</stream:stream>")], "open"),
        ] {
            let log = layout.log(items)
            let outcomes = try LogConversation.outcomes(log)
            #expect(outcomes.allSatisfy { $0 == expected }, "\(outcomes) \(log)")
            let silent = items[0].isSent ? "server" : "client"
            #expect(try Self.remarks(log).first?.hasSuffix("no verdict on the \(silent)'s side") == true, "\(log)")
        }
        #expect(try Self.remarks(layout.log(LogConversation.refused())).isEmpty)
    }
}
