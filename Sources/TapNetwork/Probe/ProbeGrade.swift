internal import TapSecurity
internal import XMPPCore

/// The grade of a server in one subject, and the reason.
package struct ProbeGrade: Sendable, Hashable {
    /// A graded subject. The raw value is stable.
    package enum Subject: String, Sendable, Hashable, CaseIterable {
        case tlsVersion = "tls-version"
        case certificate
        case requiredTLS = "required-tls"
        case directTLS = "direct-tls"
        case webSocket = "websocket"
        case hostMeta = "host-meta"
        case mechanisms
        case channelBinding = "channel-binding"
        case downgradeProtection = "downgrade-protection"
        case streamManagement = "stream-management"
    }

    /// The grade; A is best.
    package enum Letter: String, Sendable, Hashable, Comparable {
        case a = "A"
        /// Good, but could be better.
        case b = "B"
        case c = "C"
        /// Broken or insecure.
        case f = "F"

        /// Compares grades; a better grade is less.
        package static func < (left: Letter, right: Letter) -> Bool { left.rawValue < right.rawValue }
    }

    /// The graded subject.
    package let subject: Subject
    /// The grade; nil if unknown.
    package let letter: Letter?
    /// The reason, as a human-readable clause.
    package let reason: String
    /// The RFC or XEP with the recommendation.
    package let rule: String
}

extension ProbeReport {
    /// The grades, in the order of the subjects; empty if no server was reached.
    package var grades: [ProbeGrade] {
        guard isOfferSeen else { return [] }
        return ProbeGrade.Subject.allCases.compactMap { subject in
            judge(subject).map { ProbeGrade(subject: subject, letter: $0.letter, reason: $0.reason, rule: $0.rule) }
        }
    }

    private typealias Judgement = (letter: ProbeGrade.Letter?, reason: String)
    private typealias RuledJudgement = (letter: ProbeGrade.Letter?, reason: String, rule: String)

    private func judge(_ subject: ProbeGrade.Subject) -> RuledJudgement? {
        switch subject {
        case .tlsVersion: tlsVersionGrade
        case .certificate: certificateGrade
        case .requiredTLS where webServer != nil: nil
        case .directTLS where webServer != nil: nil
        case .webSocket: webServer.map { webSocketGrade($0) }
        case .hostMeta: hostMeta.map { hostMetaGrade($0) }
        case .requiredTLS: (requiredTLSGrade.letter, requiredTLSGrade.reason, "RFC 6120 §5.3.1")
        case .directTLS: (directTLSGrade.letter, directTLSGrade.reason, "XEP-0368 §3")
        case .mechanisms: mechanismsGrade
        case .channelBinding: channelBindingGrade.map { ($0.letter, $0.reason, "XEP-0440") }
        case .downgradeProtection: downgradeGrade.map { ($0.letter, $0.reason, "XEP-0474") }
        case .streamManagement: streamManagementGrade.map { ($0.letter, $0.reason, "XEP-0198") }
        }
    }

    /// The worst grade of all subjects; nil if there are none.
    package var grade: ProbeGrade.Letter? { grades.compactMap(\.letter).max() }

    // MARK: TLS

    private var tlsVersionGrade: RuledJudgement {
        guard let tls, let version = tls.versionNumber else {
            return (.f, "no TLS: anyone on the path can read the session", "RFC 6120 §13.8.1")
        }
        switch version {
        case .tls13: return (.a, "TLS 1.3", "RFC 8446")
        case .tls12:
            // Only the names of suites without ephemeral keys start with this prefix.
            guard !tls.suite.hasPrefix("TLS_RSA_") else {
                return (.c, "TLS 1.2 with \(tls.suite): no forward secrecy", "RFC 9325 §4.1")
            }
            return (.b, "TLS 1.2; TLS 1.3 is not supported", "RFC 9325 §3.1.1")
        case .tls10, .tls11: return (.f, "\(version) is obsolete and must not be used", "RFC 8996")
        }
    }

    private var certificateGrade: RuledJudgement? {
        guard let tls, let certificate = tls.certificate else { return nil }
        guard tls.overlooked.isEmpty else {
            return (.f, tls.overlooked.map(\.explanation).joined(separator: "; "), "RFC 6120 §13.7.2")
        }
        let days = certificate.daysLeft(at: began)
        if days < Self.fewDays {
            let text = days < 1 ? "today" : "in \(days) day\(days == 1 ? "" : "s")"
            return (.c, "expires \(text): renew it now", "RFC 5280 §4.1.2.5")
        }
        let name = isForDomainOnly ? account.domain : webServer?.endpoint.host ?? account.domain
        return (.a, "for \(name), issuer trusted, \(days) days left", "RFC 6120 §13.7.2")
    }

    private func webSocketGrade(_ server: WebServer) -> RuledJudgement {
        guard server.isSecure else {
            return (.f, "ws: the session and its HTTP handshake are in clear text", "RFC 7395 §5")
        }
        if let fault = subprotocolFault { return (.c, "\(fault.explanation): browsers may refuse it", "RFC 7395 §3.1") }
        guard !isForDomainOnly else {
            return (.c, "the certificate is not for \(server.endpoint.host): browsers refuse it", "RFC 6455 §4.1")
        }
        if let fault = tls?.overlooked.first {
            return (.f, "browsers refuse the certificate: \(fault.explanation)", "RFC 6455 §4.1")
        }
        return (.a, "wss, and the subprotocol xmpp is selected", "RFC 7395 §3.1")
    }

    private func hostMetaGrade(_ report: HostMetaReport) -> RuledJudgement {
        if let warning = report.warnings.first { return (.c, warning, "XEP-0156 §2.2") }
        guard report.isComplete else {
            return (
                .b, "host-meta names the WebSocket; host-meta.json, which is recommended, does not", "XEP-0156 §2.2"
            )
        }
        return (.a, "both files name the WebSocket, for pages of any site", "XEP-0156 §2.2")
    }

    private var requiredTLSGrade: Judgement {
        guard let clearFeatures else { return (.a, "direct TLS") }
        let mechanisms = clearFeatures.allMechanisms
        switch clearFeatures.startTLS {
        case .absent:
            let shows = mechanisms.contains("PLAIN") ? ", and PLAIN is offered without TLS" : ""
            return (.f, "STARTTLS is not offered\(shows)")
        case .required where mechanisms.isEmpty:
            return (.a, "STARTTLS is required before any other feature")
        case .required: return (.b, "STARTTLS is required, but mechanisms are offered beside it")
        case .optional where mechanisms.contains("PLAIN"):
            return (.f, "STARTTLS is optional, and PLAIN is offered without TLS")
        case .optional where mechanisms.isEmpty:
            return (.b, "STARTTLS is required but not marked as required")
        case .optional: return (.c, "STARTTLS is optional: a login without TLS is possible")
        }
    }

    private var directTLSGrade: Judgement {
        if isDirect {
            return (.a, "supported on this port\(tls?.applicationProtocol.map { ", with ALPN \($0)" } ?? "")")
        }
        switch directService {
        case .announced where isAlternativeSound == false:
            return (.f, "announced in DNS, but broken: clients that use it cannot connect")
        case .announced(let servers): return (.a, "announced in DNS: \(servers)")
        case .none, .refused:
            return (.b, "no _xmpps-client records: every login starts without TLS")
        case .unasked, .unknown: return (nil, "unknown: no DNS records were queried")
        }
    }

    // MARK: Authentication

    private var mechanismsGrade: RuledJudgement? {
        guard let features else { return nil }
        let mechanisms = features.allMechanisms
        let strong = mechanisms.filter { $0.hasPrefix("SCRAM-SHA-256") || $0.hasPrefix("SCRAM-SHA-512") }
        let obsolete = mechanisms.filter { $0 == "DIGEST-MD5" || $0 == "CRAM-MD5" }
        if !obsolete.isEmpty, !mechanisms.contains(where: { $0.hasPrefix("SCRAM-") }) {
            return (.c, "\(obsolete.joined(separator: ", ")) is obsolete; SCRAM is not offered", "RFC 6331")
        }
        if !strong.isEmpty {
            guard obsolete.isEmpty else {
                return (.b, "SCRAM with SHA-2, and the obsolete \(obsolete.joined(separator: ", "))", "RFC 6331")
            }
            return (.a, "SCRAM with SHA-2: the password is never revealed", "RFC 7677")
        }
        if mechanisms.contains(where: { $0.hasPrefix("SCRAM-SHA-1") }) {
            return (.b, "SCRAM, but only with SHA-1", "RFC 7677")
        }
        if mechanisms.contains("PLAIN") {
            let place = tls == nil ? "without TLS" : "inside TLS"
            return (tls == nil ? .f : .c, "only PLAIN: the server receives the password, \(place)", "RFC 6120 §13.8.1")
        }
        return (.f, "no password mechanism is offered", "RFC 6120 §13.8.1")
    }

    private var channelBindingGrade: Judgement? {
        guard let features, let tls else { return nil }
        let isOffered = features.allMechanisms.contains { $0.hasSuffix("-PLUS") }
        switch (isOffered, features.channelBindings) {
        case (true, .some(let types)):
            let common = types.filter(bindings.contains)
            guard !common.isEmpty else {
                let list = types.joined(separator: ", ")
                return (
                    .c, "offered as \(list.isEmpty ? "nothing" : list), none of which is available on \(tls.version)"
                )
            }
            return (.a, "\(common.joined(separator: ", ")): detects a man in the middle")
        case (true, nil) where tls.versionNumber == .tls13:
            return (.c, "-PLUS without a list of types: on TLS 1.3 clients must guess, or do without")
        case (true, nil): return (.b, "-PLUS without a list of types: tls-unique by convention")
        case (false, .some(let types)) where !types.isEmpty:
            return (.c, "types are listed, but no -PLUS mechanism is offered")
        case (false, _):
            return (.b, "not offered: a man in the middle with a certificate for the domain is not detected")
        }
    }

    private var downgradeGrade: Judgement? {
        guard features != nil else { return nil }
        switch mechanismSignature {
        case .genuine:
            let version = versionSignature == .genuine ? ", and so is the TLS version (XEP-0515)" : ""
            return (.a, "mechanisms are signed\(version)")
        case .altered: return (.f, "the list of mechanisms differs from the signed one")
        case .absent: return (.b, "mechanisms are not signed: removed mechanisms are not detected")
        case nil: return (nil, "unknown without a login")
        }
    }

    private var streamManagementGrade: Judgement? {
        switch streamManagement {
        case .enabled(isResumable: true, _): return (.a, "sessions survive a lost connection")
        case .enabled(isResumable: false, _):
            return (.b, "stanzas are acknowledged, but sessions cannot be resumed")
        case .refused(let condition): return (.c, "offered, but refused (\(condition))")
        case .notOffered: return (.c, "not offered: stanzas sent on a dead connection are lost")
        case nil: return nil
        }
    }
}
