import Testing
import XMPPCore

@testable import TapNetwork
import TapRecord
@testable import TapSecurity

/// Tests the grade of each subject.
@Suite struct ProbeGradeTests {
    private typealias Client = ClientHarness

    /// Creates the report on a server with these features inside TLS, and others before TLS.
    private func report(
        _ offer: String,
        clear: String? = ClientHarness.startTLS,
        version: TLSVersion? = .tls13,
        suite: String = "TLS_AES_128_GCM_SHA256",
        _ change: (inout ProbeReport) -> Void = { _ in }
    ) throws -> ProbeReport {
        var report = ProbeReport(account: try JID(parsing: "juliet@example.org"))
        report.clearFeatures = try clear.map { try features($0) }
        if let version {
            report.tls = TLSParameters(
                version: "\(version)",
                versionNumber: version,
                suite: suite,
                isResumed: false,
                overlooked: [],
                alertsReceived: []
            )
            report.bindings = version == .tls13 ? ["tls-exporter", "tls-server-end-point"] : ["tls-unique"]
        }
        report.features = try features(offer)
        report.isOfferSeen = true
        change(&report)
        return report
    }

    private func features(_ content: String) throws -> StreamFeatures {
        let client = try Client(.clear)
        client.hear(Client.header + Client.features(content))
        return try #require(client.offered)
    }

    private func letter(_ subject: ProbeGrade.Subject, _ report: ProbeReport) -> String? {
        report.grades.first { $0.subject == subject }.map { $0.letter?.rawValue ?? "?" }
    }

    @Test func `TLS is graded by its version and by forward secrecy`() throws {
        let offer = Client.mechanisms("SCRAM-SHA-256")
        #expect(letter(.tlsVersion, try report(offer)) == "A")
        #expect(letter(.tlsVersion, try report(offer, version: .tls12)) == "B")
        #expect(letter(.tlsVersion, try report(offer, version: .tls12, suite: "TLS_RSA_WITH_AES_128_CBC_SHA")) == "C")
        #expect(letter(.tlsVersion, try report(offer, version: .tls11)) == "F")
        #expect(letter(.tlsVersion, try report(offer, version: nil)) == "F")
    }

    @Test func `Required TLS is graded by the features offered in clear`() throws {
        let optional = "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"
        let offer = Client.mechanisms("PLAIN")
        for (clear, expected) in [
            (nil, "A"), (Client.startTLS, "A"), (Client.startTLS + Client.mechanisms("SCRAM-SHA-1"), "B"),
            (optional, "B"), (optional + Client.mechanisms("SCRAM-SHA-1"), "C"), (optional + offer, "F"), (offer, "F"),
        ] {
            #expect(letter(.requiredTLS, try report(offer, clear: clear)) == expected, "\(clear ?? "nothing")")
        }
    }

    @Test func `Mechanisms are graded by the strongest one`() throws {
        for (offer, expected) in [
            (Client.mechanisms("SCRAM-SHA-1", "SCRAM-SHA-512"), "A"), (Client.mechanisms2("SCRAM-SHA-256-PLUS"), "A"),
            (Client.mechanisms("SCRAM-SHA-256", "DIGEST-MD5"), "B"), (Client.mechanisms("SCRAM-SHA-1", "PLAIN"), "B"),
            (Client.mechanisms("PLAIN"), "C"), (Client.mechanisms("CRAM-MD5", "PLAIN"), "C"),
            (Client.mechanisms("EXTERNAL"), "F"), ("", "F"),
        ] {
            #expect(letter(.mechanisms, try report(offer)) == expected, "\(offer)")
        }
        #expect(letter(.mechanisms, try report(Client.mechanisms("PLAIN"), version: nil)) == "F")
    }

    @Test func `Channel binding is graded by the types that the connection supports`() throws {
        let plus = Client.mechanisms("SCRAM-SHA-256-PLUS")
        for (offer, version, expected) in [
            (plus + Client.bindings("tls-exporter", "tls-unique"), TLSVersion.tls13, "A"),
            (plus + Client.bindings("tls-unique"), .tls13, "C"), (plus + Client.bindings(), .tls13, "C"),
            (plus, .tls13, "C"), (plus, .tls12, "B"),
            (Client.mechanisms("SCRAM-SHA-256") + Client.bindings("tls-exporter"), .tls13, "C"),
            (Client.mechanisms("SCRAM-SHA-256"), .tls13, "B"),
        ] {
            #expect(letter(.channelBinding, try report(offer, version: version)) == expected, "\(offer) \(version)")
        }
        #expect(letter(.channelBinding, try report(plus, version: nil)) == nil)
    }

    @Test func `Downgrade protection is graded after the server's challenge`() throws {
        let offer = Client.mechanisms("SCRAM-SHA-256")
        #expect(letter(.downgradeProtection, try report(offer)) == "?")
        for (signature, expected) in [(SCRAMClient.Signature.genuine, "A"), (.absent, "B"), (.altered, "F")] {
            let report = try report(offer) { $0.mechanismSignature = signature }
            #expect(letter(.downgradeProtection, report) == expected)
        }
    }

    @Test func `Direct TLS is graded by the SRV records and their check`() throws {
        let offer = Client.mechanisms("SCRAM-SHA-256")
        for (service, isSound, expected) in [
            (ProbeReport.Service.unasked, nil as Bool?, "?"), (.unknown, nil, "?"), (.none, nil, "B"),
            (.refused, nil, "B"),
            (.announced("xmpp.example.org:5223 (1 1)"), true, "A"), (.announced("x:1 (1 1)"), false, "F"),
        ] {
            let report = try report(offer) {
                $0.directService = service
                $0.isAlternativeSound = isSound
            }
            #expect(letter(.directTLS, report) == expected, "\(service)")
        }
        #expect(letter(.directTLS, try report(offer) { $0.isDirect = true }) == "A")
    }

    @Test func `Stream management is graded if a session was opened`() throws {
        let offer = Client.mechanisms("SCRAM-SHA-256")
        #expect(letter(.streamManagement, try report(offer)) == nil)
        for (management, expected) in [
            (ProbeReport.StreamManagement.enabled(isResumable: true, seconds: 300), "A"),
            (.enabled(isResumable: false, seconds: nil), "B"), (.refused("not-allowed"), "C"), (.notOffered, "C"),
        ] {
            #expect(letter(.streamManagement, try report(offer) { $0.streamManagement = management }) == expected)
        }
    }

    @Test func `The worst grade is the result, and steps that were not reached have no grade`() throws {
        let report = try report(Client.mechanisms("PLAIN"))
        #expect(report.grade == .c)
        #expect(try self.report("") { $0.isOfferSeen = false }.grades.isEmpty)
    }

    @Test func `Long output of a step is cut`() throws {
        var report = ProbeReport(account: try JID(parsing: "juliet@example.org"))
        report.add(.server, .ok, Array(repeating: String(repeating: "x", count: 10_000), count: 100))
        #expect(report.steps[0].lines.count == 20)
        #expect(report.steps[0].lines.allSatisfy { $0.count == 601 })
    }
}
