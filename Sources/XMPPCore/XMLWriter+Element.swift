extension XMLWriter {
    /// Writes a parsed element with everything in it, so that it parses back to an equal one.
    ///
    /// Namespaces are declared as default namespaces where they change; a prefix appears only on attributes that need one.
    /// Prefixes of the original are not kept: content that names prefixes in its text or values loses their meaning.
    ///
    /// - Parameters:
    ///   - element: What to write.
    ///   - inherited: The default namespace where it is written; in a stream the stream's content namespace.
    ///   - changes: Attributes without a prefix to set, or to leave out where the value is `nil`.
    public mutating func element(
        _ element: Element,
        inheriting inherited: String,
        setting changes: KeyValuePairs<String, String?> = [:]
    ) {
        start(element, inheriting: inherited, setting: changes)
        for content in element.contents {
            switch content {
            case .element(let child): self.element(child, inheriting: element.namespaceURI)
            case .text(let text): self.text(text)
            }
        }
        end()
    }

    /// Opens an element as ``element(_:inheriting:setting:)`` writes it, without what it holds. ``end()`` closes it.
    public mutating func start(
        _ element: Element,
        inheriting inherited: String,
        setting changes: KeyValuePairs<String, String?> = [:]
    ) {
        let namespace = element.namespaceURI
        start(element.name, xmlns: namespace == inherited ? nil : namespace)
        var prefixes = 0
        for attribute in element.attributes {
            switch attribute.namespaceURI {
            case "":
                guard !changes.contains(where: { $0.key == attribute.name }) else { continue }
                self.attribute(attribute.name, attribute.value)
            case Namespace.xml.uri.description:
                self.attribute("xml:\(attribute.name)", attribute.value)
            case let uri:
                self.attribute("xmlns:ns\(prefixes)", uri)
                self.attribute("ns\(prefixes):\(attribute.name)", attribute.value)
                prefixes += 1
            }
        }
        for (name, value) in changes {
            if let value { self.attribute(name, value) }
        }
    }
}
