internal import TapRecord
import XMPPCore

/// Creates the XML elements of a login that xmpptap performs itself.
enum BridgedLoginElements {
    /// Returns the inline requests of a SASL2 client that are relayed to the server.
    static func inline(of element: Element) -> [UInt8] {
        let uri = element.namespaceURI
        return XMLWriter.bytes { xml in
            for child in element.children
            where !child.matches("initial-response", element.namespace)
                && !BridgedOffer.isTiedToMechanism(child.namespace)
            {
                xml.element(child, inheriting: uri)
            }
        }
    }

    private static func text(_ bytes: [UInt8]) -> String { bytes.isEmpty ? "=" : Base64.encode(bytes) }

    /// Returns a challenge or response. An empty message has no text (RFC 6120 §6.4.3).
    static func element(_ name: String, _ uri: String, _ message: [UInt8]) -> [UInt8] {
        XMLWriter.bytes { $0.element(name, xmlns: uri, text: message.isEmpty ? "" : Base64.encode(message)) }
    }

    static func success(_ uri: String, _ data: [UInt8]?) -> [UInt8] {
        XMLWriter.bytes { $0.element("success", xmlns: uri, text: data.map { text($0) } ?? "") }
    }

    static func failure(_ uri: String, _ condition: SASLCondition, _ text: String?) -> [UInt8] {
        let isSASL2 = uri != Namespace.sasl.uri.description
        return XMLWriter.bytes { xml in
            xml.element("failure", xmlns: uri) {
                // Both profiles use the conditions of RFC 6120 (XEP-0388 §2.6.3).
                $0.element(condition.description, xmlns: isSASL2 ? Namespace.sasl.uri.description : nil)
                $0.element("text", isSASL2 ? [:] : ["xml:lang": "en"], text: text)
            }
        }
    }

    /// Returns the first message of a login.
    ///
    /// - Parameter inline: The inline requests of a SASL2 login.
    static func beginning(_ uri: String, _ mechanism: String, _ message: [UInt8], _ inline: [UInt8]) -> [UInt8] {
        guard uri != Namespace.sasl.uri.description else {
            return XMLWriter.bytes {
                $0.element("auth", xmlns: uri, ["mechanism": mechanism], text: text(message))
            }
        }
        return XMLWriter.bytes { xml in
            xml.element("authenticate", xmlns: uri, ["mechanism": mechanism]) {
                $0.element("initial-response", text: text(message))
                $0.verbatim(inline)
            }
        }
    }

    /// Returns the server's success, or its request for a further task, without tokens, and with the data that
    /// authenticates xmpptap to the client.
    static func replacing(_ data: [UInt8]?, in element: Element) -> [UInt8] {
        let uri = element.namespaceURI
        return XMLWriter.bytes { xml in
            xml.element(element.name, xmlns: uri) {
                $0.element("additional-data", text: data.map { text($0) })
                for child in element.children
                where !child.matches("additional-data", element.namespace)
                    && !BridgedOffer.isTiedToMechanism(child.namespace)
                {
                    $0.element(child, inheriting: uri)
                }
            }
        }
    }
}
