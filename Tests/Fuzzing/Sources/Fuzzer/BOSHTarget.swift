import TapCore
import TapRecord
import XMPPCore

/// Bodies of BOSH, and sessions of them.
///
/// An input is a byte of options. If it is even, the bytes of a body follow: its elements must be those that libxml2 reads,
/// and each must be a whole message. If it is odd, events of a session follow: for each its kind, the rid, and a
/// body from ``bodies``. Each request must be decoded at most once, and the records must be sound.
enum BOSHTarget {
    // libFuzzer runs one input at a time.
    private nonisolated(unsafe) static let parser = StanzaParser()
    private static let limit = 1 << 20

    static func run(_ input: [UInt8]) -> String? {
        guard let mode = input.first else { return nil }
        return mode & 1 == 0 ? read(Array(input.dropFirst())) : converse(Script(Array(input.dropFirst())), mode)
    }

    // MARK: Bodies

    private static func read(_ bytes: [UInt8]) -> String? {
        guard let body = try? BOSHBody(bytes.span, limit: limit, parser) else { return nil }
        for item in body.items {
            var decoder = StreamDecoder(framing: .messagesInside, limits: .authenticated)
            decoder.append(message: item.span, endsMessage: true)
            guard let event = decoder.next(), case .item = event.kind else {
                return "the element is no message: \(String(decoding: item, as: UTF8.self))"
            }
            guard (try? parser.parse(decoder)) != nil else {
                return "libxml2 refuses the element: \(String(decoding: item, as: UTF8.self))"
            }
        }
        guard let whole = try? parser.parse(StreamDecoder.element(ofMessage: bytes.span), root: []) else {
            return "libxml2 refuses the body"
        }
        let names = whole.children.map(\.name).filter { body.condition != "see-other-uri" || $0 != "uri" }
        let read = body.items.map { (try? parser.parse($0.span, root: []))?.name ?? "" }
            .filter { body.condition != "see-other-uri" || $0 != "uri" }
        return names == read ? nil : "libxml2 reads \(names), not \(read)"
    }

    // MARK: Sessions

    private static let wrapper = "<body xmlns='http://jabber.org/protocol/httpbind' xmlns:xmpp='urn:xmpp:xbosh'"
    private static let streams = " xmlns:stream='http://etherx.jabber.org/streams'"
    private static let sasl = "xmlns='urn:ietf:params:xml:ns:xmpp-sasl'"

    static let bodies: [[UInt8]] = [
        "\(wrapper)/>", "\(wrapper) to='a.example' xmpp:version='1.0' hold='1' wait='60'/>",
        "\(wrapper)\(streams) sid='s' from='a.example' requests='2' inactivity='30' xmpp:version='1.0'><stream:features>"
            + "<mechanisms \(sasl)><mechanism>PLAIN</mechanism></mechanisms></stream:features></body>",
        "\(wrapper)><auth \(sasl) mechanism='PLAIN'>AGp1bGlldABwYXNz</auth></body>",
        "\(wrapper)><success \(sasl)/></body>", "\(wrapper) to='a.example' xmpp:restart='true'/>",
        "\(wrapper)\(streams)><stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features></body>",
        "\(wrapper)><iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq></body>",
        "\(wrapper)><iq type='result' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><jid>j@a.example/x</jid></bind></iq></body>",
        "\(wrapper)><presence/><message to='r@a.example'><body>hi</body></message></body>",
        "\(wrapper)><enable xmlns='urn:xmpp:sm:3'/><r xmlns='urn:xmpp:sm:3'/></body>",
        "\(wrapper)><enabled xmlns='urn:xmpp:sm:3' id='x' resume='true'/><a xmlns='urn:xmpp:sm:3' h='1'/></body>",
        "\(wrapper) pause='60'/>", "\(wrapper) type='terminate'><presence type='unavailable'/></body>",
        "\(wrapper) type='terminate' condition='item-not-found'/>", "\(wrapper) type='error' condition='x'/>",
        "\(wrapper)\(streams) type='terminate' condition='remote-stream-error'><stream:error>"
            + "<conflict xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></body>",
        "\(wrapper) type='terminate' condition='see-other-uri'><uri>https://b.example/?x</uri></body>",
    ].map { Array($0.utf8) }

    private static func converse(_ input: Script, _ mode: UInt8) -> String? {
        var script = input
        var now = Run.Instant(time: Timestamp(nanoseconds: 1_700_000_000_000_000_000), monotonic: 0)
        let options = SessionOptions(level: mode & 2 == 0 ? .trace : .verbose).observingBOSH
        var runner = SourceRunner(run: Run(), options: options)
        var source = BOSHSource(session: 1, rid: 8, isJoined: mode & 4 != 0, at: now)
        var check = RecordCheck()
        var contradiction: String?
        var ids: Set<String> = []
        var number = 0
        func take(_ line: consuming RecordLine) {
            let line = line
            contradiction = contradiction ?? check.contradiction(line)
            guard line.record.direction == .send, line.record.kind == .stanza, let range = line.record.id else {
                return
            }
            let id = line.content.span.slice(range).string()
            if id.utf8.first == 0x6E, !ids.insert(id).inserted { contradiction = "decoded twice: \(id)" }
        }
        runner.process(.began(session: 1, at: now)) { take($0) }
        while !script.isOver, contradiction == nil {
            let kind = script.byte()
            let rid = kind & 0x80 == 0 ? UInt64(script.byte() & 0x0F) : BOSHBody.maximumRID &- UInt64(script.byte())
            let choice = Int(script.byte())
            let bytes = bodies[choice % bodies.count]
            var body = (try? BOSHBody(bytes.span, limit: limit, parser)) ?? BOSHBody()
            now = now.advanced(by: Int64(choice) * 100_000_000)
            switch kind & 0x07 {
            case 0, 1:
                number += 1
                if choice & 0x20 != 0 {
                    body.items.append(Array("<message xmlns='jabber:client' id='n\(number)'/>".utf8))
                }
                source.request(rid, body, at: now)
            case 2, 3: source.response(to: rid, .body(body), at: now)
            case 4: source.response(to: rid, .status(choice % 2 == 0 ? 404 : 502), at: now)
            case 5:
                source.response(to: rid, choice % 2 == 0 ? .compressed : .unread(code: "x", explanation: "x"), at: now)
            case 6: source.lost(rid, at: now)
            default: if choice == 0xFF { source.stop(at: now) } else { source.tick(at: now) }
            }
            runner.process(&source) { take($0) }
        }
        source.stop(at: now)
        runner.process(&source) { take($0) }
        return contradiction ?? (source.isOver ? nil : "the session did not end")
    }

    static var seeds: [[UInt8]] {
        let login: [UInt8] = [
            0, 8, 1, 2, 8, 2, 0, 9, 3, 2, 9, 4, 0, 10, 5, 2, 10, 6, 0, 11, 7, 2, 11, 8, 0, 12, 9, 0, 13, 13, 2, 12, 0,
            2, 13, 13,
        ]
        let disorder: [UInt8] = [
            0, 8, 1, 2, 8, 2, 0, 10, 0x20, 0, 9, 0x20, 2, 10, 9, 0, 9, 0, 2, 9, 9, 0x80, 0, 0, 0x82, 0, 14, 7, 0, 250,
        ]
        return bodies.map { [0] + $0 } + [[1] + login, [3] + login, [5] + login, [1] + disorder]
    }
}
