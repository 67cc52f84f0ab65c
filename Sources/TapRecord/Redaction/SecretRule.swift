import XMPPCore

/// The secrets in an element, by its name.
///
/// Rules match by namespace and local name, at any depth: at the top level, in a carbon, a forwarded message, an
/// archive result, a pubsub item. A class, since rules are passed around and never change.
final class SecretRule: Sendable {
    /// The treatment of the text directly inside an element, and of the elements inside it.
    enum Content: Sendable {
        /// Treated as the content of the outer element: shown, unless that element guards its content.
        case inherited
        /// Shown, even if an outer element guards its content; inner elements are guarded as before.
        case shown
        /// The text and all inner elements are secrets.
        case secret(SecretKind)
        /// Like ``secret``, and the placeholder contains the number of bytes.
        case sized(SecretKind)
        /// Text and attributes are secrets here and in all descendants, except for those that a rule shows.
        case guarded(SecretKind)
        /// A SASL message in base64.
        case sasl(SASLMessage.Role)
        /// A URL with a secret query.
        case url
        /// An HTTP header, a secret by its `name` attribute.
        case header
        /// A field of a data form, a secret by its `var` and `type` attributes.
        case field
        /// A value or option of a form's field.
        case value
        /// An element with a value and its name, which determines whether the value is a secret: in an attribute
        /// `name`, or in an element `name` beside the value.
        case pair
        /// The fields of a registration: those without a rule are secrets.
        case registration
        /// A push notification: the node to which it is published is a secret (XEP-0357 §4).
        case notification
    }

    struct Attribute: Sendable {
        enum Part: Sendable {
            case whole(SecretKind)
            case query
        }

        var name: StaticString
        var part: Part

        init(_ name: StaticString, _ kind: SecretKind) {
            self.name = name
            part = .whole(kind)
        }

        init(queryOf name: StaticString) {
            self.name = name
            part = .query
        }
    }

    /// Local name; nil for any element of the namespace.
    let name: StaticString?
    /// Namespace; nil for any.
    let namespace: Namespace?
    let content: Content
    /// Attributes that are secrets, with or without a prefix.
    let attributes: [Attribute]
    /// Attributes that are shown if content is guarded; all others are then hidden.
    let shown: [StaticString]

    init(
        _ name: StaticString?,
        _ namespace: Namespace?,
        _ content: Content = .inherited,
        attributes: [Attribute] = [],
        shown: [StaticString] = []
    ) {
        self.name = name
        self.namespace = namespace
        self.content = content
        self.attributes = attributes
        self.shown = shown
    }
}

/// All rules, found by name.
struct SecretRules: Sendable {
    static let all: [SecretRule] = authentication + session + accounts + content

    static let table = SecretRules(all)

    /// Attributes that are secrets on every element.
    static let attributes: [SecretRule.Attribute] = [
        .init("password", .password), .init("passwd", .password), .init("pwd", .icePassword),
        .init("ufrag", .iceFragment), .init("token", .token), .init("secret", .key), .init("access_token", .token),
        .init("previd", .smID), .init("newkey", .boshKey), .init("key-params", .mediaKey),
        .init("passphrase", .password), .init("passcode", .password), .init("credential", .key),
    ]

    /// Rules by length and first letter of their names.
    private let named: [[SecretRule]]
    /// Rules without a name, by the raw values of their namespaces.
    private let unnamed: [SecretRule?]
    /// A bit for the length of each name in ``attributes``.
    private let attributeLengths: UInt64

    init(_ rules: [SecretRule]) {
        var named = [[SecretRule]](repeating: [], count: 32 << 5)
        var unnamed = [SecretRule?](repeating: nil, count: 256)
        for rule in rules {
            if let name = rule.name {
                named[Self.slot(name.utf8CodeUnitCount, name.utf8Start[0])].append(rule)
            } else if let namespace = rule.namespace.map({ Int($0.rawValue) }) {
                unnamed[namespace] = unnamed[namespace] ?? rule
            }
        }
        self.named = named
        self.unnamed = unnamed
        attributeLengths = Self.attributes.reduce(0) { $0 | 1 &<< UInt64($1.name.utf8CodeUnitCount) }
    }

    /// Returns the index of the rules for names with this length and first letter, in upper or lower case.
    @inline(__always)
    private static func slot(_ count: Int, _ first: UInt8) -> Int { min(count, 31) << 5 | Int(first & 31) }

    /// Returns the rule for an element: the rule for its name and namespace, otherwise that for its name, otherwise
    /// that for its namespace.
    ///
    /// If no rule has the name as written, rules that hide something are also found by the name regardless of its case.
    func find(_ name: Span<UInt8>, _ namespace: Namespace) -> SecretRule? {
        let other = unnamed[Int(namespace.rawValue)]
        guard !name.isEmpty else { return other }
        let rules = named[Self.slot(name.count, name[0])]
        guard !rules.isEmpty else { return other }
        var found: SecretRule?
        for rule in rules {
            guard let ruleName = rule.name, name.equals(ruleName) else { continue }
            if rule.namespace == namespace { return rule }
            if rule.namespace == nil { found = rule }
        }
        return found ?? Self.findIgnoringCase(name, namespace, rules) ?? other
    }

    private static func findIgnoringCase(
        _ name: Span<UInt8>,
        _ namespace: Namespace,
        _ rules: [SecretRule]
    ) -> SecretRule? {
        // Names in rules are in lower case; for vCards there are also rules in upper case.
        guard name.indices.contains(where: { name[$0] &- 0x41 < 26 }) else { return nil }
        var found: SecretRule?
        for rule in rules {
            if case .shown = rule.content { continue }
            guard let ruleName = rule.name, name.equalsIgnoringCase(ruleName) else { continue }
            if rule.namespace == namespace { return rule }
            if rule.namespace == nil { found = rule }
        }
        return found
    }

    /// Returns the rule of an attribute with that local name on any element; nil if its name does not make it a secret.
    func find(attribute name: Span<UInt8>) -> SecretRule.Attribute? {
        guard attributeLengths &>> UInt64(min(name.count, 63)) & 1 == 1 else { return nil }
        for attribute in Self.attributes where name.equalsIgnoringCase(attribute.name) { return attribute }
        return nil
    }
}
