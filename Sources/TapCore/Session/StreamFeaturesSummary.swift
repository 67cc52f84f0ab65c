import XMPPCore

/// What a `<features/>` element offers (RFC 6120 §4.3.2), in the words of the log and in the server's order.
struct StreamFeaturesSummary {
    let names: [String]
    /// The mechanisms of SASL, then those of SASL2.
    let mechanisms: [String]
    private let isTLSRequired: Bool
    /// Dialback's failures are told by errors and need not end the stream (XEP-0220 §2.4.2).
    private let tellsDialbackErrors: Bool

    init(_ features: StreamFeatures) {
        names = features.element.children.map(Self.name)
        mechanisms = features.mechanisms + (features.sasl2Mechanisms ?? [])
        isTLSRequired = features.startTLS == .required
        tellsDialbackErrors =
            features.element.child("dialback", .dialbackFeature)?.child("errors", .dialbackFeature) != nil
    }

    /// The field's word for a feature; the element's name where there is none.
    private static func name(of feature: Element) -> String {
        switch feature.namespace {
        case .sasl where feature.isNamed("mechanisms"): "sasl"
        case .sasl2 where feature.isNamed("authentication"): "sasl2"
        case .tls: "starttls"
        case .streamManagement, .streamManagement2: "sm"
        case .clientState: "csi"
        case .saslChannelBinding: "channel-binding"
        case .iqAuthFeature: "iq-auth"
        case .registerFeature: "register"
        case .compressionFeature: "compression"
        default: feature.name
        }
    }

    var facts: Facts {
        var facts: Facts = ["features": .strings(names)]
        if !mechanisms.isEmpty { facts["mechanisms"] = .strings(mechanisms) }
        if isTLSRequired { facts["tls_required"] = true }
        return facts
    }

    var words: String {
        guard !names.isEmpty else { return "features: none" }
        let offered = names.map { name in
            switch name {
            case "starttls" where isTLSRequired: "starttls (required)"
            case "dialback" where tellsDialbackErrors: "dialback (errors)"
            case "sasl", "sasl2": "\(name) (\(mechanisms.joined(separator: " ")))"
            default: name
            }
        }
        return "features: " + offered.joined(separator: ", ")
    }
}
