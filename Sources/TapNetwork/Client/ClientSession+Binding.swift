internal import XMPPCore

// Resource binding (RFC 6120 §7), and the session of RFC 3921 if a server requires it.
extension ClientSession {
    mutating func bind(_ features: StreamFeatures) throws(ClientFault) {
        guard features.offersBinding else { throw fault(.broken, "the server does not offer resource binding") }
        state = .bindAwaited(features)
        let resource = resource
        send {
            $0.element("iq", ["type": "set", "id": "bind"]) {
                $0.element("bind", .bind) { $0.element("resource", text: resource) }
            }
        }
    }

    mutating func bound(_ answer: Element, _ features: StreamFeatures) throws(ClientFault) {
        let text = answer.child("bind", .bind)?.childText("jid", .bind)
        guard answer.attribute("type") == "result", let jid = text.flatMap({ Address($0).jid }) else {
            let condition = answer.child("error", .client)?.firstChild { $0.namespace == .stanzaErrors }?.name
            throw fault(.refused(condition), "the server did not bind a resource\(condition.map { " (\($0))" } ?? "")")
        }
        establish(jid, features)
    }

    /// Servers of RFC 3921 want to be asked for a session too.
    mutating func establish(_ jid: JID, _ features: StreamFeatures) {
        guard features.session == .required else { return open(jid, features) }
        state = .establishing(jid, features)
        send { $0.element("iq", ["type": "set", "id": "session"]) { $0.element("session", .session) } }
    }

    mutating func open(_ jid: JID, _ features: StreamFeatures) {
        state = .open
        tell(.bound(jid, features))
    }
}
