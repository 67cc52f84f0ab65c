internal import TapRecord
internal import XMPPCore

extension ValueBindings {
    /// An item with each bound value as it is on the other side; all other bytes stay as they are.
    ///
    /// A value is replaced where a rule says that one of its class stands there; accounts, domains and full JIDs wherever they
    /// stand as a whole word, the longest first.
    public func substituted(_ item: [UInt8], _ way: Way, rules: NoiseRules = NoiseRules()) -> [UInt8] {
        var substitution = Substitution(bindings: self, way: way, rules: rules)
        return substitution.apply(to: item.span)
    }
}

/// Goes through an item once with its bytes, and once with the element that the rules' places are of.
private struct Substitution {
    let bindings: ValueBindings
    let way: ValueBindings.Way
    let rules: NoiseRules
    private let addresses: [(text: [UInt8], other: [UInt8])]
    private var edit = ItemEdit()
    private var reader = ItemReader()

    init(bindings: ValueBindings, way: ValueBindings.Way, rules: NoiseRules) {
        self.bindings = bindings
        self.way = way
        self.rules = rules
        addresses = bindings.addresses(way).filter { $0.text != $0.other }
    }

    mutating func apply(to item: Span<UInt8>) -> [UInt8] {
        guard bindings.count > 0 else { return [UInt8](item) }
        // The place of an element in a stream makes no difference here: the stream's own namespace is none in both readings.
        var elements = ElementReader()
        guard let root = elements.read(item) else { return [UInt8](item) }
        reader.begin()
        var path: [Element] = []
        /// For each open element, its children that have not begun.
        var children: [ArraySlice<Element>] = []
        var found: [Int] = []
        var text = WireText()
        while let token = reader.next(item) {
            switch token {
            case .start:
                finish(&text, path, item)
                let element = children.isEmpty ? root : children[children.count - 1].popFirst()
                guard let element else { return [UInt8](item) }
                path.append(element)
                children.append(element.children[...])
                rules.fill(&found, for: path)
                for index in 0..<reader.attributeCount {
                    substitute(reader.attribute(index, item), item, found)
                }
            case .text(let range): text.append(text: range, of: item)
            case .section(let range, let markup): text.append(section: range, markup: markup, of: item)
            case .end:
                finish(&text, path, item)
                _ = path.popLast()
                _ = children.popLast()
            case .fault: return [UInt8](item)
            }
        }
        return edit.isEmpty ? [UInt8](item) : edit.applied(to: item)
    }

    private mutating func substitute(_ attribute: ItemReader.Attribute, _ item: Span<UInt8>, _ found: [Int]) {
        guard !attribute.isDeclaration else { return }
        var value: [UInt8] = []
        AttributeValue.decode(item.slice(attribute.value), into: &value)
        // A rule for an attribute of a namespace is rare enough to be left to whole words.
        let name = item.slice(attribute.name)
        let rule = attribute.namespace == .none ? rules.action(for: NoiseRules.key(name, Span()), found)?.1 : nil
        guard let other = other(value, rule, isAddress: StanzaDigester.isAddress(name)) else { return }
        edit.replace(attribute.value, with: Self.escaped(other))
    }

    private mutating func finish(_ text: inout WireText, _ path: [Element], _ item: Span<UInt8>) {
        defer { text.removeAll() }
        guard !text.bytes.isEmpty, let element = path.last else { return }
        var found: [Int] = []
        rules.fill(&found, for: path)
        let rule = element.firstChild == nil ? rules.action(for: NoiseRules.textTarget, found)?.1 : nil
        guard let other = other(text.bytes, rule, isAddress: false) else { return }
        edit.replace(text.range, with: Self.escaped(other))
    }

    /// What a value is on the other side; nil where it is the same.
    private func other(_ value: [UInt8], _ action: NoiseRules.Action?, isAddress: Bool) -> [UInt8]? {
        let text = String(decoding: value, as: UTF8.self)
        switch action {
        case .bind(let valueClass):
            if let bound = bindings.value(for: text, valueClass, way) { return bound == text ? nil : Array(bound.utf8) }
        case .bindSuffix(let valueClass):
            if let mark = text.lastIndex(of: "#") {
                let suffix = String(text[text.index(after: mark)...])
                if let bound = bindings.value(for: suffix, valueClass, way), bound != suffix {
                    return Array((text[...mark] + bound).utf8)
                }
            }
        default: break
        }
        if isAddress {
            let other = bindings.jid(text, way)
            if other != text { return Array(other.utf8) }
        }
        return words(value)
    }

    /// A text with the addresses in it replaced; nil where none stands in it.
    private func words(_ value: [UInt8]) -> [UInt8]? {
        var result: [UInt8] = []
        var copied = 0
        var index = 0
        while index < value.count {
            guard index == 0 || AddressNames.mayPrecede(value[index - 1]),
                let found = addresses.first(where: { AddressNames.stands($0.text, at: index, in: value.span) })
            else {
                index += 1
                continue
            }
            result += value[copied..<index] + found.other
            index += found.text.count
            copied = index
        }
        return copied == 0 ? nil : result + value[copied...]
    }

    private static func escaped(_ value: [UInt8]) -> [UInt8] {
        var bytes: [UInt8] = []
        for byte in value {
            switch byte {
            case UInt8(ascii: "&"): bytes += "&amp;".utf8
            case UInt8(ascii: "<"): bytes += "&lt;".utf8
            case UInt8(ascii: ">"): bytes += "&gt;".utf8
            case UInt8(ascii: "'"): bytes += "&apos;".utf8
            case UInt8(ascii: "\""): bytes += "&quot;".utf8
            default: bytes.append(byte)
            }
        }
        return bytes
    }
}
