import XMPPCore

// Start tags: the rule that applies, the secret attributes, and the treatment of the following text.
extension RedactionWalk {
    mutating func enter(_ item: Span<UInt8>) {
        let name = item.slice(reader.name)
        let outer = frames.last
        let outerGuard = outer?.guardKind
        if let outer, outer.isLocked, let kind = outerGuard {
            hideAttributes(item, as: kind)
            frames.append(Frame(text: .secret(kind), guardKind: kind, isLocked: true))
            return
        }
        let rule = rules.find(name, reader.namespace)
        var frame = Frame(text: outerGuard.map { .guarded($0) } ?? .shown, guardKind: outerGuard)
        var hidden = outerGuard
        switch rule?.content ?? .inherited {
        case .inherited:
            guard rule == nil, outerGuard == nil else { break }
            if reader.namespace.hasUnknownNames, let kind = CredentialName.kind(ofElement: name) {
                frame = Frame(text: .guarded(kind), guardKind: kind)
                hidden = kind
            } else if reader.namespace.isUnknown, outer?.guardsUnknown ?? false {
                frame = Frame(text: .guarded(.formSecret), guardKind: .formSecret)
                hidden = .formSecret
            }
        case .registration:
            frame.text = .guarded(.formSecret)
            frame.guardsUnknown = true
        case .shown:
            frame.text = .shown
            hidden = nil
        case .secret(let kind):
            frame = Frame(text: .secret(kind), guardKind: kind, isLocked: true)
            // No specification defines the attributes of this element: one of them may be the secret itself.
            if reader.namespace.isUnknown { hidden = kind }
        case .sized(let kind): frame = Frame(text: .sized(kind), guardKind: kind, isLocked: true)
        case .guarded(let kind):
            frame = Frame(text: .guarded(kind), guardKind: kind)
            hidden = kind
        case .sasl(let role):
            frame = Frame(text: .sasl(role), guardKind: .saslOther, isLocked: true)
            hidden = .saslOther
        case .url: if outerGuard == nil { frame.text = .query }
        case .header:
            if isSecretHeader(item) {
                frame = Frame(text: .secret(.httpHeader), guardKind: .httpHeader, isLocked: true)
            }
        case .field:
            if let kind = fieldKind(item) ?? registrationKind(item) {
                frame = Frame(text: .guarded(kind), guardKind: kind)
            }
        case .value:
            if let kind = outerGuard {
                frame = Frame(text: .secret(kind), guardKind: kind, isLocked: true)
                hidden = nil
            }
        case .notification: hideNode(item)
        case .pair:
            frame.pair = reader.tagRange.start
            let isPrivate = privatePairs.contains(reader.tagRange.start)
            if let kind = attribute("name", item).flatMap(CredentialName.kind) ?? (isPrivate ? .formSecret : nil) {
                frame.text = .guarded(kind)
                frame.guardKind = kind
                hidden = kind
            }
        }
        if let pair = outer?.pair, outerGuard == nil || privatePairs.contains(pair), name.equals("name") {
            frame.text = .pairName(pair)
        }
        if policy.hidesTexts { frame.text = hideText(frame.text, name) }
        frame.node = redactAttributes(item, rule, hidden: hidden)
        frames.append(frame)
    }

    /// Returns the treatment of text that is not a secret, if the policy hides more than secrets.
    private func hideText(_ text: Text, _ name: Span<UInt8>) -> Text {
        switch text {
        case .shown, .query:
            switch ContentPolicy.text(in: name, reader.namespace, policy) {
            case .shown: text
            case .hidden: .guarded(.text)
            case .address: .address
            case .word(let vocabulary): .word(vocabulary)
            }
        case .secret, .sized, .guarded, .sasl, .address, .word, .pairName: text
        }
    }

    /// Hides the value of an attribute that is not a secret, if the policy hides more than secrets; returns false if
    /// the value is shown.
    private mutating func hideValue(_ attribute: ItemReader.Attribute, _ item: Span<UInt8>) -> Bool {
        let name = item.slice(attribute.name)
        let value = meaning(attribute, item)
        switch ContentPolicy.value(of: name, reader.namespace, policy) {
        case .shown:
            // Any attribute may be an address, such as the id of an item (XEP-0402) or of a stanza.
            guard policy == .metadata, value.bytes.contains(0x40) else { return false }
            showPseudonym(of: value)
        case .hidden, .word: hide(value, .value)
        case .address: showPseudonym(of: value)
        }
        return true
    }

    // MARK: Attributes

    /// Hides the secrets among the attributes; returns the range of a `node` that is not secret.
    private mutating func redactAttributes(_ item: Span<UInt8>, _ rule: SecretRule?, hidden: SecretKind?) -> ByteRange?
    {
        var node: ByteRange?
        for index in 0..<reader.attributeCount {
            let attribute = reader.attribute(index, item)
            let name = item.slice(attribute.name)
            if attribute.isDeclaration || attribute.namespace == .xml { continue }
            if name.equals("mechanism"), reader.namespace.isSASL {
                mechanism = SASLMechanism(meaning(attribute, item).bytes.span)
            }
            if let part = secretPart(name, attribute.namespace, rule) {
                switch part {
                case .whole(let kind): hide(meaning(attribute, item), kind)
                case .query where policy == .metadata: hide(meaning(attribute, item), .value)
                case .query: hideQuery(in: meaning(attribute, item))
                }
            } else if let hidden, !(rule?.shown.contains { name.equals($0) } ?? false) {
                hide(meaning(attribute, item), hidden)
            } else {
                if !policy.hidesTexts || !hideValue(attribute, item) { hideKeys(in: meaning(attribute, item)) }
                if name.equals("node"), isPublication(item) { node = attribute.value }
            }
        }
        return node
    }

    /// Returns whether the element may name the node of a push notification (XEP-0357 §4, §6).
    private func isPublication(_ item: Span<UInt8>) -> Bool {
        guard reader.namespace == .pubsub || reader.namespace == .pubsubEvent else { return false }
        let name = item.slice(reader.name)
        return name.equals("publish") || name.equals("items") || name.equals("pubsub")
    }

    private mutating func hideAttributes(_ item: Span<UInt8>, as kind: SecretKind) {
        for index in 0..<reader.attributeCount {
            let attribute = reader.attribute(index, item)
            if attribute.isDeclaration || attribute.namespace == .xml { continue }
            hide(meaning(attribute, item), kind)
        }
    }

    private func secretPart(
        _ name: Span<UInt8>,
        _ namespace: Namespace,
        _ rule: SecretRule?
    ) -> SecretRule.Attribute.Part? {
        if let rule {
            for attribute in rule.attributes where name.equalsIgnoringCase(attribute.name) { return attribute.part }
        }
        if let attribute = rules.find(attribute: name) { return attribute.part }
        guard namespace == .other || namespace == .none && reader.namespace.isUnknown else { return nil }
        return CredentialName.kind(ofAttribute: name).map { .whole($0) }
    }

    /// Returns the decoded value of an attribute; valid until the next call.
    private mutating func meaning(_ attribute: ItemReader.Attribute, _ item: Span<UInt8>) -> WireText {
        value.removeAll()
        value.append(text: attribute.value, of: item)
        return value
    }

    private mutating func attribute(_ wanted: StaticString, _ item: Span<UInt8>) -> [UInt8]? {
        for index in 0..<reader.attributeCount {
            let attribute = reader.attribute(index, item)
            guard attribute.namespace == .none, item.slice(attribute.name).equals(wanted) else { continue }
            return meaning(attribute, item).bytes
        }
        return nil
    }

    // MARK: Special elements

    /// Returns whether an HTTP header contains a credential, as `Authorization` and `Cookie` do. In an upload slot,
    /// every header except `Expires` is hidden, because no other one is public (XEP-0363 §5).
    private mutating func isSecretHeader(_ item: Span<UInt8>) -> Bool {
        let isSlot = reader.namespace == .httpUpload
        guard let name = attribute("name", item) else { return isSlot }
        let text = Self.lowered(name)
        if isSlot { return !text.span.equals("expires") }
        return text.span.holds(one: ["authorization", "cookie", "token", "secret", "api-key", "apikey", "signature"])
    }

    /// Returns the kind of secret in a form field; nil if there is none.
    private mutating func fieldKind(_ item: Span<UInt8>) -> SecretKind? {
        let type = attribute("type", item).map(Self.lowered)
        let name = attribute("var", item) ?? []
        let kind = CredentialName.kind(of: name)
        if type?.span.equals("text-private") ?? false {
            // A table of results describes the types of its fields once, usually before the values. If a value was
            // shown before its type, a second walk hides the value.
            if privateFields.insert(name).inserted, hasShownField { needsSecondWalk = true }
            return kind ?? .formSecret
        }
        if kind == nil, !name.isEmpty {
            if privateFields.contains(name) { return .formSecret }
            hasShownField = true
        }
        guard kind != nil, let type else { return kind }
        return type.span.equals("boolean") || type.span.equals("fixed") ? nil : kind
    }

    /// Returns the kind of secret in a field of a registration form (XEP-0077 §3.1); nil if the field is public or the
    /// form is not a registration.
    private mutating func registrationKind(_ item: Span<UInt8>) -> SecretKind? {
        guard frames.contains(where: \.guardsUnknown), let name = attribute("var", item) else { return nil }
        return Self.publicFields.contains { name.span.equals($0) } ? nil : .formSecret
    }

    /// The public fields of XEP-0077 §14.1, and the name of the form.
    private static let publicFields: [StaticString] = [
        "FORM_TYPE", "username", "nick", "name", "first", "last", "email", "address", "city", "state", "zip", "phone",
        "url", "date", "misc", "text",
    ]

    /// Hides the node to which a push notification is published; the node precedes this element.
    private mutating func hideNode(_ item: Span<UInt8>) {
        for index in frames.indices.reversed() {
            guard let node = frames[index].node else { continue }
            value.removeAll()
            value.append(text: node, of: item)
            hide(value, .pushNode)
            frames[index].node = nil
        }
    }

    private static func lowered(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.allSatisfy({ $0 < 0x80 }) else {
            return Array(String(decoding: bytes, as: UTF8.self).lowercased().utf8)
        }
        return bytes.map { $0 &- 0x41 < 26 ? $0 | 0x20 : $0 }
    }
}
