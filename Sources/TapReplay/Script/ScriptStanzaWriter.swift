internal import TapRecord
internal import XMPPCore

/// Writes a stanza with the indentation of scripts; mixed content is not indented.
struct ScriptStanzaWriter {
    /// How a value is written.
    private enum Value {
        /// Written as this text.
        case written(String)
        case any, left
    }

    private let script: ScriptWriter
    private let isSent: Bool
    /// Whether the stanza's id is written, so that a later stanza can answer it.
    private let keepsID: Bool
    /// The text so far.
    private(set) var text = ""

    init(script: ScriptWriter, isSent: Bool, keepsID: Bool) {
        self.script = script
        self.isSent = isSent
        self.keepsID = keepsID
    }

    /// Writes an element with its content.
    ///
    /// - Parameter indent: The indentation; nil within mixed content.
    mutating func write(_ element: Element, path: [Element], inherited: String, isStrict: Bool, indent: String?) {
        let path = path + [element]
        let found = script.rules.found(path)
        let namespace = element.namespaceURI
        text += "\(indent ?? "")<\(element.name)"
        if namespace != inherited { text += " xmlns=\"\(Self.escaped(namespace))\"" }
        var isLoose = false
        for (index, attribute) in element.attributes.enumerated() {
            switch value(of: attribute, element, path, found) {
            case .left: isLoose = true
            case .any: append("{scansion:any}", attribute, index)
            case .written(let value): append(value, attribute, index)
            }
        }
        let contents = contents(of: element, path, found, isLoose: &isLoose)
        let wasStrict = isStrict || namespace != inherited
        if !isSent, wasStrict, isLoose { text += " scansion:strict=\"false\"" }
        let isInline = indent == nil || contents.contains { if case .text = $0 { true } else { false } }
        text += contents.isEmpty ? "/>" : isInline ? ">" : ">\n"
        for content in contents {
            switch content {
            case .text(let value): text += value
            case .element(let child):
                write(
                    child,
                    path: path,
                    inherited: namespace,
                    isStrict: wasStrict && !isLoose,
                    indent: isInline ? nil : (indent ?? "") + "\t"
                )
            }
        }
        if !contents.isEmpty { text += "\(isInline ? "" : indent ?? "")</\(element.name)>" }
        if indent != nil { text += "\n" }
    }

    /// Returns the content to write: escaped text, and child elements without the white space between them.
    private func contents(
        of element: Element,
        _ path: [Element],
        _ found: [Int],
        isLoose: inout Bool
    ) -> [Element.Content] {
        let contents = element.contents.filter { content in
            if case .element(let child) = content { isSent || !isIgnored(child, path) } else { true }
        }
        let count = contents.count { if case .element = $0 { true } else { false } }
        isLoose = isLoose || count != element.elementCount || count > 1
        let isElementOnly = element.firstChild != nil && element.text.trimmingSpace.isEmpty
        var value = Value.left
        if !isElementOnly, !element.text.isEmpty {
            value = self.value(ofText: element.text, found)
            if case .written = value {} else { isLoose = true }
        }
        guard case .written(let whole) = value else {
            return contents.filter { if case .element = $0 { true } else { false } }
        }
        guard element.firstChild != nil else { return [.text(whole)] }
        return contents.map { if case .text(let text) = $0 { .text(Self.escaped(text)) } else { $0 } }
    }

    private func isIgnored(_ element: Element, _ path: [Element]) -> Bool {
        if case .ignore? = script.rules.action(.element, script.rules.found(path + [element])) { return true }
        return script.rules.optional(element, in: path) != nil
    }

    // MARK: Values

    private func value(of attribute: Element.Attribute, _ element: Element, _ path: [Element], _ found: [Int]) -> Value
    {
        value(
            attribute.value,
            script.rules.action(for: attribute, found),
            isID: path.count == 1 && attribute.name == "id" && attribute.namespaceURI.isEmpty
        )
    }

    private func value(ofText text: String, _ found: [Int]) -> Value {
        value(text, script.rules.action(.text, found), isID: false)
    }

    private func value(_ value: String, _ action: NoiseRules.Action?, isID: Bool) -> Value {
        if let variable = script.variable(value) { return .written(variable) }
        let written = Value.written(Self.escaped(value))
        guard !isSent else { return written }
        // The script parser would read the value as a variable or wildcard even if it is escaped.
        guard !value.contains("${"), !value.hasPrefix("{scansion:"), !value.contains("[redacted:") else { return .any }
        switch action {
        case nil, .occurs: return Timestamp(rfc3339: value) == nil ? written : .any
        case .ignore: return .left
        case .bind(.stanzaID) where isID && (keepsID || script.isOwn(value)): return written
        case .address: return script.isOfClient(value) ? .any : written
        case .present, .matches, .number, .bind, .bindSuffix, .follow: return .any
        }
    }

    // MARK: Text

    private mutating func append(_ value: String, _ attribute: Element.Attribute, _ index: Int) {
        switch attribute.namespaceURI {
        case "": text += " \(attribute.name)=\"\(value)\""
        case Namespace.xml.uri.description: text += " xml:\(attribute.name)=\"\(value)\""
        case let uri: text += " xmlns:a\(index)=\"\(Self.escaped(uri))\" a\(index):\(attribute.name)=\"\(value)\""
        }
    }

    /// Escapes characters that would end the value or the line, or begin a variable.
    private static func escaped(_ value: String) -> String {
        var text = ""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "{" where text.hasSuffix("$") || value.contains("{scansion:"): text += "&#123;"
            case "&": text += "&amp;"
            case "<": text += "&lt;"
            case ">": text += "&gt;"
            case "\"": text += "&quot;"
            case "\n": text += "&#10;"
            case "\r": text += "&#13;"
            case "\t": text += "&#9;"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}

extension NoiseRules {
    /// Returns the rules for the last element of `path`, which starts with the stanza.
    func found(_ path: [Element]) -> [Int] {
        var found: [Int] = []
        fill(&found, for: path)
        return found
    }

    /// Returns the action for a target of an element with these rules; nil if there is none.
    func action(_ target: Locator.Target, _ found: [Int]) -> Action? {
        found.isEmpty ? nil : action(for: Self.key(target), found)?.1
    }

    /// Returns the action for an attribute of an element with these rules; nil if there is none.
    func action(for attribute: Element.Attribute, _ found: [Int]) -> Action? {
        action(.attribute(uri: Array(attribute.namespaceURI.utf8), name: Array(attribute.name.utf8)), found)
    }
}
