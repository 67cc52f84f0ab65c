internal import TapCore
package import TapDiagnosis
package import TapRecord
package import TapSecurity
package import XMPPCore

/// The findings of a probe.
package struct ProbeReport: Sendable {
    /// One step on the way, for people and programs.
    package struct Step: Sendable, Hashable {
        /// Which step. The raw value is stable.
        package enum Name: String, Sendable, Hashable, CaseIterable {
            /// The domain's records and the server's addresses (RFC 6120 §3.2).
            case names
            case connection
            /// The server's stream, until its features.
            case stream
            /// STARTTLS (RFC 6120 §5).
            case startTLS = "starttls"
            case tls
            /// The server's certificate.
            case certificate
            /// The mechanisms offered for the login.
            case offer
            case login
            /// The server's signature over the offers that were seen (XEP-0474, XEP-0515).
            case downgrade
            case bind
            /// Stream management (XEP-0198).
            case streamManagement = "stream-management"
            /// A ping of the server (XEP-0199).
            case ping
            /// The server's description of itself (XEP-0030, XEP-0092).
            case server
            /// The other of the two services that the domain's records name.
            case alternative
        }

        /// How it went.
        package enum Outcome: String, Sendable, Hashable {
            case ok
            /// It went, and something about it is not as it should be.
            case note
            case failed
            /// It was not taken; why.
            case skipped
        }

        /// Which step.
        package let name: Name
        /// How it went.
        package let outcome: Outcome
        /// The findings, one per line, without secrets.
        package let lines: [String]
        /// Nanoseconds it took; nil if that is meaningless.
        package let duration: Int64?
        /// The same for programs.
        package let details: Attributes
    }

    /// The SRV records of one of a domain's services.
    package enum Service: Sendable {
        case unasked
        case none
        /// There is decidedly none (RFC 2782: `.`).
        case refused
        /// These servers, as `HOST:PORT (PRIORITY WEIGHT)`.
        case announced(Prose)
        /// The name servers do not answer.
        case unknown
    }

    /// How far it came.
    package enum Outcome: Sendable, Hashable {
        /// Logged in, bound, and ready for stanzas.
        case ready
        /// All that was to be looked at without a password was there.
        case offered
        case failed
    }

    /// The account of the probe.
    package let account: JID
    /// The steps in their order.
    package internal(set) var steps: [Step] = []
    /// How far it came.
    package internal(set) var outcome = Outcome.failed
    /// Why it failed; nil if it did not.
    package internal(set) var diagnosis: LoginDiagnosis?
    /// The records for a stream that can turn to TLS.
    package internal(set) var clearService = Service.unasked
    /// The records for TLS from the first byte on.
    package internal(set) var directService = Service.unasked
    /// Whether TLS began with the first byte.
    package internal(set) var isDirect = false
    /// The negotiated parameters; nil without TLS.
    package internal(set) var tls: TLSParameters?
    /// The features before TLS; nil with direct TLS.
    package internal(set) var clearFeatures: StreamFeatures?
    /// The features for the login: inside TLS, if there is TLS.
    package internal(set) var features: StreamFeatures?
    /// Types of channel binding that this connection has.
    package internal(set) var bindings: [String] = []
    /// Whether the server signed its offers; nil before its challenge.
    package internal(set) var mechanismSignature: SCRAMClient.Signature?
    /// Whether the server signed the version of TLS; nil before its challenge.
    package internal(set) var versionSignature: SCRAMClient.Signature?
    /// The result of enabling stream management; nil before a session is ready.
    package internal(set) var streamManagement: StreamManagement?
    /// The bound address.
    package internal(set) var jid: String?
    /// Nanoseconds from the first question to a session that is ready.
    package internal(set) var timeToReady: Int64?
    /// When it was made.
    package internal(set) var began = Timestamp(nanoseconds: 0)
    /// The offered mechanisms have been seen.
    var isOfferSeen = false
    /// Whether the other service works, if there is one; nil if it was not checked.
    package internal(set) var isAlternativeSound: Bool?
    /// The timeline of the probe's session, as its records tell it.
    package internal(set) var timeline: [Record] = []

    /// The result of enabling stream management.
    package enum StreamManagement: Sendable, Hashable {
        case notOffered
        case refused(String)
        /// Enabled; whether the session can be resumed, and within how many seconds if the server says so.
        case enabled(isResumable: Bool, seconds: Int?)
    }

    private static let mostLines = 20
    private static let longestLine = 600

    init(account: JID) { self.account = account }

    mutating func add(
        _ name: Step.Name,
        _ outcome: Step.Outcome,
        _ lines: [String],
        took duration: Int64? = nil,
        _ details: Attributes = [:]
    ) {
        // Limit the server's text.
        let shown = lines.prefix(Self.mostLines).map { line in
            line.count > Self.longestLine ? "\(line.prefix(Self.longestLine))…" : line
        }
        steps.append(Step(name: name, outcome: outcome, lines: shown, duration: duration, details: details))
    }
}

// Findings in words.
extension ProbeReport {
    /// Adds the certificate: its names, its issuer, and its expiry.
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

    /// Adds the mechanisms offered for the login.
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
    /// The mechanisms of SASL and SASL2 together.
    var allMechanisms: [String] { mechanisms + (sasl2Mechanisms ?? []).filter { !mechanisms.contains($0) } }
}

/// The results of name servers so far.
struct ProbeLookups {
    var lines: [String] = []
    var duration: Int64 = 0
    var details: Attributes = [:]
}

// The way to the server.
extension ProbeReport {
    /// A step on the way has been made.
    mutating func note(_ step: DiscoveryStep, _ lookups: inout ProbeLookups) {
        switch step.step {
        case .records:
            let service = Self.service(step)
            let name = String(step.subject.prefix { $0 != "." })
            if step.subject.hasPrefix(ServiceRecord.Service.tls.rawValue) {
                directService = service
            } else {
                clearService = service
            }
            lookups.lines.append("\(name): \(step.finding)")
            lookups.details[name] = .string("\(step.finding)")
            lookups.duration = max(lookups.duration, step.duration ?? 0)
        case .addresses:
            lookups.lines.append("\(step.subject): \(step.finding)")
            lookups.duration += step.duration ?? 0
        case .connection where step.outcome == .ok:
            note(.ok, &lookups)
            add(.connection, .ok, [step.subject], took: step.duration, ["address": .string(step.subject)])
        case .connection:
            note(.ok, &lookups)
            add(.connection, .note, ["\(step.subject): \(step.finding)"], took: step.duration)
        }
    }

    /// The look-ups make one step.
    mutating func note(_ outcome: Step.Outcome, _ lookups: inout ProbeLookups) {
        guard !lookups.lines.isEmpty else { return }
        add(.names, outcome, lookups.lines, took: lookups.duration, lookups.details)
        lookups.lines = []
    }

    private static func service(_ step: DiscoveryStep) -> Service {
        switch step.outcome {
        case .ok: .announced(step.finding)
        case .refused: .refused
        case .none: .none
        case .failed, .skipped: .unknown
        }
    }
}
