internal import TapRecord
internal import XMPPCore

/// The subject of a divergence. It is used to find divergences with the same cause.
package struct DivergenceSubject: Sendable, Hashable {
    /// The stanzas of a divergence, with the recorded addresses.
    struct Stanzas {
        var recorded: StanzaForm?
        var live: StanzaForm?
        /// The request that both stanzas answer; nil for other stanzas, or if it is unknown.
        var request: StanzaForm?
        /// The account of the session.
        var account: JID?
        /// Whether the client sent the stanzas.
        var isSent = false
        /// Returns the recorded address for a live one.
        var address: (String) -> String = { $0 }
    }

    /// The divergence as a human-readable clause, with recorded addresses: `localhost no longer offers urn:xmpp:mam:2`.
    package internal(set) var title: String
    /// A locator of similar stanzas, for a noise rule about their occurrence. Nil for stanzas that a rule must not make
    /// optional: answers, presence, stanzas of other clients, and pushes that a protocol requires.
    let locator: String?
    /// The namespaces and bare addresses that the stanzas mention, sorted.
    let mentioned: [String]
    /// The namespaces and bare addresses that the server no longer provides, sorted.
    let lost: [String]

    /// Creates the subject of a divergence without stanzas.
    init(_ title: String) { (self.title, locator, mentioned, lost) = (title, nil, [], []) }

    /// Creates the subject of a divergence between stanzas.
    init(_ code: Divergence.Code, _ stanzas: Stanzas, _ differences: [ValueDifference]) {
        let reader = SubjectReader(code, stanzas, differences)
        title = reader.title
        locator = reader.locator
        mentioned = reader.mentioned.sorted()
        lost = reader.lost.sorted()
    }
}

private struct SubjectReader {
    let code: Divergence.Code
    let stanzas: DivergenceSubject.Stanzas
    let differences: [ValueDifference]
    /// The sender of the stanzas: its recorded address, or a description such as `the client`.
    private let sender: String

    init(_ code: Divergence.Code, _ stanzas: DivergenceSubject.Stanzas, _ differences: [ValueDifference]) {
        (self.code, self.stanzas, self.differences) = (code, stanzas, differences)
        let from = stanzas.recorded?.from ?? stanzas.live?.from.map(stanzas.address) ?? stanzas.request?.to
        sender = stanzas.isSent ? "the client" : from ?? stanzas.account?.domain ?? "the server"
    }

    private var form: StanzaForm? { stanzas.recorded ?? stanzas.live }

    // MARK: Subjects

    var mentioned: Set<String> {
        var found: Set<String> = []
        for stanza in [stanzas.recorded, stanzas.live, stanzas.request].compactMap(\.self) {
            for address in [stanza.from, stanza.to].compactMap({ $0 }) {
                let bare = bare(address)
                found.insert(bare)
                if let at = bare.firstIndex(of: "@") { found.insert(String(bare[at...].dropFirst())) }
            }
            for payload in stanza.element.children {
                collect(payload, &found)
                for child in payload.children { collect(child, &found) }
            }
        }
        return found
    }

    private func collect(_ element: Element, _ found: inout Set<String>) {
        if !element.isContent {
            found.insert(element.namespaceURI)
            // The feature `urn:xmpp:mam:2#extended` belongs to the protocol `urn:xmpp:mam:2`.
            found.insert(String(element.namespaceURI.prefix { $0 != "#" }))
        }
        if let jid = element.attribute("jid") { found.insert(bare(jid)) }
    }

    var lost: Set<String> {
        guard !stanzas.isSent, code == .changed || code == .missing && form.map(Self.isAnswer) == true else {
            return []
        }
        var found = Set(missing(named: "feature", "var"))
        found.formUnion(missing(named: "item", "jid").map(bare))
        if isRefused || code == .missing {
            if form?.kind == .iq, let payload = stanzas.request?.payload ?? stanzas.recorded?.payload {
                found.insert(payload.namespaceURI)
                for child in payload.children { collect(child, &found) }
            }
            // A room that refuses a presence, or a component that refuses a request, is not available.
            if form?.kind == .presence || !sender.contains("@") { found.insert(bare(sender)) }
        }
        // The account and its server, and very common namespaces, are too general to explain other divergences.
        let own = [stanzas.account?.bare.description, stanzas.account?.domain].compactMap(\.self)
        return found.subtracting(own).subtracting(Self.common)
    }

    /// Generic namespaces, which do not identify a service.
    private static let common: Set<String> = [
        "", Namespace.client.uri.description, Namespace.stanzaErrors.uri.description,
        Namespace.discoInfo.uri.description, Namespace.discoItems.uri.description, "http://jabber.org/protocol/disco",
        Namespace.dataForms.uri.description,
    ]

    /// Returns the recorded address without its resource, or without its nickname in a room.
    private func bare(_ address: String) -> String { String(stanzas.address(address).prefix { $0 != "/" }) }

    private static func isAnswer(_ form: StanzaForm) -> Bool {
        form.kind == .iq && (form.type == "result" || form.type == "error")
    }

    private var isRefused: Bool { stanzas.live?.type == "error" && stanzas.recorded.map { $0.type != "error" } == true }

    /// Returns the values of an attribute of the payload's child elements, without those that the live stanza also has.
    private func missing(named name: String, _ attribute: String) -> [String] {
        Self.values(stanzas.recorded, name, attribute, without: stanzas.live)
    }

    private static func values(_ one: StanzaForm?, _ name: String, _ attribute: String, without other: StanzaForm?)
        -> [String]
    {
        func values(_ form: StanzaForm?) -> [String] {
            (form?.payload?.children ?? []).compactMap { child in
                guard child.name == name else { return nil }
                return child.attributes.first { $0.namespaceURI.isEmpty && $0.name == attribute }?.value
            }
        }
        guard one?.type == "result", other?.type == "result" else { return [] }
        let others = Set(values(other))
        return values(one).filter { !others.contains($0) }
    }

    // MARK: Locator

    var locator: String? {
        guard !stanzas.isSent, let form, form.element.isOfServer, !Self.isAnswer(form), form.kind != .presence,
            let payload = form.payload, !payload.isContent, !Self.demanded.contains(payload.namespace),
            !payload.namespaceURI.contains(where: { $0.isWhitespace || "{}[]".contains($0) })
        else { return nil }
        let type = form.kind == .iq ? form.type.map { "[@type=\($0)]" } ?? "" : ""
        return "\(form.element.name)\(type)[{\(payload.namespaceURI)}\(payload.name)]"
    }

    /// Namespaces of pushes that a protocol requires after actions of clients: RFC 6121 §2.1.6, XEP-0191 §3.3, XEP-0060
    /// §7.1.2, XEP-0280 §6, XEP-0313 §4, XEP-0045 §10.2.1.
    private static let demanded: Set<Namespace> = [
        .mucUser, .roster, .blocking, .pubsubEvent, .carbons, .archive, .archive1, .archive0,
    ]

    // MARK: Title

    var title: String {
        switch code {
        case .changed, .collision: changed
        case .missing:
            form.map(Self.isAnswer) == true
                ? "\(sender) does not answer \(request)" : "no \(described(form)) from \(sender)"
        case .unexpected:
            form.map(Self.isAnswer) == true && stanzas.request != nil
                ? "\(sender) answers \(request) again" : "\(described(form)) from \(sender), which was not recorded"
        case .reordered: "\(described(form)) from \(sender) in another order"
        case .late: "\(described(form)) from \(sender) came late"
        case .slower: "\(sender) takes longer to answer \(request)"
        case .session, .undecided, .unsent: "\(described(form)) from \(sender)"
        }
    }

    private var changed: String {
        let payload = stanzas.recorded?.payload
        if isRefused { return "\(sender) refuses \(request)\(condition(stanzas.live).map { ": \($0)" } ?? "")" }
        if stanzas.recorded?.type == "error", stanzas.live?.type != "error" {
            return
                "\(sender) accepts \(request), which it refused\(condition(stanzas.recorded).map { " as \($0)" } ?? "")"
        }
        if let old = condition(stanzas.recorded), let new = condition(stanzas.live), old != new {
            return "\(sender) refuses \(request): \(new) instead of \(old)"
        }
        if payload?.namespace == .discoInfo {
            let gone = missing(named: "feature", "var")
            guard gone.isEmpty else { return "\(sender) no longer offers \(Self.listed(gone))" }
            let new = Self.values(stanzas.live, "feature", "var", without: stanzas.recorded)
            guard new.isEmpty else { return "\(sender) now offers \(Self.listed(new))" }
        }
        if payload?.namespace == .discoItems {
            let gone = missing(named: "item", "jid")
            guard gone.isEmpty else { return "\(sender) no longer lists \(Self.listed(gone))" }
        }
        guard let first = differences.first else { return "\(described(form)) from \(sender) differs" }
        let others = differences.count > 1 ? " and \(differences.count - 1) more" : ""
        let side = first.recorded == nil ? stanzas.live : stanzas.recorded
        let field = side.flatMap { Self.field(at: first.path, in: $0.element, PlacePath($0.element)) }
        let place = field.map { "the field \($0)" } ?? NoiseLearner.withoutNumbers(first.path)
        return "\(sender): \(place) differs\(others)"
    }

    /// Returns the `var` attribute of the data form field (XEP-0004) at a path, or around it; nil if the path is
    /// outside fields.
    private static func field(at path: String, in element: Element, _ place: PlacePath) -> String? {
        if element.matches("field", .dataForms) { return element.attribute("var") }
        for (child, number) in element.numberedChildren {
            let childPlace = place.child(child, number: number)
            guard path == childPlace.text || path.hasPrefix(childPlace.text + "/") else { continue }
            return field(at: path, in: child, childPlace)
        }
        return nil
    }

    /// Returns the first three values in sorted order, and the number of further ones.
    private static func listed(_ values: [String]) -> String {
        let more = values.count > 3 ? " and \(values.count - 3) more" : ""
        return values.sorted().prefix(3).joined(separator: ", ") + more
    }

    private func condition(_ form: StanzaForm?) -> String? {
        form?.element.child("error", .client)?.children.first { $0.namespace == .stanzaErrors }?.name
    }

    /// The label of the request that was answered or refused.
    private var request: String {
        guard form?.kind == .iq else { return "the \(form?.element.name ?? "stanza")" }
        let payload = stanzas.request?.payload ?? stanzas.recorded?.payload
        return payload.map(\.label) ?? "a request"
    }

    private func described(_ form: StanzaForm?) -> String {
        guard let form else { return "item" }
        let type = form.type.map { $0 == "chat" || $0 == "normal" ? "" : " \($0)" } ?? ""
        let payload = form.kind == .presence ? nil : form.payload.map { " with \($0.label)" }
        return "\(form.element.name)\(type)\(payload ?? "")"
    }
}
