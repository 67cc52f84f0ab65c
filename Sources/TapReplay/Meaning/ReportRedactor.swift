internal import TapRecord
internal import XMPPCore

/// Removes secrets from reports. Reports show live items and unredacted recordings, which contain secrets.
///
/// The same secret has the same number in all reports of a run.
package struct ReportRedactor: Sendable {
    /// Replaces a value of a redacted item, unless the redacted item contains the value.
    private static let hidden = "[redacted]"

    private let registry = SecretRegistry()

    /// Creates a redactor without known secrets.
    package init() {}

    /// Returns a message without the known secrets.
    func redacted(message: String) -> String {
        Redactor(policy: .secrets, registry: registry).disclose(text: message)
    }

    /// Returns an item without its secrets; nil if it contains none.
    func redacted(_ text: String) -> RedactedItem? {
        let redactor = Redactor(policy: .secrets, registry: registry)
        guard case .redacted(let redaction) = redactor.disclose(item: text.utf8Span.span) else { return nil }
        let element = try? StanzaParser().parse(redaction.bytes.span, root: StanzaForm.clientDeclarations)
        return RedactedItem(text: String(decoding: redaction.bytes, as: UTF8.self), element: element)
    }

    /// An item after the removal of secrets.
    struct RedactedItem {
        let text: String
        /// The names, attribute values, texts and elements of the redacted item, which reports may show.
        private var values: Set<String> = []

        fileprivate init(text: String, element: Element?) {
            self.text = text
            if let element { add(element, depth: 0) }
        }

        private mutating func add(_ element: Element, depth: Int) {
            guard depth < StanzaForm.maximumDepth else { return }
            values.formUnion([
                element.name, "{\(element.namespaceURI)}\(element.name)", element.label, element.text,
                String(element.text.trimmingSpace),
            ])
            for attribute in element.attributes { values.insert(attribute.value) }
            for child in element.children {
                values.insert(StanzaForm(child).text)
                add(child, depth: depth + 1)
            }
        }

        /// Returns a value if a report may show it, otherwise a placeholder; nil for nil.
        func value(_ value: String?) -> String? { value.map { values.contains($0) ? $0 : ReportRedactor.hidden } }
    }
}
