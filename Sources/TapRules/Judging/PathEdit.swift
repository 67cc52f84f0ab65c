package import XMPPCore

/// Writes a stanza with a change at every place that matches a path.
struct PathEdit {
    enum Change {
        case remove
        /// Replaces the value with a placeholder.
        case hide
        case text([UInt8])
        /// Replaces each text by its value in the dictionary.
        case texts([[UInt8]: [UInt8]])
        /// Replaces the element with XML.
        case xml([UInt8])

        func text(for old: [UInt8]) -> [UInt8]? {
            switch self {
            case .text(let text): text
            case .texts(let texts): texts[old] ?? old
            case .hide: Self.placeholder
            case .remove, .xml: nil
            }
        }

        private static let placeholder = Array("[redacted:rule]".utf8)
    }

    let change: Change
    /// Writing stops above this size, because the caller refuses larger stanzas.
    let maximumBytes: Int
    /// Whether the result differs from the original.
    private(set) var isChanged = false
    /// Whether a place matched.
    private(set) var isFound = false

    init(change: Change, mostBytes: Int) {
        self.change = change
        self.maximumBytes = mostBytes
    }

    /// Writes an element; `steps` are the steps of the path below it.
    mutating func write(
        _ element: Element,
        _ path: StanzaPath,
        _ steps: ArraySlice<StanzaPath.Step>,
        inheriting inherited: String,
        to writer: inout XMLWriter
    ) {
        guard let step = steps.first else { return writeEnd(element, path, inherited, &writer) }
        writer.start(element, inheriting: inherited)
        let namespace = element.namespaceURI
        for content in element.contents where !isChanged || writer.bytes.count <= maximumBytes {
            switch content {
            case .text(let text): writer.text(text)
            case .element(let child):
                if step.matches(child, in: element) {
                    write(child, path, steps.dropFirst(), inheriting: namespace, to: &writer)
                } else {
                    writer.element(child, inheriting: namespace)
                }
            }
        }
        writer.end()
    }

    /// Writes an element with a new text at a path that does not exist; creates the missing elements below the first
    /// existing ones.
    ///
    /// - Parameter steps: The remaining steps of the path; at least one, each with a name.
    mutating func create(
        _ element: Element,
        _ path: StanzaPath,
        _ steps: ArraySlice<StanzaPath.Step>,
        _ text: [UInt8],
        inheriting inherited: String,
        to writer: inout XMLWriter
    ) {
        guard let step = steps.first else { return writeEnd(element, path, inherited, &writer) }
        writer.start(element, inheriting: inherited)
        let namespace = element.namespaceURI
        var isPassed = false
        for content in element.contents {
            switch content {
            case .text(let text): writer.text(text)
            case .element(let child):
                if !isPassed, step.matches(child, in: element) {
                    isPassed = true
                    create(child, path, steps.dropFirst(), text, inheriting: namespace, to: &writer)
                } else {
                    writer.element(child, inheriting: namespace)
                }
            }
        }
        if !isPassed { create(path, steps, text, in: namespace, to: &writer) }
        writer.end()
    }

    private mutating func create(
        _ path: StanzaPath,
        _ steps: ArraySlice<StanzaPath.Step>,
        _ text: [UInt8],
        in namespace: String,
        to writer: inout XMLWriter
    ) {
        guard let step = steps.first, let name = step.name else { return }
        isChanged = true
        let own = step.namespace.map { String(decoding: $0.uri, as: UTF8.self) } ?? namespace
        let (isLast, text) = (steps.count == 1, String(decoding: text, as: UTF8.self))
        var attributes: KeyValuePairs<String, String?> = [:]
        if isLast, case .attribute(let name, _) = path.end {
            attributes = [String(decoding: name, as: UTF8.self): text]
        }
        writer.start(String(decoding: name, as: UTF8.self), xmlns: own == namespace ? nil : own, attributes)
        if isLast, case .text = path.end { writer.text(text) }
        create(path, steps.dropFirst(), Array(text.utf8), in: own, to: &writer)
        writer.end()
    }

    private mutating func writeEnd(
        _ element: Element,
        _ path: StanzaPath,
        _ inherited: String,
        _ writer: inout XMLWriter
    ) {
        isFound = true
        switch (path.end, change) {
        case (.element, .remove): isChanged = true
        case (.element, .xml(let xml)):
            isChanged = true
            writer.verbatim(xml)
        case (.element, .hide): hide(element, inherited, &writer)
        case (.text, .hide) where element.plainText == nil: hide(element, inherited, &writer)
        case (.text, let change):
            guard let old = element.plainText else { return writer.element(element, inheriting: inherited) }
            let text = change.text(for: old) ?? []
            if text != old { isChanged = true }
            writer.start(element, inheriting: inherited)
            writer.text(String(decoding: text, as: UTF8.self))
            writer.end()
        case (.attribute(let name, let namespace), let change):
            guard let old = element.attribute(named: name, in: namespace) else {
                // A new text creates an absent attribute; other changes do not affect it.
                guard case .text(let text) = change else { return writer.element(element, inheriting: inherited) }
                return writeAttribute(element, name, text, inherited, &writer)
            }
            let text = change.text(for: old)
            guard text != old else { return writer.element(element, inheriting: inherited) }
            writeAttribute(element, name, text, inherited, &writer)
        default: writer.element(element, inheriting: inherited)
        }
    }

    private mutating func hide(_ element: Element, _ inherited: String, _ writer: inout XMLWriter) {
        isChanged = true
        let namespace = element.namespaceURI
        let text = change.text(for: []).map { String(decoding: $0, as: UTF8.self) }
        writer.element(element.name, xmlns: namespace == inherited ? nil : namespace, text: text)
    }

    private mutating func writeAttribute(
        _ element: Element,
        _ name: [UInt8],
        _ text: [UInt8]?,
        _ inherited: String,
        _ writer: inout XMLWriter
    ) {
        isChanged = true
        let value = text.map { String(decoding: $0, as: UTF8.self) }
        writer.element(element, inheriting: inherited, setting: [String(decoding: name, as: UTF8.self): value])
    }
}

extension StanzaPath {
    /// Returns the texts at all places that match the path.
    func texts(in stanza: Element) -> [[UInt8]] {
        var elements = [stanza]
        for step in steps {
            elements = elements.flatMap { element in element.children.filter { step.matches($0, in: element) } }
        }
        return elements.compactMap { element in
            switch end {
            case .element: nil
            case .text: element.plainText
            case .attribute(let name, let namespace): element.attribute(named: name, in: namespace)
            }
        }
    }
}

extension XMLWriter {
    /// Writes the contents of an element without the children for which `isLeftOut` returns true.
    mutating func contents(of element: Element, leavingOut isLeftOut: (Element) -> Bool = { _ in false }) {
        let namespace = element.namespaceURI
        for content in element.contents {
            switch content {
            case .element(let child): if !isLeftOut(child) { self.element(child, inheriting: namespace) }
            case .text(let text): self.text(text)
            }
        }
    }

    /// Escapes a byte for use in character data and in attribute values.
    static func escaped(_ byte: UInt8) -> [UInt8] {
        switch byte {
        case UInt8(ascii: "&"): Array("&amp;".utf8)
        case UInt8(ascii: "<"): Array("&lt;".utf8)
        case UInt8(ascii: ">"): Array("&gt;".utf8)
        case UInt8(ascii: "'"): Array("&apos;".utf8)
        case UInt8(ascii: "\""): Array("&quot;".utf8)
        default: [byte]
        }
    }
}

extension StanzaPath {
    /// Returns an element with a placeholder at each place that matches the path; nil if no place matches.
    package func hide(in element: Element, inheriting uri: String) -> [UInt8]? {
        var writer = XMLWriter()
        var edit = PathEdit(change: .hide, mostBytes: .max)
        edit.write(element, self, steps[...], inheriting: uri, to: &writer)
        return edit.isChanged ? writer.take() : nil
    }
}

extension Element {
    /// Whether the element contains content that is encrypted or signed end to end, also in a carbon copy or an
    /// archived message (XEP-0280, XEP-0313): OMEMO (XEP-0384), OpenPGP (XEP-0373, XEP-0027), OTR, or explicit message
    /// encryption (XEP-0380). Receivers report an error if this content was edited.
    package var isEncrypted: Bool {
        firstChild { child in
            switch child.namespace {
            case .omemo, .omemo1, .omemoLegacy: child.isNamed("encrypted")
            case .openPGP, .openPGPLegacy, .openPGPSignature: true
            case .encryptionHint: child.isNamed("encryption")
            // Searches the children too, because a carbon copy or an archived message contains another stanza.
            default:
                child.namespace.isContent && child.isNamed("body") && child.text.hasPrefix("?OTR") || child.isEncrypted
            }
        } != nil
    }
}

/// Writes a stanza that replies to another one.
struct StanzaWriter {
    let kind: StanzaHead.Kind
    var type: String?
    private let id: String?
    private let from: String?
    private let to: String?
    private var children: [UInt8] = []

    init(kind: StanzaHead.Kind, id: String?, from: String?, to: String?) {
        self.kind = kind
        self.id = id
        self.from = from
        self.to = to
    }

    /// Appends the stanza error (RFC 6120 §8.3.2).
    mutating func error(_ condition: StanzaCondition) {
        type = "error"
        children += XMLWriter.bytes {
            $0.element("error", ["type": condition.type]) {
                $0.element(condition.name, .stanzaErrors)
                $0.element("text", .stanzaErrors, text: condition.text)
            }
        }
    }

    mutating func body(_ text: String) { children += XMLWriter.bytes { $0.element("body", text: text) } }

    var bytes: [UInt8] {
        let name =
            switch kind {
            case .message: "message"
            case .presence: "presence"
            case .iq, .nonza: "iq"
            }
        return XMLWriter.bytes {
            $0.element(name, ["type": type, "id": id, "from": from, "to": to]) {
                if !children.isEmpty { $0.verbatim(children) }
            }
        }
    }
}
