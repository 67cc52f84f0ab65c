internal import TapRecord

/// Evidence about the sender of an item, taken from the item's content and not from the words in the log.
///
/// RFC 6120 and its extensions assign most items of a login to one side: a client requests, a server offers and
/// answers.
struct LogEvidence {
    /// The function of an item in a session, by which items are grouped into sessions.
    enum Role: Hashable {
        /// A request to authenticate if `isLogin` is true, or else a request for TLS or compression.
        case request(isLogin: Bool)
        case opening, features, answer, challenge, response, success, failure, end, other
        /// An iq request or an iq answer, with its id.
        case query(id: [UInt8]), reply(id: [UInt8])
    }

    /// Whether no peer sends an item of this role twice in a row with the same content.
    var isUnrepeatable: Bool {
        switch role {
        case .opening, .features, .success, .failure, .request, .answer: true
        default: false
        }
    }

    /// The direction of the item; nil if both sides may send it.
    private(set) var direction: Direction?
    /// Whether the direction is only usual, and not required by a specification.
    private(set) var isWeak = false
    private(set) var role = Role.other
    /// The bare JID to which a stanza is addressed; if the server sends the stanza, this is the client's account.
    private(set) var recipient: [UInt8]?
    /// The domain of the server in a stream header.
    private var domain: [UInt8]?
    /// The bare JID to which a stanza is addressed, or the domain of a stream header.
    var address: [UInt8]? { recipient ?? domain }

    private static let tls = "urn:ietf:params:xml:ns:xmpp-tls"
    private static let binding = "urn:ietf:params:xml:ns:xmpp-bind"

    init(_ item: ArraySlice<UInt8>) {
        let tag = LogTag(item)
        if tag.isStreamHeader {
            readHeader(tag)
            return
        }
        if tag.isStreamEnd {
            role = .end
            return
        }
        switch String(decoding: tag.local, as: UTF8.self) {
        case "features": set(.recv, .features)
        case "starttls", "compress": set(.send, .request(isLogin: false))
        case "auth", "authenticate": set(.send, .request(isLogin: true))
        case "response", "abort": set(.send, .response)
        case "proceed", "compressed": set(.recv, .answer)
        case "challenge", "continue": set(.recv, .challenge)
        case "success": set(.recv, .success)
        case "failure": set(.recv, .failure)
        case "enable", "resume": set(.send, .other)
        case "enabled", "resumed", "failed": set(.recv, .other)
        case "error" where tag.name.count > tag.local.count: set(.recv, .other, isWeak: true)
        case "open":
            readHeader(tag)
        case "body": readBody(tag, item)
        case "iq": readIQ(tag)
        case "message", "presence": readStanza(tag)
        default: break
        }
    }

    private mutating func set(_ direction: Direction, _ role: Role, isWeak: Bool = false) {
        self.direction = direction
        self.role = role
        self.isWeak = isWeak
    }

    /// Reads a stream header. A client names the server in `to`; a server names itself in `from` and the stream in `id`
    /// (RFC 6120 §4.7).
    private mutating func readHeader(_ tag: LogTag) {
        role = .opening
        defer { domain = (direction == .recv ? tag["from"] : tag["to"]).map { Array($0) } }
        switch (tag.has("to"), tag.has("from"), tag.has("id")) {
        case (true, _, false): direction = .send
        case (false, true, _), (false, _, true): direction = .recv
        // Some clients repeat the id of the server's header in a later header.
        case (true, _, true):
            direction = tag["to"]?.contains(0x40) == true ? .recv : .send
            isWeak = true
        case (false, false, false): break
        }
    }

    /// Reads a `<body/>` of BOSH: each request has an `rid`, no response has one (XEP-0124 §7).
    private mutating func readBody(_ tag: LogTag, _ item: ArraySlice<UInt8>) {
        guard tag["xmlns"]?.elementsEqual("http://jabber.org/protocol/httpbind".utf8) == true else { return }
        let content = tag.isEmpty ? [] : tag.content
        let inner = content.isEmpty ? nil : LogEvidence(content)
        direction = tag.has("rid") ? .send : .recv
        role = inner?.role ?? .other
        if tag.has("rid"), tag.has("to"), !tag.has("sid") { role = .opening }
    }

    private mutating func readIQ(_ tag: LogTag) {
        let type = tag["type"].map { String(decoding: $0, as: UTF8.self) }
        let id = Array(tag["id"] ?? [])
        let asks = type == "get" || type == "set"
        role = asks ? .query(id: id) : .reply(id: id)
        let payload = tag.isEmpty ? nil : LogTag(tag.content)
        let namespace = payload?["xmlns"].map { String(decoding: $0, as: UTF8.self) }
        if namespace == Self.binding || namespace == "urn:ietf:params:xml:ns:xmpp-session" {
            direction = asks ? .send : .recv
        } else if namespace == "jabber:iq:auth" || namespace == "jabber:iq:register"
            || namespace == "jabber:iq:roster" && type != "set"
        {
            direction = asks ? .send : .recv
            isWeak = namespace == "jabber:iq:roster"
        } else {
            readStanza(tag, isAnswer: !asks)
        }
    }

    /// Reads a stanza. A client usually leaves out `from`; a server always delivers a stanza with `from` (RFC 6120
    /// §8.1).
    private mutating func readStanza(_ tag: LogTag, isAnswer: Bool = false) {
        isWeak = true
        let to = tag["to"]
        let isAccount = to?.contains(0x40) ?? false
        recipient = isAccount ? to.map { Array($0.prefix { $0 != 0x2F }) } : nil
        let isFull = isAccount && to?.contains(0x2F) ?? false
        switch (tag.has("from"), to != nil) {
        case (true, _): direction = .recv
        case (false, true): direction = isAnswer && isFull ? nil : .send
        case (false, false): direction = isAnswer ? nil : .send
        }
    }
}
