import XMPPCore

/// What a `<features/>` element offers (RFC 6120 §4.3.2), for the log.
struct StreamFeaturesSummary {
    var names: [String] = []
    var mechanisms: [String] = []
    var isTLSRequired = false

    init(_ features: Element) {
        for feature in features.children {
            switch feature.namespace {
            case .sasl where feature.isNamed("mechanisms"):
                names.append("sasl")
                mechanisms += feature.children("mechanism", .sasl).map(\.text)
            case .sasl2 where feature.isNamed("authentication"):
                names.append("sasl2")
                mechanisms += feature.children("mechanism", .sasl2).map(\.text)
            case .tls:
                names.append("starttls")
                isTLSRequired = feature.child("required", .tls) != nil
            case .streamManagement, .streamManagement2: names.append("sm")
            case .clientState: names.append("csi")
            case .saslChannelBinding: names.append("channel-binding")
            case .iqAuthFeature: names.append("iq-auth")
            case .registerFeature: names.append("register")
            case .compressionFeature: names.append("compression")
            default: names.append(feature.name)
            }
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
            case "sasl", "sasl2": "\(name) (\(mechanisms.joined(separator: " ")))"
            default: name
            }
        }
        return "features: " + offered.joined(separator: ", ")
    }
}
