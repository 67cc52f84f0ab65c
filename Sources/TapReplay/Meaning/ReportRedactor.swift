internal import TapRecord
internal import XMPPCore

/// Takes the secrets out of what reports show: of items that came live, and of recordings that hold theirs.
///
/// The same secret has the same number throughout a run.
public struct ReportRedactor: Sendable {
    /// Stands for a value of an item that had secrets taken out, unless it is still in the item.
    private static let hidden = "[redacted]"

    private let registry = SecretRegistry()

    /// A redactor that has met no secret.
    public init() {}

    /// A message without the secrets that the redactor has met.
    func redacted(message: String) -> String {
        Redactor(policy: .secrets, registry: registry).disclose(text: message)
    }

    /// An item without its secrets; nil where it has none.
    func redacted(_ text: String) -> RedactedItem? {
        let redactor = Redactor(policy: .secrets, registry: registry)
        guard case .redacted(let redaction) = redactor.disclose(item: text.utf8Span.span) else { return nil }
        let element = try? StanzaParser().parse(redaction.bytes.span, root: StanzaForm.clientDeclarations)
        return RedactedItem(text: String(decoding: redaction.bytes, as: UTF8.self), element: element)
    }

    /// An item that had secrets.
    struct RedactedItem {
        let text: String
        /// Its attributes, texts and elements; a report shows nothing else of it.
        private var values: Set<String> = []

        fileprivate init(text: String, element: Element?) {
            self.text = text
            if let element { add(element, depth: 0) }
        }

        private mutating func add(_ element: Element, depth: Int) {
            guard depth < StanzaForm.deepest else { return }
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

        /// A value that a report may show, or a placeholder in its place; nil for nil.
        func value(_ value: String?) -> String? { value.map { values.contains($0) ? $0 : ReportRedactor.hidden } }
    }
}
