internal import XMPPCore

extension Element {
    /// Returns the answer to this iq request, with its id, addressed to its sender (RFC 6120 §8.2.3).
    ///
    /// - Parameters:
    ///   - type: `result` or `error`.
    ///   - content: Writes the child elements.
    func answer(_ type: String, _ content: (inout XMLWriter) -> Void) -> [UInt8] {
        XMLWriter.bytes {
            $0.element("iq", ["type": type, "id": attribute("id"), "to": attribute("from")], content: content)
        }
    }
}
