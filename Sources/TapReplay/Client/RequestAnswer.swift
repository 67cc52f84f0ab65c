internal import XMPPCore

extension Element {
    /// Returns the answer to this iq request, with its id, addressed to its sender (RFC 6120 §8.2.3).
    ///
    /// - Parameters:
    ///   - type: `result` or `error`.
    ///   - content: Writes the child elements.
    func answer(_ type: String, _ content: (inout XMLWriter) -> Void) -> [UInt8] {
        XMLWriter.bytes {
            $0.element("iq", ["type": type, "id": attribute("id"), "to": attribute("from")], content: content)
        }
    }

    /// The answer of a client that does not support this request: an empty result for a roster push (RFC 6121 §2.1.6)
    /// and for a ping (XEP-0199 §4.1), otherwise an error (RFC 6120 §8.2.3).
    var leastAnswer: [UInt8] {
        let isPush = attribute("type") == "set" && child("query", .roster) != nil
        if isPush || child("ping", .ping) != nil { return answer("result") { _ in } }
        return answer("error") {
            $0.element("error", ["type": "cancel"]) { $0.element("service-unavailable", .stanzaErrors) }
        }
    }
}

extension RecordedItem {
    /// Returns the bytes of this answer with another id; unchanged if they cannot be parsed.
    func answer(_ bytes: ArraySlice<UInt8>, _ id: String, _ parser: StanzaParser) -> [UInt8] {
        guard let element = StanzaForm(Array(bytes), parser: parser, root: root)?.element else { return Array(bytes) }
        return XMLWriter.bytes {
            $0.element(element, inheriting: Namespace.client.uri.description, setting: ["id": id])
        }
    }
}

/// The requests that recorded clients received, with the answers that they sent, by indices of items.
struct RecordedAnswers: Sendable {
    /// The answer to each request.
    private(set) var answers: [Int: Int] = [:]
    /// The request that each answer belongs to.
    private(set) var requests: [Int: Int] = [:]
    /// The client that received each answered request.
    private(set) var clients: [Int: Int] = [:]

    /// - Parameters:
    ///   - steps: The steps of the script, which name items by index.
    init(_ steps: [ReplayScript.Step], _ items: [RecordedItem]) {
        struct Key: Hashable {
            let client: Int
            let id: String
        }
        /// Unanswered requests by client and id. There may be several for one id, because some servers reuse ids.
        var open: [Key: [Int]] = [:]
        for step in steps {
            switch step {
            case .expect(let client, let item) where items[item].kind == .iq && !items[item].isAnswer:
                if let id = items[item].id { open[Key(client: client, id: id), default: []].append(item) }
            case .send(let client, let item) where items[item].isAnswer:
                guard let key = items[item].id.map({ Key(client: client, id: $0) }), let request = open[key]?.first
                else { continue }
                open[key]?.removeFirst()
                answers[request] = item
                requests[item] = request
                clients[request] = client
            default: continue
            }
        }
    }
}
