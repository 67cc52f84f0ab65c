internal import XMPPCore

/// Writes a stanza anew with a change at every place that a path leads to.
struct PathEdit {
    enum Change {
        case remove
        /// What stands there is not to be seen.
        case hide
        case text([UInt8])
        /// Each text as it was, and what it becomes.
        case texts([[UInt8]: [UInt8]])
        /// In the place of the element.
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
    /// What is larger is refused by whoever asked, and not written to its end.
    let mostBytes: Int
    /// Something is different now.
    private(set) var isChanged = false
    /// There was such a place.
    private(set) var isFound = false

    init(change: Change, mostBytes: Int) {
        self.change = change
        self.mostBytes = mostBytes
    }

    /// Writes an element that stands at the beginning of `steps`.
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
        for content in element.contents where !isChanged || writer.bytes.count <= mostBytes {
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

    /// Writes an element with what `SET` puts at a path that leads nowhere: below the first elements that are there.
    ///
    /// - Parameter steps: Those that are left of the path; at least one, each with a name.
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
                // An attribute that is not there can be set, but not matched or removed.
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
    /// The texts at all places that the path leads to.
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
    /// Writes what an element holds, but for children that `isLeftOut` accepts.
    mutating func contents(of element: Element, leavingOut isLeftOut: (Element) -> Bool = { _ in false }) {
        let namespace = element.namespaceURI
        for content in element.contents {
            switch content {
            case .element(let child): if !isLeftOut(child) { self.element(child, inheriting: namespace) }
            case .text(let text): self.text(text)
            }
        }
    }

    /// A byte of a value as it can stand in text and between either quotes.
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

extension Element {
    /// Whether it holds content that was encrypted or signed end to end, also as a copy or from an archive (XEP-0280,
    /// XEP-0313): OMEMO (XEP-0384), OpenPGP (XEP-0373, XEP-0027), OTR, or what a hint names (XEP-0380). A change of it is an
    /// error at the receiver's.
    var isEncrypted: Bool {
        firstChild { child in
            switch child.namespace {
            case .omemo, .omemo1, .omemoLegacy: child.isNamed("encrypted")
            case .openPGP, .openPGPLegacy, .openPGPSignature: true
            case .encryptionHint: child.isNamed("encryption")
            // Another stanza may be deeper inside.
            default:
                child.namespace.isContent && child.isNamed("body") && child.text.hasPrefix("?OTR") || child.isEncrypted
            }
        } != nil
    }
}

/// Writes a stanza that answers another.
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

    /// The error of RFC 6120 §8.3.2.
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
