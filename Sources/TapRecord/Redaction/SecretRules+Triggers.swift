package import XMPPCore

/// A name for which a rule fires.
package struct SecretTrigger: Sendable, CustomStringConvertible {
    /// Local name of the element; nil is any.
    package var element: String?
    /// Namespace of the element; nil is any.
    package var namespace: Namespace?
    /// The attribute that makes it fire; nil is the element by itself.
    package var attribute: String?

    /// As `{namespace}element@attribute`.
    package var description: String {
        "{\(namespace.map { "\($0)" } ?? "*")}\(element ?? "*")\(attribute.map { "@\($0)" } ?? "")"
    }
}

extension Redactor {
    /// Every name for which a rule hides something. The scanner's sieve must let each pass, or the rule is never asked.
    package static var triggers: [SecretTrigger] {
        SecretRules.all.filter(\.hides).map { rule in
            SecretTrigger(element: rule.name.map(\.description), namespace: rule.namespace, attribute: nil)
        }
            + SecretRules.attributes.map { attribute in
                SecretTrigger(element: nil, namespace: nil, attribute: attribute.name.description)
            }
    }
}

extension SecretRule {
    /// Whether the rule hides anything by itself.
    fileprivate var hides: Bool {
        switch content {
        case .inherited, .shown: !attributes.isEmpty
        // Of a field that is no secret nothing is hidden, and a field passes the sieve itself.
        case .value: false
        case .secret, .sized, .guarded, .sasl, .url, .header, .field, .notification, .pair, .registration: true
        }
    }
}
