internal import TapRecord
internal import XMPPCore

/// What a peer sends whose own session was not recorded: what the recorded clients have got from it.
struct PuppetScript {
    /// One connection for each of its full JIDs.
    private(set) var jids: [JID] = []
    /// What is sent, by which of ``jids``, just before the item of that number came.
    private(set) var sends: [(jid: Int, run: Int, item: RecordedItem)] = []

    /// How often each content of a presence was broadcast, and how often each recipient has got it.
    private var broadcasts: [String: (sent: Int, got: [Int: Int])] = [:]
    private let parser = StanzaParser()

    /// - Parameters:
    ///   - peer: The peer's bare JID.
    ///   - conversations: The recorded sessions of others.
    init(_ peer: JID, in conversations: [RecordedConversation]) {
        var all: [(conversation: Int, item: RecordedItem)] = []
        for (index, conversation) in conversations.enumerated() {
            for item in conversation.items where item.direction == .recv && item.origin == .peer {
                guard let from = item.from.flatMap({ JID($0) }), from.bare == peer.bare else { continue }
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

    /// Whether one of its connections shows presence by what it sends.
    func hasPresence(_ jid: Int) -> Bool {
        sends.contains { $0.jid == jid && $0.item.kind == .presence && $0.item.type == nil }
    }

    /// The item as the peer sent it, without what servers add; nil if it was sent already, to all at once.
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
