internal import TapRecord
internal import XMPPCore

/// The stanzas that an unrecorded peer sends, derived from those that the recorded clients received from it.
struct PuppetScript {
    /// The full JIDs of the peer, or its bare JID if no full JID was recorded. The replay opens a connection for each.
    private(set) var jids: [JID] = []
    /// The stanzas in order, each with the index of its sender in ``jids`` and the run in which its recipient received
    /// it.
    private(set) var sends: [(jid: Int, run: Int, item: RecordedItem)] = []

    /// For each sender and content of presence, the number of broadcasts, and the number of copies that each
    /// recipient received.
    private var broadcasts: [String: (sent: Int, got: [Int: Int])] = [:]
    private let parser = StanzaParser()

    /// Creates the script of a peer.
    ///
    /// - Parameters:
    ///   - peer: The peer's bare JID.
    ///   - conversations: The recorded sessions of other users.
    init(_ peer: JID, in conversations: [RecordedConversation]) {
        var all: [(conversation: Int, item: RecordedItem)] = []
        for (index, conversation) in conversations.enumerated() {
            for item in conversation.items where item.direction == .recv && item.origin == .peer {
                guard let from = item.from.flatMap({ JID($0) }), from.bare == peer.bare, !Self.isOfServer(item, from)
                else { continue }
                if from.isFull, !jids.contains(from) { jids.append(from) }
                all.append((index, item))
            }
        }
        guard !all.isEmpty else { return }
        if jids.isEmpty { jids = [peer.bare] }
        all.sort {
            (conversations[$0.conversation].run, $0.item.sequence) < (
                conversations[$1.conversation].run, $1.item.sequence
            )
        }
        for (conversation, item) in all {
            let place = item.from.flatMap { JID($0) }.flatMap { jids.firstIndex(of: $0) } ?? 0
            guard let send = made(item, conversation, place) else { continue }
            sends.append((place, conversations[conversation].run, send))
        }
    }

    /// Returns whether the peer's server sent an item on behalf of the peer: a request, an error, or unavailable
    /// presence for a client that is offline (RFC 6121 §4.3.2.1).
    private static func isOfServer(_ item: RecordedItem, _ from: JID) -> Bool {
        !from.isFull && (item.kind == .iq || item.type == "error" || item.type == "unavailable")
    }

    /// Returns whether the connection with an index in ``jids`` sends available presence.
    func hasPresence(_ jid: Int) -> Bool {
        sends.contains { $0.jid == jid && $0.item.kind == .presence && $0.item.type == nil }
    }

    /// Returns an item as the peer sent it, without the elements that servers added. Returns nil if it is another
    /// recipient's copy of an earlier broadcast, or if it cannot be parsed.
    private mutating func made(_ item: RecordedItem, _ recipient: Int, _ place: Int) -> RecordedItem? {
        guard let bytes = item.sent, let element = try? parser.parse(bytes.span, root: item.root) else { return nil }
        let isBroadcast = item.kind == .presence && (item.type == nil || item.type == "unavailable")
        var xml = XMLWriter()
        let client = Namespace.client.uri.description
        if isBroadcast {
            xml.start(element, inheriting: client, setting: ["from": nil, "to": nil])
        } else {
            xml.start(element, inheriting: client, setting: ["from": nil])
        }
        for content in element.contents {
            switch content {
            case .element(let child):
                guard child.namespace != .stanzaID || child.isNamed("origin-id"), child.namespace != .delay else {
                    continue
                }
                xml.element(child, inheriting: client)
            case .text(let text): xml.text(text)
            }
        }
        xml.end()
        let made = xml.take()
        if isBroadcast {
            let key = "\(place) " + String(decoding: made, as: UTF8.self)
            var counts = broadcasts[key] ?? (0, [:])
            let got = counts.got[recipient, default: 0] + 1
            counts.got[recipient] = got
            let isNew = got > counts.sent
            if isNew { counts.sent = got }
            broadcasts[key] = counts
            guard isNew else { return nil }
        }
        var send = item
        send.direction = .send
        send.sent = made
        send.seen = made
        send.root = StanzaForm.clientDeclarations
        send.from = nil
        return send
    }
}
