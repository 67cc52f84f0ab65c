internal import XMPPCore

/// The capabilities that a server announces in its stream features (XEP-0115 §6.3).
///
/// A client that queries the capabilities names the recorded node and hash, so a replay must send those of the live
/// server.
package struct Capabilities: Sendable, Hashable {
    /// The `node` attribute: a URI that identifies the server software.
    let node: String
    /// The `ver` attribute: the hash of the supported features.
    let version: String

    /// Reads the capabilities of a `<features/>` element; nil if it has none.
    init?(_ features: Element) {
        guard let caps = features.firstChild(where: { $0.namespace == .capabilities }),
            let node = caps.attribute("node"), let version = caps.attribute("ver")
        else { return nil }
        (self.node, self.version) = (node, version)
    }

    /// Parses a `<features/>` element and reads its capabilities; nil if it cannot be parsed or has none.
    init?(features: [UInt8]) {
        let parsed = try? StanzaParser().parse(features.span, root: StanzaForm.clientDeclarations)
        guard let parsed, let found = Capabilities(parsed) else { return nil }
        self = found
    }

    /// Binds the recorded hash, and the recorded node of a capabilities query, to the values of the live server.
    func bind(to live: Capabilities, in bindings: inout ValueBindings) {
        try? bindings.bind(version, to: live.version, .version)
        guard node != live.node else { return }
        try? bindings.bind("\(node)#\(version)", to: "\(live.node)#\(live.version)", .version)
    }
}
