internal import TapRecord
import XMPPCore

/// A summary of a `<features/>` element (RFC 6120 §4.3.2) for the log, in the server's order.
struct StreamFeaturesSummary {
    let names: [String]
    private let mechanisms: [String]
    private let mechanisms2: [String]
    private let isTLSRequired: Bool
    /// Whether the server reports failures of dialback as errors that need not end the stream (XEP-0220 §2.4.2).
    private let reportsDialbackErrors: Bool

    /// The SASL and SASL2 mechanisms.
    var allMechanisms: [String] { mechanisms + mechanisms2 }

    init(_ features: StreamFeatures) {
        names = features.element.children.map(Self.name)
        mechanisms = features.mechanisms
        mechanisms2 = features.sasl2Mechanisms ?? []
        isTLSRequired = features.startTLS == .required
        reportsDialbackErrors =
            features.element.child("dialback", .dialbackFeature)?.child("errors", .dialbackFeature) != nil
    }

    /// Returns the usual short name for a feature; the name of the element if there is none.
    private static func name(of feature: Element) -> String {
        switch feature.namespace {
        case .sasl where feature.isNamed("mechanisms"): "sasl"
        case .sasl2 where feature.isNamed("authentication"): "sasl2"
        case .tls: "starttls"
        case .streamManagement: "sm:3"
        case .streamManagement2: "sm:2"
        case .clientState: "csi"
        case .saslChannelBinding: "channel-binding"
        case .iqAuthFeature: "iq-auth"
        case .registerFeature: "register"
        case .compressionFeature: "compression"
        default: feature.name
        }
    }

    var details: Attributes {
        var details: Attributes = ["features": .strings(names)]
        if !mechanisms.isEmpty { details["mechanisms"] = .strings(mechanisms) }
        if !mechanisms2.isEmpty { details["sasl2_mechanisms"] = .strings(mechanisms2) }
        if isTLSRequired { details["tls_required"] = true }
        return details
    }

    var summary: String {
        guard !names.isEmpty else { return "offers nothing" }
        let offered = names.map { name in
            switch name {
            case "starttls" where isTLSRequired: "starttls (required)"
            case "dialback" where reportsDialbackErrors: "dialback (errors)"
            case "sasl": "\(name) (\(mechanisms.joined(separator: " ")))"
            case "sasl2": "\(name) (\(mechanisms2.joined(separator: " ")))"
            // Elements with abbreviated names: XEP-0115 §6.3, RFC 6121 §2.6.1 and §3.4.
            case "c": "capabilities"
            case "ver": "roster versioning"
            case "sub": "subscription pre-approval"
            default: name
            }
        }
        return "offers " + offered.joined(separator: ", ")
    }
}
