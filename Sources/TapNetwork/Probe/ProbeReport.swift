internal import TapCore
package import TapDiagnosis
package import TapRecord
package import TapSecurity
package import XMPPCore

/// The findings of a probe.
package struct ProbeReport: Sendable {
    /// One step of the probe, for users and programs.
    package struct Step: Sendable, Hashable {
        /// The steps. The raw values are stable.
        package enum Name: String, Sendable, Hashable, CaseIterable {
            /// The lookup of the domain's SRV records and the server's addresses (RFC 6120 §3.2).
            case names
            /// The files by which clients find WebSockets (XEP-0156).
            case hostMeta = "host-meta"
            case connection
            /// The stream before TLS and login, up to its features.
            case stream
            /// STARTTLS (RFC 6120 §5).
            case startTLS = "starttls"
            case tls
            /// The server's certificate.
            case certificate
            /// The HTTP handshake of a WebSocket (RFC 7395 §3.1).
            case webSocket = "websocket"
            /// The mechanisms offered for the login.
            case offer
            case login
            /// The server's signature over its offers (XEP-0474, XEP-0515), compared with the offers as received.
            case downgrade
            case bind
            /// Stream management (XEP-0198).
            case streamManagement = "stream-management"
            /// A ping to the server (XEP-0199).
            case ping
            /// The server's software and features (XEP-0092, XEP-0030).
            case server
            /// The domain's other service: direct TLS if the probe used STARTTLS, and vice versa.
            case alternative
        }

        /// The result of a step.
        package enum Outcome: String, Sendable, Hashable {
            case ok
            /// The step succeeded, with a remark.
            case note
            case failed
            /// The step was not performed; the lines say why.
            case skipped
        }

        /// The step.
        package let name: Name
        /// The result of the step.
        package let outcome: Outcome
        /// The findings, one per line, without secrets.
        package let lines: [String]
        /// Duration in nanoseconds; nil if it was not measured.
        package let duration: Int64?
        /// The findings, for programs.
        package let details: Attributes
    }

    /// The result of the SRV lookup for one of a domain's services.
    package enum Service: Sendable {
        case unasked
        case none
        /// The domain declares that it does not offer the service (RFC 2782: `.`).
        case refused
        /// The servers, as `HOST:PORT (PRIORITY WEIGHT)`.
        case announced(Prose)
        /// The lookup failed.
        case unknown
    }

    /// The overall result.
    package enum Outcome: Sendable, Hashable {
        /// Logged in, with a bound resource.
        case ready
        /// Without a password: the server's features were examined, and nothing failed.
        case offered
        case failed
    }

    /// The account that was probed.
    package let account: JID
    /// The steps, in order.
    package internal(set) var steps: [Step] = []
    /// The overall result.
    package internal(set) var outcome = Outcome.failed
    /// The diagnosis; nil if the probe did not fail.
    package internal(set) var diagnosis: LoginDiagnosis?
    /// The SRV records for STARTTLS.
    package internal(set) var clearService = Service.unasked
    /// The SRV records for direct TLS.
    package internal(set) var directService = Service.unasked
    /// Whether the connection used direct TLS.
    package internal(set) var isDirect = false
    /// The WebSocket that was used; nil for a TCP port.
    package internal(set) var webServer: WebServer?
    /// The fault of the handshake's subprotocol; nil if there is none.
    var subprotocolFault: WebSocketHandshake.SubprotocolFault?
    /// Whether the certificate is for the XMPP domain, but not for the host of the WebSocket's URL.
    var isForDomainOnly = false
    /// The host-meta files; nil if they were not requested.
    package internal(set) var hostMeta: HostMetaReport?
    /// The negotiated TLS parameters; nil without TLS.
    package internal(set) var tls: TLSParameters?
    /// The stream features before TLS; nil with direct TLS.
    package internal(set) var clearFeatures: StreamFeatures?
    /// The stream features at the login; inside TLS, if TLS is used.
    package internal(set) var features: StreamFeatures?
    /// The channel-binding types available on this connection.
    package internal(set) var bindings: [String] = []
    /// Whether the server's signature over its mechanisms matched (XEP-0474); nil before its challenge.
    package internal(set) var mechanismSignature: SCRAMClient.Signature?
    /// Whether the server's signature over the TLS version matched (XEP-0515); nil before its challenge.
    package internal(set) var versionSignature: SCRAMClient.Signature?
    /// The result of enabling stream management; nil before a resource is bound.
    package internal(set) var streamManagement: StreamManagement?
    /// The bound address.
    package internal(set) var jid: String?
    /// Nanoseconds from the start of the probe to a bound resource; nil if none was bound.
    package internal(set) var timeToReady: Int64?
    /// The time at which the probe began.
    package internal(set) var began = Timestamp(nanoseconds: 0)
    /// Whether the offered mechanisms were received.
    var isOfferSeen = false
    /// Whether the domain's other service works; nil if it was not checked.
    package internal(set) var isAlternativeSound: Bool?
    /// The records of the probe's login timeline.
    package internal(set) var timeline: [Record] = []

    /// The result of enabling stream management.
    package enum StreamManagement: Sendable, Hashable {
        case notOffered
        case refused(String)
        /// Enabled. `isResumable` is whether the session can be resumed, and `seconds` the time limit for that; nil if
        /// the server does not send a limit.
        case enabled(isResumable: Bool, seconds: Int?)
    }

    private static let maximumLines = 20
    private static let maximumLineLength = 600

    init(account: JID) { self.account = account }

    mutating func add(
        _ name: Step.Name,
        _ outcome: Step.Outcome,
        _ lines: [String],
        took duration: Int64? = nil,
        _ details: Attributes = [:]
    ) {
        // Limit text that comes from the server.
        let shown = lines.prefix(Self.maximumLines).map { line in
            line.count > Self.maximumLineLength ? "\(line.prefix(Self.maximumLineLength))…" : line
        }
        steps.append(Step(name: name, outcome: outcome, lines: shown, duration: duration, details: details))
    }
}

// Findings as text.
extension ProbeReport {
    /// Adds the certificate: its names, its issuer, and its expiry.
    mutating func addCertificate(_ parameters: TLSParameters, at now: Timestamp) {
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
        let faults = parameters.overlooked.map(\.explanation)
        if !faults.isEmpty { lines = ["not trusted: \(faults.joined(separator: "; "))"] + lines }
        var details = certificate.details
        details["days_left"] = .integer(Int64(days))
        if !faults.isEmpty { details["faults"] = .strings(parameters.overlooked.map(\.name)) }
        let outcome: Step.Outcome = faults.isEmpty ? (days < Self.fewDays ? .note : .ok) : .failed
        add(.certificate, outcome, lines, took: nil, details)
    }

    /// Remaining days below which a certificate gets a remark. Certificates of 90 days are usually renewed when 30 are
    /// left.
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
    mutating func addOffer(_ features: StreamFeatures, took duration: Int64) {
        isOfferSeen = true
        if tls == nil, webServer != nil {
            add(.tls, .failed, ["ws:// has no TLS: the session is in clear text"])
        } else if tls == nil {
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

    /// Adds the result of checking the domain's other service.
    mutating func addAlternative(_ outcome: QuickCheck.Outcome) {
        let kind = isDirect ? "STARTTLS" : "direct TLS"
        let place = outcome.address.map { "\(kind) at \($0)" } ?? kind
        guard let parameters = outcome.parameters else {
            isAlternativeSound = false
            let why = outcome.failure ?? "TLS failed"
            return add(.alternative, .failed, ["\(place): \(why)"], took: outcome.duration)
        }
        var text = "\(place): \(parameters.version)"
        let isSame = parameters.certificate?.fingerprint == tls?.certificate?.fingerprint
        text += isSame ? ", same certificate" : ", different certificate"
        if !isSame, let certificate = parameters.certificate {
            text +=
                ", valid until \(certificate.notAfter.text.prefix(10)), \(Self.left(certificate.daysLeft(at: began)))"
        }
        let faults = parameters.overlooked.map(\.explanation)
        if !faults.isEmpty, !isSame { text += "; not trusted: \(faults.joined(separator: "; "))" }
        isAlternativeSound = faults.isEmpty
        add(.alternative, faults.isEmpty ? .ok : .failed, [text], took: outcome.duration, parameters.details)
    }

    mutating func addLogin(
        _ choice: LoginChoice,
        _ signatures: (mechanisms: SCRAMClient.Signature, version: SCRAMClient.Signature)?,
        took duration: Int64
    ) {
        let isSCRAM = choice.mechanism.hasPrefix("SCRAM")
        var lines = [
            "\(choice.description)\(isSCRAM ? "; both sides proved that they know the password" : "; the server received the password")"
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
    /// The mechanism and the channel binding, as text for users.
    var description: String {
        let profile = profile == .sasl ? "" : " by SASL2"
        guard case .bound(let binding) = binding else { return mechanism + profile }
        return "\(mechanism)\(profile), channel binding \(binding.type)"
    }
}

extension CertificateInfo {
    /// Returns the number of whole days until the certificate expires; negative if it has expired.
    func daysLeft(at now: Timestamp) -> Int {
        let seconds = notAfter.seconds - now.nanoseconds / 1_000_000_000
        return Int((Double(seconds) / 86_400).rounded(.down))
    }
}

extension StreamFeatures {
    /// The mechanisms of SASL and SASL2 together.
    var allMechanisms: [String] { mechanisms + (sasl2Mechanisms ?? []).filter { !mechanisms.contains($0) } }
}

/// The results of name lookups so far.
struct ProbeLookups {
    var lines: [String] = []
    var duration: Int64 = 0
    var details: Attributes = [:]
}

// Finding and connecting to the server.
extension ProbeReport {
    /// Adds a completed step of the server search.
    mutating func addDiscovery(_ step: DiscoveryStep, _ lookups: inout ProbeLookups) {
        switch step.step {
        case .records:
            let service = Self.service(step)
            let name = String(step.subject.prefix { $0 != "." })
            if step.subject.hasPrefix(ServiceRecord.Service.tls.labels(for: .clients)) {
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
        case .associations: break
        case .connection where step.outcome == .ok:
            addLookups(.ok, &lookups)
            add(.connection, .ok, [step.subject], took: step.duration, ["address": .string(step.subject)])
        case .connection:
            addLookups(.ok, &lookups)
            add(.connection, .note, ["\(step.subject): \(step.finding)"], took: step.duration)
        }
    }

    /// Adds one step for all lookups so far.
    mutating func addLookups(_ outcome: Step.Outcome, _ lookups: inout ProbeLookups) {
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
