internal import XMPPCore

/// The capabilities that a server announces in its stream features (XEP-0115 §6.3).
///
/// A client that asks for them names them, so a replay must ask for those of the live server.
package struct Capabilities: Sendable, Hashable {
    /// The URI of the server's program.
    let node: String
    /// The hash of the supported features.
    let version: String

    /// Reads the capabilities of a `<features/>` element; nil if it has none.
    init?(_ features: Element) {
        guard let caps = features.firstChild(where: { $0.namespace == .capabilities }),
            let node = caps.attribute("node"), let version = caps.attribute("ver")
        else { return nil }
        (self.node, self.version) = (node, version)
    }

    /// Reads the capabilities of a `<features/>` element as it was received; nil if it has none.
    init?(features: [UInt8]) {
        let parsed = try? StanzaParser().parse(features.span, root: StanzaForm.clientDeclarations)
        guard let parsed, let found = Capabilities(parsed) else { return nil }
        self = found
    }

    /// Binds the recorded values to those of the live server: the hash, and the node of a request.
    func bind(to live: Capabilities, in bindings: inout ValueBindings) {
        try? bindings.bind(version, to: live.version, .version)
        guard node != live.node else { return }
        try? bindings.bind("\(node)#\(version)", to: "\(live.node)#\(live.version)", .version)
    }
}
