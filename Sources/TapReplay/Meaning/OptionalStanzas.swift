internal import XMPPCore

/// The reason why a server may omit a stanza, or send a stanza that was not recorded.
struct StanzaOption: Sendable, Hashable {
    /// The source, such as `XEP-0199 §4.1`; nil for a rule of a noise file that names no source.
    let source: String?
    /// Whether the server may send the stanza more often than recorded.
    let isRepeatable: Bool

    init(_ source: String?, isRepeatable: Bool = true) {
        self.source = source
        self.isRepeatable = isRepeatable
    }
}

/// Finds the stanzas of one session that its server may send or omit, by the rules and by the state of the session.
///
/// Pass all stanzas in order to ``option(_:_:)``, which keeps track of the roster and of available entities.
struct OptionalStanzas: Sendable {
    /// The roles of the addresses that stanzas name.
    struct Roles {
        /// Returns whether a full JID is that of a played client.
        let isPlayed: (String) -> Bool
        /// Returns whether a bare JID is that of a chat room (XEP-0045).
        var isRoom: (String) -> Bool = { _ in false }
    }

    private let rules: NoiseRules
    /// The items of the roster in canonical form, by JID.
    private var roster: [String: String] = [:]
    /// For the hash of each available entity, a hash of its last presence without optional elements.
    private var available: [UInt64: UInt64] = [:]

    init(rules: NoiseRules) { self.rules = rules }

    /// Returns why the server may omit a stanza that it sends to the client, or may add it; nil if the stanza is
    /// mandatory. Answers are never optional (RFC 6120 §8.2.3).
    mutating func option(_ stanza: StanzaForm, _ roles: Roles) -> StanzaOption? {
        if let query = stanza.payload, query.namespace == .roster, stanza.kind == .iq {
            let isUnchanged = follow(query, isPush: stanza.type == "set")
            if isUnchanged { return StanzaOption("RFC 6121 §2.1.6: a roster push without a change") }
        }
        let option = stanza.kind == .presence ? follow(presence: stanza, roles) : nil
        return option ?? Self.option(stanza, rules, roles)
    }

    /// Updates the available entities for a presence stanza, and returns why it is optional; nil if the earlier
    /// presence gives no reason.
    private mutating func follow(presence stanza: StanzaForm, _ roles: Roles) -> StanzaOption? {
        guard let from = stanza.from else { return nil }
        let sender = Hash.of(from.utf8Span.span, seed: 1)
        let children = stanza.element.children
        switch stanza.type {
        case nil:
            let content = children.reduce(0 as UInt64) { sum, child in
                guard rules.optional(child, in: [stanza.element]) == nil else { return sum }
                return sum &+ Hash.of(StanzaForm(child).canonical.span, seed: 2)
            }
            let last = available.updateValue(content, forKey: sender)
            guard last == content, children.contains(where: { $0.matches("x", .vCardUpdate) }) else { return nil }
            return StanzaOption("XEP-0398 §3: presence again, with the hash of an avatar")
        case "unavailable":
            let wasAvailable = available.removeValue(forKey: sender) != nil
            guard !wasAvailable, !roles.isPlayed(from), !children.contains(where: { $0.namespace == .mucUser }) else {
                return nil
            }
            return StanzaOption("RFC 6121 §4.3.2: presence of a contact that is not available")
        default: return nil
        }
    }

    /// Returns why a server may omit or add a stanza, judging by the stanza alone.
    static func option(_ stanza: StanzaForm, _ rules: NoiseRules, _ roles: Roles) -> StanzaOption? {
        guard stanza.kind != .nonza, stanza.kind != .iq || stanza.type == "get" || stanza.type == "set" else {
            return nil
        }
        let occurrences = rules.occurrences(of: stanza.element)
        if occurrences.mayBeAbsent {
            return StanzaOption(occurrences.source, isRepeatable: occurrences.isAnyNumber)
        }
        switch stanza.kind {
        case .presence where isOfOtherResource(stanza) && !(stanza.from.map(roles.isPlayed) ?? false):
            return StanzaOption("RFC 6121 §4.2.2: presence of another resource of the account")
        case .presence
        where (stanza.type == nil || stanza.type == "unavailable") && stanza.from.map(roles.isRoom) == true:
            return StanzaOption("XEP-0486 §3: presence of a room itself")
        case .message:
            if let forwarded = carbon(stanza.element) {
                let addresses = [forwarded.attribute("from"), forwarded.attribute("to")].compactMap { $0 }
                guard !addresses.contains(where: roles.isPlayed) else { return nil }
                return StanzaOption("XEP-0280 §6: a copy of a message of clients that are not played")
            }
            return isNotice(stanza) ? StanzaOption("RFC 6120 §8.1.2.1: a notice of the server") : nil
        default: return nil
        }
    }

    /// Updates the roster for a roster result or push.
    ///
    /// - Returns: Whether the stanza is a push that changes nothing.
    private mutating func follow(_ query: Element, isPush: Bool) -> Bool {
        var isChanged = false
        for item in query.children("item", .roster) {
            guard let jid = item.attribute("jid") else { continue }
            let form = StanzaForm(item).text
            if roster.updateValue(form, forKey: jid) != form { isChanged = true }
        }
        return isPush && !isChanged
    }

    private static func isOfOtherResource(_ stanza: StanzaForm) -> Bool {
        guard stanza.type == nil || stanza.type == "unavailable", let from = stanza.from, let to = stanza.to,
            let slash = from.firstIndex(of: "/")
        else { return false }
        return to.prefix { $0 != "/" } == from[..<slash] && to != from
    }

    /// Returns the message that a carbon copy contains (XEP-0280); nil for other messages.
    private static func carbon(_ message: Element) -> Element? {
        message.firstChild { $0.namespace == .carbons }?.child("forwarded", .forward)?.firstChild
    }

    /// Returns whether the account's own domain sent the message.
    private static func isNotice(_ stanza: StanzaForm) -> Bool {
        guard let from = stanza.from, !from.contains("@"), let at = stanza.to?.firstIndex(of: "@") else { return false }
        return stanza.to?[at...].dropFirst().prefix { $0 != "/" }.elementsEqual(from) == true
    }
}
