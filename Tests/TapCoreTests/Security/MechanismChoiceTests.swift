import TapCore
import Testing

/// Tests of the choice of a mechanism from an offer, for the probe and for a proxy that performs logins itself.
struct MechanismChoiceTests {
    private static let means = MechanismChoice.Means(
        mechanisms: ["SCRAM-SHA-512", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"],
        mayShowPassword: true
    )

    private static func leg(_ version: UInt16, _ types: String...) -> SecuredLeg {
        SecuredLeg(version: version, bindings: types.map { ChannelBinding(type: $0, data: Array($0.utf8)) })
    }

    private static let tls13 = leg(0x0304, "tls-exporter", "tls-server-end-point")
    private static let tls12 = leg(0x0303, "tls-exporter", "tls-unique", "tls-server-end-point")
    /// A TLS 1.2 connection without extended master secret.
    private static let old = leg(0x0303, "tls-server-end-point")

    private func words(
        _ offered: [String],
        _ types: [String]?,
        _ leg: SecuredLeg?,
        _ means: MechanismChoice.Means = means
    ) -> String {
        guard let choice = MechanismChoice(of: offered, bindingTypes: types, on: leg, by: means) else { return "none" }
        return switch choice.binding {
        case .unsupported: "\(choice.mechanism) n"
        case .notOffered: "\(choice.mechanism) y"
        case .bound(let binding): "\(choice.mechanism) \(binding.type)"
        }
    }

    @Test func `channel binding is preferred to a stronger hash, and a stronger hash to a weaker one`() {
        let offer = ["PLAIN", "SCRAM-SHA-1-PLUS", "SCRAM-SHA-512", "SCRAM-SHA-256"]
        #expect(words(offer, ["tls-server-end-point"], Self.tls13) == "SCRAM-SHA-1-PLUS tls-server-end-point")
        #expect(words(["PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256"], nil, Self.tls13) == "SCRAM-SHA-256 y")
        #expect(words(["X-OAUTH2", "PLAIN"], nil, Self.tls13) == "PLAIN n")
        #expect(words(["DIGEST-MD5"], nil, Self.tls13) == "none")
    }

    @Test func `without a list of binding types only tls-unique is used, unless all SCRAM mechanisms are -PLUS`() {
        let both = ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]
        #expect(words(both, nil, Self.tls12) == "SCRAM-SHA-256-PLUS tls-unique")
        // The flag "y" would be wrong, and the server would have to refuse the login.
        #expect(words(both, nil, Self.tls13) == "SCRAM-SHA-256 n")
        #expect(words(both, nil, Self.old) == "SCRAM-SHA-256 n")
        #expect(words(["SCRAM-SHA-256-PLUS", "PLAIN"], nil, Self.tls13) == "SCRAM-SHA-256-PLUS tls-exporter")
        #expect(words(["SCRAM-SHA-256-PLUS", "PLAIN"], nil, Self.old) == "SCRAM-SHA-256-PLUS tls-server-end-point")
    }

    @Test func `if the server offers channel binding that is not used, the reason is reported`() {
        func remark(_ offered: [String], _ types: [String]?, _ leg: SecuredLeg?) -> String? {
            MechanismChoice(of: offered, bindingTypes: types, on: leg, by: Self.means)?.remark
        }
        let both = ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]
        #expect(remark(both, nil, Self.tls13)?.contains("XEP-0440") == true)
        #expect(
            remark(both, ["tls-unique"], Self.tls13)
                == "the server offers the channel bindings tls-unique, this connection has tls-exporter, tls-server-end-point"
        )
        #expect(remark(both, ["tls-exporter"], Self.tls13) == nil)
        #expect(remark(["SCRAM-SHA-256"], nil, Self.tls13) == nil)
        #expect(remark(both, nil, nil) == nil)
    }

    @Test func `a server that offers channel binding only for mechanisms without a secret is reported`() {
        var means = Self.means
        means.mechanisms = ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"]
        let offer = ["SCRAM-SHA-512-PLUS", "SCRAM-SHA-1"]
        for types in [["tls-exporter"], nil] {
            let choice = MechanismChoice(of: offer, bindingTypes: types, on: Self.tls12, by: means)
            #expect(choice?.mechanism == "SCRAM-SHA-1" && choice?.binding == .unsupported)
            #expect(
                choice?.remark
                    == "the server offers channel binding for none of the mechanisms that the account has a secret for (SCRAM-SHA-256, SCRAM-SHA-1)"
            )
        }
        // The binding types do not match either.
        let choice = MechanismChoice(of: offer, bindingTypes: ["tls-unique"], on: Self.tls13, by: means)
        #expect(choice?.remark?.hasPrefix("the server offers the channel bindings tls-unique") == true)
    }

    @Test func `the flag y is used only if the connection has a binding and the server offers none`() {
        #expect(words(["SCRAM-SHA-1"], nil, nil) == "SCRAM-SHA-1 n")
        #expect(words(["SCRAM-SHA-1"], nil, Self.leg(0x0303)) == "SCRAM-SHA-1 n")
        #expect(words(["SCRAM-SHA-1"], [], Self.tls13) == "SCRAM-SHA-1 y")
        // The client does not support the mechanism, but the server offers channel binding nevertheless.
        #expect(words(["SCRAM-SHA-1", "SCRAM-SHA3-512-PLUS"], nil, Self.tls13) == "SCRAM-SHA-1 n")
    }

    @Test func `PLAIN is used only if allowed, and EXTERNAL only if no password mechanism is possible`() {
        var means = Self.means
        means.mayShowPassword = false
        #expect(words(["PLAIN"], nil, nil, means) == "none")
        means.hasCertificate = true
        #expect(words(["PLAIN", "EXTERNAL"], nil, Self.tls13, means) == "EXTERNAL n")
        means.mayShowPassword = true
        #expect(words(["PLAIN", "EXTERNAL"], nil, Self.tls13, means) == "PLAIN n")
        means.mechanisms = []
        #expect(words(["PLAIN", "SCRAM-SHA-1", "EXTERNAL"], nil, Self.tls13, means) == "EXTERNAL n")
        means.hasCertificate = false
        #expect(words(["PLAIN", "SCRAM-SHA-1", "EXTERNAL"], nil, Self.tls13, means) == "none")
    }

    @Test func `only mechanisms that the client supports are chosen`() {
        var means = Self.means
        means.mechanisms = ["SCRAM-SHA-1"]
        let offer = ["SCRAM-SHA-512-PLUS", "SCRAM-SHA-512", "SCRAM-SHA-1", "PLAIN"]
        #expect(words(offer, ["tls-exporter"], Self.tls13, means) == "SCRAM-SHA-1 n")
    }
}
