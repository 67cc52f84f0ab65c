internal import TapCore
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

// What is found, in words.
extension ProbeReport {
    /// The certificate: whom it is for, who issued it, until when.
    mutating func noteCertificate(_ parameters: TLSParameters, at now: Timestamp) {
        guard let certificate = parameters.certificate else { return }
        let names = certificate.names.all
        let shown = names.prefix(6).joined(separator: ", ")
        let rest = names.count > 6 ? " and \(names.count - 6) more" : ""
        let issuer = certificate.issuer == certificate.subject ? "itself" : certificate.issuer
        let days = certificate.daysLeft(at: now)
        let print = certificate.fingerprintText
        let middle = print.index(print.startIndex, offsetBy: min(48, print.count))
        var lines = [
            "for \(names.isEmpty ? "no name" : shown + rest)", "issued by \(issuer)",
            "\(certificate.key), valid until \(certificate.notAfter.text.prefix(10)), \(Self.left(days))",
            "SHA-256 \(print[..<middle])", "        \(print[middle...])",
        ]
        let faults = parameters.overlooked.map(\.words)
        if !faults.isEmpty { lines = ["not trusted: \(faults.joined(separator: "; "))"] + lines }
        var details = certificate.details
        details["days_left"] = .integer(Int64(days))
        if !faults.isEmpty { details["faults"] = .strings(parameters.overlooked.map(\.name)) }
        let outcome: Step.Outcome = faults.isEmpty ? (days < Self.fewDays ? .note : .ok) : .failed
        add(.certificate, outcome, lines, took: nil, details)
    }

    /// Days that are too few to be at ease: certificates of 90 days are renewed when a third is left.
    static let fewDays = 14

    private static func left(_ days: Int) -> String {
        switch days {
        case ..<0: "expired"
        case 0: "less than a day left"
        case 1: "1 day left"
        default: "\(days) days left"
        }
    }

    /// What the login may be done by.
    mutating func noteOffer(_ features: StreamFeatures, took duration: Int64) {
        isOfferSeen = true
        if tls == nil {
            add(.startTLS, .failed, ["the server does not offer TLS: the session continues in clear text"])
        }
        var lines: [String] = []
        var details: Attributes = [:]
        if !features.mechanisms.isEmpty {
            lines.append("SASL: \(features.mechanisms.joined(separator: " "))")
            details["mechanisms"] = .strings(features.mechanisms)
        }
        if let mechanisms = features.sasl2Mechanisms {
            var inline = features.inlineFeatures.map(\.name)
            if !features.tokenMechanisms.isEmpty { inline.append("tokens") }
            let more = inline.isEmpty ? "" : " (with \(inline.joined(separator: ", ")))"
            lines.append("SASL2: \(mechanisms.joined(separator: " "))\(more)")
            details["sasl2_mechanisms"] = .strings(mechanisms)
        }
        if let types = features.channelBindings {
            lines.append("channel binding: \(types.isEmpty ? "none" : types.joined(separator: " "))")
            details["bindings"] = .strings(types)
        }
        if features.offersRegistration { lines.append("offers account registration") }
        details["own_bindings"] = .strings(bindings)
        if lines.isEmpty { lines = ["no mechanism"] }
        add(.offer, features.allMechanisms.isEmpty ? .failed : .ok, lines, took: duration, details)
    }

    /// The other service of the domain.
    mutating func note(_ sight: QuickCheck.Sight) {
        let kind = isDirect ? "STARTTLS" : "direct TLS"
        let place = sight.address.map { "\(kind) at \($0)" } ?? kind
        guard let parameters = sight.parameters else {
            isAlternativeSound = false
            let why = sight.trouble ?? "TLS failed"
            return add(.alternative, .failed, ["\(place): \(why)"], took: sight.duration)
        }
        var words = "\(place): \(parameters.version)"
        let isSame = parameters.certificate?.fingerprint == tls?.certificate?.fingerprint
        words += isSame ? ", same certificate" : ", different certificate"
        if !isSame, let certificate = parameters.certificate {
            words +=
                ", valid until \(certificate.notAfter.text.prefix(10)), \(Self.left(certificate.daysLeft(at: began)))"
        }
        let faults = parameters.overlooked.map(\.words)
        if !faults.isEmpty, !isSame { words += "; not trusted: \(faults.joined(separator: "; "))" }
        isAlternativeSound = faults.isEmpty
        add(.alternative, faults.isEmpty ? .ok : .failed, [words], took: sight.duration, parameters.details)
    }

    mutating func noteLogin(
        _ choice: LoginChoice,
        _ signatures: (mechanisms: SCRAMClient.Signature, version: SCRAMClient.Signature)?,
        took duration: Int64
    ) {
        let isSCRAM = choice.mechanism.hasPrefix("SCRAM")
        var lines = [
            "\(choice.words)\(isSCRAM ? "; both sides proved that they know the password" : "; the server received the password")"
        ]
        if let remark = choice.remark { lines.append(remark) }
        var details: Attributes = ["mechanism": .string(choice.mechanism)]
        details["profile"] = choice.profile == .sasl ? "sasl" : "sasl2"
        if case .bound(let binding) = choice.binding { details["binding"] = .string(binding.type) }
        add(.login, choice.remark == nil && isSCRAM ? .ok : .note, lines, took: duration, details)
        guard let signatures, isSCRAM else { return }
        var signed: [String] = []
        if signatures.mechanisms == .genuine { signed.append("the list of mechanisms (XEP-0474)") }
        if signatures.version == .genuine { signed.append("the TLS version (XEP-0515)") }
        guard !signed.isEmpty else { return }
        add(.downgrade, .ok, ["the server signs \(signed.joined(separator: " and ")), and it matches"])
    }
}

extension LoginChoice {
    /// Mechanism and binding for people.
    var words: String {
        let profile = profile == .sasl ? "" : " by SASL2"
        guard case .bound(let binding) = binding else { return mechanism + profile }
        return "\(mechanism)\(profile), channel binding \(binding.type)"
    }
}

extension CertificateInfo {
    /// Whole days until it expires; negative if it has expired.
    func daysLeft(at now: Timestamp) -> Int {
        let seconds = notAfter.seconds - now.nanoseconds / 1_000_000_000
        return Int((Double(seconds) / 86_400).rounded(.down))
    }
}

extension StreamFeatures {
    /// What is offered in either way.
    var allMechanisms: [String] { mechanisms + (sasl2Mechanisms ?? []).filter { !mechanisms.contains($0) } }
}
