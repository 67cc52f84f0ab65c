internal import TapRecord
internal import XMPPCore

/// The name of the software of a client or a server, as it names itself.
struct SoftwareName {
    /// What contains a name. The later ones are preferred.
    private enum Source: Int {
        case none, capabilities, identity, version, login
    }

    /// The name; nil if it is not known.
    private(set) var text: String?
    private var source = Source.none

    private mutating func set(_ name: String?, _ source: Source) {
        guard let name, !name.isEmpty, source.rawValue >= self.source.rawValue else { return }
        (text, self.source) = (name.cut(to: RecordSurvey.maximumText), source)
    }

    /// Reads the name in a record of the client's session: that of its login (XEP-0388), its version (XEP-0092), its identity
    /// (XEP-0030), or the address in its capabilities (XEP-0115).
    mutating func read(_ record: borrowing Record, _ content: Span<UInt8>) {
        set(record.sasl?["software"]?.text, .login)
        guard record.kind == .stanza, record.direction == .send, let name = record.name, let xml = record.xml else {
            return
        }
        let item = content.slice(xml)
        if content.slice(name).equals("presence") {
            guard source.rawValue <= Source.capabilities.rawValue, record.type == nil else { return }
            readCapabilities(item)
        } else if content.slice(name).equals("iq"), let type = record.type, content.slice(type).equals("result") {
            if record.payloadNamespace == .version {
                readVersion(item)
            } else if record.payloadNamespace == .discoInfo, source.rawValue <= Source.identity.rawValue {
                readIdentity(item, category: "client")
            }
        }
    }

    /// Reads the name in a record of a session with the server of a domain: its version, its identity, or the address in the
    /// capabilities of its stream features.
    mutating func read(_ record: borrowing Record, _ content: Span<UInt8>, ofServer domain: String) {
        guard record.direction == .recv, let name = record.name, let xml = record.xml else { return }
        let item = content.slice(xml)
        if record.kind == .element {
            if content.slice(name).equals("features") { readCapabilities(item) }
        } else if record.kind == .stanza, content.slice(name).equals("iq"), let type = record.type,
            content.slice(type).equals("result"), let from = record.from,
            content.slice(from).equals(domain.utf8Span.span)
        {
            if record.payloadNamespace == .version {
                readVersion(item)
            } else if record.payloadNamespace == .discoInfo, source.rawValue <= Source.identity.rawValue {
                readIdentity(item, category: "server")
            }
        }
    }

    private mutating func readCapabilities(_ item: Span<UInt8>) {
        var reader = ItemReader()
        reader.begin()
        while let token = reader.next(item), token != .fault {
            guard token == .start, reader.depth == 2, reader.namespace == .capabilities else { continue }
            return set(reader.value(of: "node", item), .capabilities)
        }
    }

    private mutating func readIdentity(_ item: Span<UInt8>, category: String) {
        var reader = ItemReader()
        reader.begin()
        while let token = reader.next(item), token != .fault {
            guard token == .start, reader.depth == 3, reader.namespace == .discoInfo,
                item.slice(reader.name).equals("identity"), reader.value(of: "category", item) == category
            else { continue }
            return set(reader.value(of: "name", item), .identity)
        }
    }

    private mutating func readVersion(_ item: Span<UInt8>) {
        var reader = ItemReader()
        reader.begin()
        var texts: [[UInt8]] = [[], []]
        var current: Int?
        while let token = reader.next(item), token != .fault {
            switch token {
            case .start:
                let isField = reader.depth == 3 && reader.namespace == .version
                let name = item.slice(reader.name)
                current = !isField ? nil : name.equals("name") ? 0 : name.equals("version") ? 1 : nil
            case .text(let range):
                if let current { AttributeValue.decodeText(item.slice(range), into: &texts[current]) }
            case .section(let range, _): if let current { texts[current].append(item.slice(range)) }
            case .end: current = nil
            case .fault: return
            }
        }
        guard !texts[0].isEmpty else { return }
        set(texts.filter { !$0.isEmpty }.map { $0.span.string() }.joined(separator: " "), .version)
    }
}

extension ItemReader {
    /// Returns the value of an attribute of the current start tag; nil if it has none of that name.
    func value(of name: StaticString, _ item: Span<UInt8>) -> String? {
        for index in 0..<attributeCount {
            let attribute = attribute(index, item)
            guard attribute.namespace == .none, item.slice(attribute.name).equals(name) else { continue }
            var text: [UInt8] = []
            AttributeValue.decode(item.slice(attribute.value), into: &text)
            return text.span.string()
        }
        return nil
    }
}
