import TapRecord
import TapTestKit
import Testing

@testable import TapReplay

/// Generated conversations: different serialisations of one meaning are equal, and a change of meaning is found.
@Suite struct MeaningPropertyTests {
    @Test(arguments: 0..<60)
    func `a conversation in another notation has the same meaning`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let conversation = Conversation(using: &generator)
        let recorded = conversation.written(using: &generator)
        let live = conversation.shuffled(using: &generator).written(using: &generator)
        let divergences = try recorded.divergences(from: live)
        #expect(divergences.isEmpty, "\(divergences.first.map { "\($0)" } ?? "")")
    }

    @Test(arguments: 0..<150)
    func `a change is found at its place`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: 1000 + seed)
        let conversation = Conversation(using: &generator)
        var changed = conversation
        let number = Int.random(in: 0..<changed.turns.count, using: &generator)
        let path = changed.turns[number].node.change("", using: &generator)
        let recorded = conversation.written(using: &generator)
        let live = changed.shuffled(using: &generator).written(using: &generator)
        let divergences = try recorded.divergences(from: live)
        // A server may omit these elements, or name the sender instead of itself.
        let optional = [
            "presence/{urn:xmpp:delay}delay", "presence/{urn:xmpp:delay}delay/@from",
            "message/{urn:xmpp:sid:0}stanza-id",
        ]
        if optional.contains(path) {
            #expect(!divergences.contains { $0.divergenceClass != .optional }, "\(divergences)")
            return
        }
        // Presence of another sender is a different stanza.
        guard path != "presence/@from" else {
            #expect(divergences.map(\.code).sorted { $0.rawValue < $1.rawValue } == [.missing, .unexpected])
            return
        }
        let places = divergences.flatMap(\.differences).map { NoiseLearner.withoutNumbers($0.path) }
        // A feature or identity with another name is a different child.
        let isOfSet = path.contains("disco#info}query/")
        let place = isOfSet ? path.split(separator: "/@").first.map(String.init) ?? path : path
        #expect(places.contains(path) || places.contains(place), "planted at \(path), found \(divergences)")
        // A change may turn an item into a different one, which is reported as two divergences.
        #expect(divergences.count <= 2, "\(divergences)")
    }

    @Test(arguments: 0..<40)
    func `a missing item is found`(seed: UInt64) throws {
        var generator = SeededGenerator(seed: 5000 + seed)
        let conversation = Conversation(using: &generator)
        var changed = conversation
        let number = Int.random(in: 0..<changed.turns.count, using: &generator)
        changed.turns.remove(at: number)
        let recorded = conversation.written(using: &generator)
        let live = changed.shuffled(using: &generator).written(using: &generator)
        #expect(try !recorded.divergences(from: live).isEmpty)
        #expect(try !live.divergences(from: recorded).isEmpty)
    }
}

/// An element with placeholders: `{id 3}` is an id that each serialisation generates.
private struct Node {
    var name: String
    var namespace: String?
    var attributes: [(name: String, value: String)] = []
    var children: [Node] = []
    var text: String?

    /// Changes one random part.
    ///
    /// - Returns: The path of the change.
    mutating func change(_ outer: String, using generator: inout SeededGenerator) -> String {
        let path = (outer.isEmpty ? "" : outer + "/") + (namespace.map { "{\($0)}" } ?? "") + name
        let literal = attributes.indices.filter { !attributes[$0].value.contains("{") }
        var choices: [Int] = [0]
        if !literal.isEmpty { choices += [1, 2] }
        if text != nil { choices.append(3) }
        if !children.isEmpty { choices += [4, 4, 4, 5] }
        switch choices.randomElement(using: &generator) ?? 0 {
        case 1:
            let index = literal.randomElement(using: &generator) ?? 0
            attributes[index].value += "changed"
            return "\(path)/@\(attributes[index].name)"
        case 2:
            let index = literal.randomElement(using: &generator) ?? 0
            let name = attributes.remove(at: index).name
            return "\(path)/@\(name)"
        case 3:
            text = (text ?? "") + "."
            return "\(path)/text()"
        case 4:
            let index = children.indices.randomElement(using: &generator) ?? 0
            return children[index].change(path, using: &generator)
        case 5:
            let index = children.indices.randomElement(using: &generator) ?? 0
            let child = children.remove(at: index)
            // A removed only child is reported by its name and namespace.
            return "\(path)/" + (child.namespace.map { "{\($0)}" } ?? "") + child.name
        default:
            attributes.append(("planted", "1"))
            return "\(path)/@planted"
        }
    }
}

private struct Conversation {
    struct Turn {
        var direction: Direction
        var node: Node
        /// Consecutive turns with different lanes may be swapped, except those with lane 0.
        var lane: Int
    }

    var turns: [Turn] = []

    private static let contacts = [
        "juliet@example.org", "nurse@example.org", "tybalt@example.net", "paris@example.org",
    ]
    private static let texts = ["hello", "a & b < c", "wherefore art thou", "ünïcode 🌹", "1", "two\nlines"]

    init(using generator: inout SeededGenerator) {
        func pick<Value>(_ values: [Value]) -> Value { values[Int.random(in: 0..<values.count, using: &generator)] }
        var ids = 0
        func id() -> String {
            ids += 1
            return "{id \(ids)}"
        }
        for _ in 0..<Int.random(in: 3...12, using: &generator) {
            switch Int.random(in: 0..<6, using: &generator) {
            case 0:
                ask(
                    id(),
                    Node(name: "query", namespace: "jabber:iq:roster"),
                    Node(
                        name: "query",
                        namespace: "jabber:iq:roster",
                        attributes: [("ver", "{version 1}")],
                        children: Self.contacts.map {
                            Node(
                                name: "item",
                                attributes: [
                                    ("jid", $0), ("subscription", pick(["both", "to", "none"])),
                                    ("name", pick(Self.texts)),
                                ]
                            )
                        }
                    )
                )
            case 1:
                ask(
                    id(),
                    Node(name: "query", namespace: "http://jabber.org/protocol/disco#info"),
                    Node(
                        name: "query",
                        namespace: "http://jabber.org/protocol/disco#info",
                        children: [Node(name: "identity", attributes: [("category", "server"), ("type", "im")])]
                            + ["urn:a", "urn:b", "urn:c"].map { Node(name: "feature", attributes: [("var", $0)]) }
                    )
                )
            case 2, 3:
                for (lane, contact) in Self.contacts.enumerated() {
                    turns.append(
                        Turn(
                            direction: .recv,
                            node: Node(
                                name: "presence",
                                attributes: [
                                    ("from", "\(contact)/{resource \(lane)}"),
                                    ("to", "romeo@example.org/{resource me}"),
                                ],
                                children: [
                                    Node(name: "show", text: pick(["away", "xa", "dnd"])),
                                    Node(
                                        name: "c",
                                        namespace: "http://jabber.org/protocol/caps",
                                        attributes: [
                                            ("hash", "sha-1"), ("node", "urn:client"), ("ver", "{version c\(lane)}"),
                                        ]
                                    ),
                                    Node(
                                        name: "delay",
                                        namespace: "urn:xmpp:delay",
                                        attributes: [("stamp", "{stamp}"), ("from", contact)]
                                    ),
                                ]
                            ),
                            lane: lane + 1
                        )
                    )
                }
            case 4:
                let lane = Int.random(in: 0..<Self.contacts.count, using: &generator)
                let id = id()
                turns.append(
                    Turn(
                        direction: .recv,
                        node: Node(
                            name: "message",
                            attributes: [
                                ("from", "\(Self.contacts[lane])/{resource \(lane)}"), ("type", "chat"), ("id", id),
                            ],
                            children: [
                                Node(name: "body", text: pick(Self.texts)),
                                Node(
                                    name: "stanza-id",
                                    namespace: "urn:xmpp:sid:0",
                                    attributes: [("id", "{archive \(ids)}"), ("by", "romeo@example.org")]
                                ),
                            ]
                        ),
                        lane: lane + 1
                    )
                )
                turns.append(
                    Turn(
                        direction: .send,
                        node: Node(
                            name: "message",
                            attributes: [("to", "\(Self.contacts[lane])/{resource \(lane)}")],
                            children: [Node(name: "received", namespace: "urn:xmpp:receipts", attributes: [("id", id)])]
                        ),
                        lane: 0
                    )
                )
            default:
                turns.append(
                    Turn(
                        direction: .send,
                        node: Node(
                            name: "message",
                            attributes: [("to", pick(Self.contacts)), ("type", "chat"), ("id", id())],
                            children: [
                                Node(name: "body", text: pick(Self.texts)),
                                Node(name: "active", namespace: "http://jabber.org/protocol/chatstates"),
                            ]
                        ),
                        lane: 0
                    )
                )
            }
        }
    }

    private mutating func ask(_ id: String, _ payload: Node, _ answer: Node) {
        turns.append(
            Turn(
                direction: .send,
                node: Node(name: "iq", attributes: [("type", "get"), ("id", id)], children: [payload]),
                lane: 0
            )
        )
        turns.append(
            Turn(
                direction: .recv,
                node: Node(
                    name: "iq",
                    attributes: [("type", "result"), ("id", id), ("to", "romeo@example.org/{resource me}")],
                    children: [answer]
                ),
                lane: 0
            )
        )
    }

    /// Returns the conversation with independent turns in another order.
    func shuffled(using generator: inout SeededGenerator) -> Conversation {
        var shuffled = self
        for _ in 0..<(4 * turns.count) where turns.count > 1 {
            let index = Int.random(in: 0..<(turns.count - 1), using: &generator)
            let (one, other) = (shuffled.turns[index], shuffled.turns[index + 1])
            if one.lane > 0, other.lane > 0, one.lane != other.lane { shuffled.turns.swapAt(index, index + 1) }
        }
        return shuffled
    }

    /// Serialises the conversation with random ids, resources, timestamps, prefixes and quotes, and with attributes and
    /// children in random order.
    func written(using generator: inout SeededGenerator) -> Recording {
        var writer = Writer()
        var items: [(Direction, String)] = []
        for turn in turns { items.append((turn.direction, writer.write(turn.node, using: &generator))) }
        return Recording(items, jid: "romeo@example.org/orchard")
    }
}

private struct Writer {
    private var values: [String: String] = [:]

    mutating func write(_ node: Node, prefix inherited: String = "", using generator: inout SeededGenerator) -> String {
        let isPrefixed = node.namespace != nil && Bool.random(using: &generator)
        let prefix =
            node.namespace == nil ? inherited : isPrefixed ? "p\(Int.random(in: 0..<9, using: &generator)):" : ""
        var parts = node.attributes.map { "\($0.name)=\(quoted(value($0.value, &generator), &generator))" }
        if let namespace = node.namespace {
            parts.append("xmlns\(prefix.isEmpty ? "" : ":\(prefix.dropLast())")=\(quoted(namespace, &generator))")
        }
        parts.shuffle(using: &generator)
        let space = Bool.random(using: &generator) ? " " : "  "
        let tag = prefix + node.name
        let start = "<\(tag)\(parts.map { space + $0 }.joined())"
        guard !node.children.isEmpty || node.text != nil else {
            return Bool.random(using: &generator) ? "\(start)/>" : "\(start)></\(tag)>"
        }
        var inside = node.text.map { escaped($0, &generator) } ?? ""
        var children: [String] = []
        for child in node.children { children.append(write(child, prefix: prefix, using: &generator)) }
        children.shuffle(using: &generator)
        inside += children.joined(separator: node.text == nil && Bool.random(using: &generator) ? "\n " : "")
        return "\(start)>\(inside)</\(tag)>"
    }

    /// Returns a value with its placeholder replaced; the same placeholder always has the same value.
    private mutating func value(_ text: String, _ generator: inout SeededGenerator) -> String {
        guard let open = text.firstIndex(of: "{"), let close = text.lastIndex(of: "}") else { return text }
        let name = String(text[open...close])
        let made: String
        if name == "{stamp}" {
            made = "2026-0\(Int.random(in: 1...9, using: &generator))-11T10:11:12Z"
        } else {
            made = values[name] ?? String(UInt64.random(in: 0...UInt64.max, using: &generator), radix: 36)
            values[name] = made
        }
        return text[..<open] + made + text[text.index(after: close)...]
    }

    private func quoted(_ value: String, _ generator: inout SeededGenerator) -> String {
        let quote = Bool.random(using: &generator) ? "'" : "\""
        return quote + escaped(value, &generator).replacing("\n", with: "&#10;") + quote
    }

    private func escaped(_ text: String, _ generator: inout SeededGenerator) -> String {
        text.map { character in
            switch character {
            case "&": Bool.random(using: &generator) ? "&amp;" : "&#38;"
            case "<": "&lt;"
            case "o": Bool.random(using: &generator) ? "o" : "&#x6f;"
            default: String(character)
            }
        }.joined()
    }
}
