import TapTestKit
import Testing

@testable import TapCore
import TapDiagnosis
import TapRecord

/// Tests every row of the table: a client's message, a server's offer, and the proxy's strategy.
@Suite struct BindingForecastTests {
    private typealias Strategy = BindingForecast.Strategy

    /// The contents of a cell of the table.
    enum Cell: Equatable {
        case works
        case fails(LoginCause)
        case depends
    }

    private static func cell(_ login: BindingForecast.Login, _ strategy: Strategy) -> Cell {
        switch BindingForecast(login, strategy).outcome {
        case .works: .works
        case .fails(let cause): .fails(cause)
        case .depends: .depends
        }
    }

    /// Checks a row of the table, with the strategies passthrough, minted, the server's certificate, cooperating,
    /// accounts and strip.
    private static func check(
        _ login: BindingForecast.Login,
        _ row: [Cell],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        for (strategy, expected) in zip(Strategy.allCases, row) {
            let found = cell(login, strategy)
            #expect(
                found == expected,
                "\(strategy): \(BindingForecast(login, strategy))",
                sourceLocation: sourceLocation
            )
        }
    }

    private static let plus = ["SCRAM-SHA-1", "SCRAM-SHA-1-PLUS"]
    private static let both: (UInt16, UInt16) = (0x0304, 0x0304)

    private static func scram(
        _ flag: BindingForecast.Flag?,
        offered: [String] = plus,
        bindings: [String]? = ["tls-server-end-point", "tls-exporter"],
        plus isPlus: Bool = false
    ) -> BindingForecast.Login {
        BindingForecast.Login(
            mechanism: isPlus ? "SCRAM-SHA-1-PLUS" : "SCRAM-SHA-1",
            flag: flag,
            offered: offered,
            bindings: bindings,
            clientTLS: 0x0304,
            serverTLS: 0x0304
        )
    }

    private let mismatch = Cell.fails(.bindingMismatch)
    private let denied = Cell.fails(.bindingDenied)

    @Test func `channel binding: a client without support for it`() {
        let all: [Cell] = [.works, .works, .works, .works, .works, .works]
        Self.check(Self.scram(BindingForecast.Flag.none), all)
        Self.check(Self.scram(BindingForecast.Flag.none, offered: ["SCRAM-SHA-1"], bindings: nil), all)
        // If the server signs its offer, stripping it makes the login fail.
        var signed = Self.scram(BindingForecast.Flag.none)
        signed.signsMechanisms = true
        Self.check(signed, [.works, .works, .works, .works, .works, .fails(.mechanismsAltered)])
    }

    @Test func `channel binding: a client that believes the server has no support for it`() {
        let all: [Cell] = [.works, .works, .works, .works, .works, .works]
        Self.check(Self.scram(.unsupportedByServer, offered: ["SCRAM-SHA-1"], bindings: nil), all)
        // If the offer is relayed unchanged, a correct client does not send this flag, and a client that sends it must
        // be refused. With accounts, xmpptap makes the offer itself.
        Self.check(Self.scram(.unsupportedByServer), [.works, denied, denied, denied, .works, denied])
    }

    @Test func `channel binding: a login bound to the server's certificate`() {
        let login = Self.scram(.bound("tls-server-end-point"), plus: true)
        Self.check(login, [.works, mismatch, .works, .works, .works, denied])
        var other = login
        other.hasSameCertificate = false
        #expect(Self.cell(other, .serverCertificate) == mismatch)
    }

    @Test(arguments: ["tls-exporter", "tls-unique", "something-new"])
    func `channel binding: a login bound to the TLS connection`(type: String) {
        Self.check(Self.scram(.bound(type), plus: true), [.works, mismatch, mismatch, mismatch, .works, denied])
    }

    @Test func `channel binding: a reduced list of mechanisms`() {
        var login = Self.scram(.bound("tls-server-end-point"), plus: true)
        login.isListReduced = true
        #expect(Self.cell(login, .minted) == mismatch)
        #expect(Self.cell(login, .serverCertificate) == .works)
        #expect(Self.cell(login, .cooperating) == .works)
        login.signsMechanisms = true
        for strategy in [Strategy.minted, .serverCertificate, .cooperating, .strip] {
            #expect(Self.cell(login, strategy) == .fails(.mechanismsAltered), "\(strategy)")
        }
        #expect(Self.cell(login, .accounts) == .works)
    }

    @Test func `channel binding: a list of unknown types`() {
        Self.check(
            Self.scram(nil, bindings: ["something-new"]),
            [.works, .depends, .depends, .depends, .works, .depends]
        )
    }

    @Test func `channel binding: legs with different TLS versions`() {
        var login = Self.scram(BindingForecast.Flag.none)
        login.clientTLS = 0x0303
        Self.check(login, [.works, .works, .works, .works, .works, .works])
        login.signsTLSVersion = true
        let fails = Cell.fails(.tlsVersionAltered)
        Self.check(login, [.works, fails, fails, fails, .works, fails])
        login.clientTLS = 0x0304
        Self.check(login, [.works, .works, .works, .works, .works, .works])
    }

    @Test(arguments: ["PLAIN", "OAUTHBEARER", "X-OAUTH2", "DIGEST-MD5", "ANONYMOUS"])
    func `mechanisms without channel binding work with all strategies`(name: String) {
        let login = BindingForecast.Login(mechanism: name, offered: Self.plus)
        Self.check(login, [.works, .works, .works, .works, .works, .works])
    }

    @Test func `channel binding: hashed tokens`() {
        func token(_ binding: String) -> BindingForecast.Login {
            BindingForecast.Login(mechanism: "HT-SHA-256-\(binding)")
        }
        Self.check(token("NONE"), [.works, .works, .works, .works, .depends, .works])
        Self.check(token("ENDP"), [.works, mismatch, .works, .works, .depends, mismatch])
        Self.check(token("UNIQ"), [.works, mismatch, mismatch, mismatch, .depends, mismatch])
        Self.check(token("EXPR"), [.works, mismatch, mismatch, mismatch, .depends, mismatch])
    }

    @Test func `channel binding: a client certificate`() {
        let login = BindingForecast.Login(mechanism: "EXTERNAL")
        Self.check(login, [.works, .depends, .depends, .depends, .works, .depends])
    }

    @Test func `channel binding: the forecast before the client has chosen`() {
        Self.check(
            Self.scram(nil, offered: ["SCRAM-SHA-1"], bindings: nil),
            [.works, .works, .works, .works, .works, .works]
        )
        Self.check(Self.scram(nil), [.works, .depends, .depends, .depends, .works, .depends])
        Self.check(
            Self.scram(nil, bindings: ["tls-server-end-point"]),
            [.works, .depends, .works, .works, .works, .depends]
        )
    }

    // MARK: Records

    /// Creates a session on legs with terminated TLS, with a server that offers channel binding, up to the client's
    /// first login message.
    private static func begun(
        _ flag: String,
        _ strategy: Strategy = .minted,
        run: Run = Run(),
        mechanism: String? = nil
    ) -> SessionHarness {
        var harness = SessionHarness(run: run)
        let legs = BindingForecast.Legs(strategy: strategy, clientTLS: 0x0304, serverTLS: 0x0304)
        harness.session.sharedState.perform(.observe(.secured(legs)))
        harness.send(L.header)
        harness.recv(
            L.answer
                + L.features(
                    L.mechanisms("SCRAM-SHA-1", "SCRAM-SHA-1-PLUS", "PLAIN", "EXTERNAL")
                        + "<sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'><channel-binding type='tls-exporter'/>"
                        + "</sasl-channel-binding>"
                )
        )
        #expect(told(harness).isEmpty)
        if mechanism == "PLAIN" { harness.send(L.plain) }
        if mechanism == "EXTERNAL" { harness.send(L.auth("EXTERNAL", "=")) }
        guard mechanism == nil else { return harness }
        harness.send(L.auth(flag.hasPrefix("p") ? "SCRAM-SHA-1-PLUS" : "SCRAM-SHA-1", "\(flag),," + L.scramFirst))
        return harness
    }

    /// Completes the login with success.
    private static func succeed(_ harness: inout SessionHarness) {
        harness.recv(L.sasl("challenge", L.challenge))
        harness.send(L.sasl("response", L.final))
        harness.recv(L.sasl("success", "v=rmF9pqV8S7suAoZWja4dJRkFsKQ="))
    }

    private static func told(_ harness: borrowing SessionHarness) -> [Record] {
        harness.told(code: "channel-binding").map(\.record)
    }

    @Test func `a channel binding that the RFC requires to be refused is reported before the login ends`() {
        var harness = Self.begun("p=tls-exporter")
        #expect(Self.told(harness).map(\.level) == [.warn])
        #expect(
            Self.told(harness).first?.messageText?.hasPrefix(
                "by RFC 5802 §6, RFC 5056 §2, the server must refuse this login: tls-exporter differs"
            ) == true
        )
        harness.recv(L.sasl("challenge", L.challenge))
        harness.send(L.sasl("response", L.final))
        harness.recv(L.failure("not-authorized"))
        harness.leave()
        #expect(Self.told(harness).count == 1)
        #expect(harness.diagnoses.map(\.cause) == [.bindingMismatch])
    }

    @Test func `channel binding is not mentioned in records if it does not matter`() {
        for strategy in [Strategy.minted, .serverCertificate, .clear] {
            for (flag, mechanism) in [("n", nil), ("", "PLAIN")] {
                var harness = Self.begun(flag, strategy, mechanism: mechanism)
                harness.recv(L.sasl(mechanism == nil ? "challenge" : "success", mechanism == nil ? L.challenge : ""))
                #expect(Self.told(harness).isEmpty, "\(strategy) \(flag)")
            }
        }
        // The forecast is reported after the client has chosen a mechanism.
        #expect(Self.told(Self.begun("", mechanism: "EXTERNAL")).map(\.level) == [.info])
    }

    @Test func `the flag y is reported as a risk until the server's reaction to it is known`() {
        let run = Run()
        var first = Self.begun("y", run: run)
        #expect(Self.told(first).map(\.level) == [.info])
        let words = Self.told(first).first?.messageText ?? ""
        #expect(words.hasPrefix("this login is at risk: RFC 5802 §6 requires the server to refuse it"), "\(words)")
        #expect(!words.contains("will fail"))
        Self.succeed(&first)
        // After the server has accepted the login once, no warning is logged.
        for _ in 0..<25 {
            var next = Self.begun("y", run: run)
            Self.succeed(&next)
            #expect(Self.told(next).isEmpty)
        }
        // Other runs do not know that. After a server has refused the login, later sessions of the run get a warning.
        let other = Run()
        var refused = Self.begun("y", run: other)
        refused.recv(L.failure("malformed-request"))
        refused.leave()
        #expect(refused.diagnoses.map(\.cause) == [.bindingDenied])
        let again = Self.begun("y", run: other)
        #expect(Self.told(again).map(\.level) == [.warn])
        #expect(Self.told(again).first?.messageText?.contains("this server has refused such a login") == true)
    }

    @Test func `a wrong password with the flag y is not attributed to channel binding or xmpptap`() {
        let run = Run()
        var accepted = Self.begun("y", run: run)
        Self.succeed(&accepted)
        for hasBeenSeen in [false, true] {
            var harness = Self.begun("y", run: hasBeenSeen ? run : Run())
            harness.recv(L.sasl("challenge", L.challenge))
            harness.send(L.sasl("response", L.final))
            harness.recv(L.failure("not-authorized"))
            harness.leave()
            #expect(harness.diagnoses.map(\.cause) == [.notAuthorized])
            #expect(harness.diagnoses.first?.isProxyTheCause == false)
        }
        // The client chooses the flag y itself: nothing was removed from its offer.
        var own = Self.begun("y")
        own.recv(L.failure("malformed-request"))
        own.leave()
        #expect(own.diagnoses.map(\.cause) == [.bindingDenied] && own.diagnoses.map(\.side) == [.client])
        #expect(own.diagnoses.first?.isProxyTheCause == false)
        var stripped = Self.begun("y", .strip)
        stripped.recv(L.failure("malformed-request"))
        stripped.leave()
        #expect(stripped.diagnoses.map(\.side) == [.tap])
    }

    @Test func `a client without TLS cannot use channel binding`() {
        #expect(Self.cell(Self.scram(nil), .clear) == .works)
        #expect(BindingForecast(Self.scram(nil), .clear).reason.contains("no TLS connection to xmpptap"))
        #expect(Self.cell(Self.scram(BindingForecast.Flag.none), .clear) == .works)
        #expect(Self.cell(Self.scram(.unsupportedByServer), .clear) == .fails(.bindingDenied))
        #expect(Self.cell(Self.scram(.unsupportedByServer, offered: ["SCRAM-SHA-1"]), .clear) == .works)
        for type in ["tls-exporter", "tls-server-end-point"] {
            #expect(Self.cell(Self.scram(.bound(type), plus: true), .clear) == mismatch)
        }
    }

    // MARK: Causes of failures

    private typealias L = FailedLogin

    private static func diagnosis(
        flag: String,
        _ strategy: Strategy,
        _ answers: String...
    ) -> LoginDiagnosis? {
        var harness = L.opened(L.mechanisms("SCRAM-SHA-1", "SCRAM-SHA-1-PLUS"))
        let login = Self.scram(
            flag == "y"
                ? .unsupportedByServer : flag == "n" ? BindingForecast.Flag.none : .bound(String(flag.dropFirst(2)))
        )
        harness.session.sharedState.login?.observe(.forecast(BindingForecast(login, strategy), seen: nil))
        harness.send(
            L.auth(flag == "y" || flag == "n" ? "SCRAM-SHA-1" : "SCRAM-SHA-1-PLUS", "\(flag),," + L.scramFirst)
        )
        for (number, answer) in answers.enumerated() {
            harness.recv(answer)
            if number + 1 < answers.count { harness.send(L.sasl("response", L.final)) }
        }
        harness.end(.client)
        harness.end(.server)
        harness.close()
        return harness.diagnoses.first
    }

    @Test func `the forecast distinguishes a wrong channel binding from a wrong password`() {
        let failure = L.failure("not-authorized")
        let challenge = L.sasl("challenge", L.challenge)
        let bound = Self.diagnosis(flag: "p=tls-exporter", .minted, challenge, failure)
        #expect(bound?.cause == .bindingMismatch && bound?.isProxyTheCause == true)
        let direct = Self.diagnosis(flag: "p=tls-exporter", .passthrough, challenge, failure)
        #expect(direct?.cause == .notAuthorized && direct?.isProxyTheCause == false)
        #expect(direct?.finding.description.contains("wrong channel binding gives the same error") == true)
        let unbound = Self.diagnosis(flag: "n", .minted, challenge, failure)
        #expect(unbound?.cause == .notAuthorized)
    }

    @Test func `the flag y is diagnosed as the cause of a refused login`() {
        let malformed = L.failure("malformed-request")
        let client = Self.diagnosis(flag: "y", .passthrough, malformed)
        #expect(client?.cause == .bindingDenied && client?.side == .client && client?.rule == "RFC 5802 §6")
        let stripped = Self.diagnosis(flag: "y", .strip, malformed)
        #expect(stripped?.cause == .bindingDenied && stripped?.isProxyTheCause == true)
        let told = Self.diagnosis(
            flag: "y",
            .passthrough,
            L.sasl("challenge", "e=server-does-support-channel-binding"),
            L.failure("not-authorized")
        )
        #expect(told?.cause == .bindingDenied)
    }

    @Test func `the server's SCRAM error determines the cause`() {
        let told = Self.diagnosis(
            flag: "p=tls-unique",
            .passthrough,
            L.sasl("challenge", L.challenge),
            L.sasl("challenge", "e=channel-bindings-dont-match"),
            L.failure("not-authorized")
        )
        #expect(told?.cause == .bindingMismatch && told?.side == .client)
    }

    @Test func `a client that detects an altered offer or version leaves`() {
        for (strategy, isSkewed, cause) in [
            (Strategy.strip, false, LoginCause.mechanismsAltered), (.minted, true, .tlsVersionAltered),
        ] {
            var harness = L.opened(L.mechanisms("SCRAM-SHA-1"))
            var login = Self.scram(BindingForecast.Flag.none)
            login.signsMechanisms = true
            login.signsTLSVersion = isSkewed
            if isSkewed { login.clientTLS = 0x0303 }
            harness.session.sharedState.login?.observe(.forecast(BindingForecast(login, strategy), seen: nil))
            harness.send(L.auth("SCRAM-SHA-1", "n,," + L.scramFirst))
            harness.recv(L.sasl("challenge", L.challenge + ",h=G6k/rBLDqgOhRRaCuuatSDFkJ08=,t=0304"))
            harness.leave()
            #expect(harness.diagnoses.first?.cause == cause)
            #expect(harness.diagnoses.first?.isProxyTheCause == true)
        }
    }
}
