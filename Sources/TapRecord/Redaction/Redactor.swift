package import XMPPCore

/// Determines which parts of the bytes on the wire may be shown, and removes the secrets.
///
/// Belongs to one event loop and is shared by its sessions, like ``StanzaParser``. It works on the structure of the
/// item's own bytes, so that everything except the secrets is unchanged; an item that cannot be parsed to its end is
/// hidden completely. Placeholders of an earlier redaction are kept, so that redacting again changes nothing.
package final class Redactor {
    /// The redaction policy.
    package let policy: RedactionPolicy

    let registry: SecretRegistry

    private var walk: RedactionWalk

    /// Creates a redactor. The redactors of a run share the numbering of secrets through `registry`.
    package init(policy: RedactionPolicy, registry: SecretRegistry) {
        self.policy = policy
        self.registry = registry
        walk = RedactionWalk(policy, registry)
    }

    /// Redacts the decoder's last event.
    package func disclose(_ event: StreamEvent, of decoder: borrowing StreamDecoder) -> Disclosure {
        guard policy != .none else { return .verbatim }
        switch event.kind {
        case .fragment, .fault, .incomplete: return .withheld
        case .item(let kind):
            guard !event.isTruncated else { return .withheld }
            guard kind == .element || kind == .header, event.head.mayContainSecret || policy.hidesTexts else {
                return .verbatim
            }
            return walk.redact(decoder, isHeader: kind == .header)
        }
    }

    /// Returns the part of an item that may be shown. The item is outside a stream, so it declares all its prefixes
    /// itself.
    package func disclose(item: Span<UInt8>) -> Disclosure {
        guard policy != .none else { return .verbatim }
        return walk.redact(item: item)
    }

    /// Returns the part of an event's head that may be shown if the event's bytes are withheld: everything except the
    /// id of a nonza, which may allow a session to be resumed. If only metadata may be shown, all ids and addresses are
    /// removed too, because pseudonyms do not fit into the head.
    package func disclose(_ head: StanzaHead) -> StanzaHead {
        guard policy != .none else { return head }
        var head = head
        if head.kind == .nonza || policy == .metadata { head.id = nil }
        if policy == .metadata {
            head.from = nil
            head.to = nil
        }
        return head
    }

    /// Redacts the text of an error or a failure: hides only keys and tokens in URLs.
    ///
    /// Used for texts that are shown beside the item that contains them.
    package func disclose(text: String) -> String {
        guard policy != .none else { return text }
        guard policy != .metadata else { return Placeholder.text(.text, size: text.utf8.count) }
        return hideKeys(in: text) ?? text
    }

    /// Returns a text without the keys and tokens of its URLs; nil if it has none.
    func hideKeys(in text: String) -> String? {
        guard SecretText.mayContainSecret(text.utf8Span.span) else { return nil }
        let bytes = Array(text.utf8)
        var shown: [UInt8] = []
        var position = 0
        for find in SecretText.find(in: bytes.span, registry) {
            let secret = bytes.span.extracting(find.range)
            guard !Placeholder.isPlaceholder(secret) else { continue }
            shown += bytes[position..<find.range.lowerBound]
            Placeholder.append(find.kind, registry.number(of: secret), size: nil, to: &shown)
            registry.count(find.kind)
            position = find.range.upperBound
        }
        guard position > 0 else { return nil }
        return String(decoding: shown + bytes[position...], as: UTF8.self)
    }

    /// Returns the text to show for a log line that is not an item. The structure of the line is unknown, so a line
    /// that contains `<` or the name of a secret is replaced by a placeholder.
    package func disclose(line: Span<UInt8>) -> String {
        let text = line.string()
        guard policy != .none else { return text }
        let mayHaveSecrets = line.indices.contains { line[$0] == 0x3C } || SecretNames.mayOccur(in: line)
        guard !mayHaveSecrets, !CredentialName.occurs(in: line), !policy.hidesTexts else {
            return Placeholder.text(.text, size: line.count)
        }
        return disclose(text: text)
    }

    /// Returns the excerpt of unparsable data that an error may show: up to `limit` bytes around `offset`. It is empty
    /// if `bytes` contain a name of the catalogue or a key in a URL.
    package func excerpt(of bytes: Span<UInt8>, around offset: Int, limit: Int = 120) -> ByteRange? {
        guard offset >= 0, offset <= bytes.count else { return nil }
        guard
            policy == .none
                || !policy.hidesTexts && !SecretNames.mayOccur(in: bytes) && !CredentialName.occurs(in: bytes)
        else { return nil }
        let start = max(0, offset - limit / 2)
        return ByteRange(start, min(bytes.count, start + limit))
    }
}

// Pseudonyms, used if only metadata may be shown: the same address has the same pseudonym throughout a run.
extension Redactor {
    /// Returns an address as it may be shown outside items. If only metadata may be shown, this is the pseudonym that
    /// items show too, or a placeholder if the text is not an address.
    package func disclose(address: String) -> String {
        guard policy == .metadata else { return address }
        return registry.pseudonym(of: address) ?? Placeholder.text(.address, size: address.utf8.count)
    }

    /// Returns whether an address may be shown unchanged.
    package func shows(address: String?) -> Bool { address.map { disclose(address: $0) == $0 } ?? true }

    /// Returns the shown form of a login name at a domain: the local part of the address's pseudonym.
    package func disclose(user: String, at domain: String?) -> String {
        guard policy == .metadata else { return user }
        let address = user.contains("@") ? user : "\(user)@\(domain ?? "unknown.invalid")"
        guard let pseudonym = registry.pseudonym(of: address) else {
            return Placeholder.text(.address, size: user.utf8.count)
        }
        return user.contains("@") ? pseudonym : String(pseudonym.prefix { $0 != "@" })
    }

    /// Redacts a name that a user has chosen, such as a resource.
    package func disclose(name: String) -> String {
        policy == .metadata ? Placeholder.text(.value, size: name.utf8.count) : name
    }
}

extension SecretRegistry {
    /// Returns `anon-1@DOMAIN/anon-2` for an address, or the domain itself if the address has no other part; nil if the
    /// text is not an address.
    func pseudonym(of text: String) -> String? {
        let address = Address(text)
        guard address.jid != nil else { return nil }
        if address.local == nil, address.resource == nil { return text }
        let bare = address.comparableBare
        var pseudonym = bare.split(separator: "@", maxSplits: 1).last.map(String.init) ?? address.domain
        if address.local != nil { pseudonym = "anon-\(number(of: bare))@\(pseudonym)" }
        if let resource = address.resource { pseudonym += "/anon-\(number(of: "\(bare)/\(resource)"))" }
        return pseudonym
    }

    private func number(of text: String) -> UInt32 {
        let bytes = Array(text.utf8)
        return self.number(of: bytes.span)
    }
}
