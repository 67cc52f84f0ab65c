/// Translates the form `{namespace}:name`, in which Dino's log prints the names of elements and attributes, to XML.
///
/// Each tag is on a separate line: `<{jabber:client}:iq {jabber:client}:type='get'>`. The log escapes attribute values,
/// but not texts.
enum ClarkNotation {
    private static let streams = Array("http://etherx.jabber.org/streams".utf8)
    private static let declarations = Array("http://www.w3.org/2000/xmlns/".utf8)
    private static let xml = Array("http://www.w3.org/XML/1998/namespace".utf8)

    /// Whether a line begins with a tag that has a name of this form.
    static func begins(_ line: [UInt8]) -> Bool {
        guard let start = line.firstIndex(where: { $0 != 0x20 }), line[start] == 0x3C, start + 2 < line.count else {
            return false
        }
        return line[start + 1] == 0x7B || line[start + 1] == 0x2F && line[start + 2] == 0x7B
    }

    /// Returns a line with names and namespace declarations as XML has them; unchanged if the line cannot be
    /// translated.
    static func translated(_ line: [UInt8]) -> [UInt8] {
        guard let start = line.firstIndex(of: 0x3C) else { return line }
        var rest = line[(start + 1)...]
        let isEnd = rest.first == 0x2F
        if isEnd { rest = rest.dropFirst() }
        guard let (namespace, name) = parseName(&rest) else { return line }
        var text = Array(line[...start]) + (isEnd ? [0x2F] : [])
        text += namespace.elementsEqual(streams) ? Array("stream:".utf8) + name : Array(name)
        var isDeclared = isEnd || namespace.elementsEqual(streams)
        var others: [ArraySlice<UInt8>] = []
        while rest.first == 0x20, rest.dropFirst().first == 0x7B {
            rest = rest.dropFirst()
            guard let (space, attribute) = parseName(&rest), rest.first == 0x3D, rest.dropFirst().first == 0x27,
                let end = rest.dropFirst(2).firstIndex(of: 0x27)
            else { return line }
            text.append(0x20)
            if space.elementsEqual(declarations) {
                let isDefault = attribute.elementsEqual("xmlns".utf8)
                if isDefault { isDeclared = true } else { text += Array("xmlns:".utf8) }
            } else if space.elementsEqual(xml) {
                text += Array("xml:".utf8)
            } else if !space.elementsEqual(namespace) {
                if !others.contains(space) { others.append(space) }
                text += Array("n\(others.firstIndex(of: space) ?? 0):".utf8)
            }
            text += attribute
            text += rest[...end]
            rest = rest[(end + 1)...]
        }
        if !isDeclared { text += Array(" xmlns='".utf8) + namespace + [0x27] }
        for (index, space) in others.enumerated() { text += Array(" xmlns:n\(index)='".utf8) + space + [0x27] }
        return text + rest
    }

    /// Returns a text with `&`, `<` and `>` escaped.
    static func escaped(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var escaped: [UInt8] = []
        for byte in text {
            switch byte {
            case 0x26: escaped += Array("&amp;".utf8)
            case 0x3C: escaped += Array("&lt;".utf8)
            case 0x3E: escaped += Array("&gt;".utf8)
            default: escaped.append(byte)
            }
        }
        return escaped
    }

    private static func parseName(
        _ rest: inout ArraySlice<UInt8>
    ) -> (namespace: ArraySlice<UInt8>, name: ArraySlice<UInt8>)? {
        guard rest.first == 0x7B, let end = rest.firstIndex(of: 0x7D), rest[(end + 1)...].first == 0x3A else {
            return nil
        }
        let namespace = rest[rest.startIndex..<end].dropFirst()
        let name = rest[(end + 2)...].prefix { $0 != 0x20 && $0 != 0x3D && $0 != 0x3E && $0 != 0x2F }
        guard !name.isEmpty, !namespace.contains(0x27) else { return nil }
        rest = rest[name.endIndex...]
        return (namespace, name)
    }
}
