import TapDiagnosis
import TapRecord
import TapTestKit
import Testing

@testable import TapCore

private typealias Negotiation = TLSNegotiation

/// How a client begins TLS.
private enum Way: CaseIterable {
    case startTLS, direct
}

/// The progress of a negotiation on both legs.
private enum Step: CaseIterable {
    case beginning, server, identity, client, over
}

private let tls13 = {
    var agreement = TLSAgreement(version: 0x0304, details: [:], summary: "TLS 1.3")
    agreement.applicationProtocol = "xmpp-client"
    return agreement
}()
private let tls12 = TLSAgreement(version: 0x0303, details: [:], summary: "TLS 1.2")
private let fault = TLSFailure(code: "tls-fault", "it failed", alert: .protocolVersion)

extension Negotiation {
    fileprivate init(_ way: Way, _ client: LegTLS = .auto, _ server: LegTLS = .auto) throws {
        var options = SessionOptions()
        options.clientTLS = client
        options.serverTLS = server
        switch way {
        case .startTLS: self.init(options)
        case .direct: self = try #require(Negotiation(options, first: 0x16))
        }
    }

    /// Creates a negotiation on both legs that has reached a step.
    fileprivate init(_ way: Way, at step: Step) throws {
        try self.init(way)
        let inputs: [Input] = [
            way == .direct
                ? .received(.client, RecordedHello.modern) : .consented(domain: "example.org", directProtocol: nil),
            .agreed(.server, tls13), .found(isServersOwn: false), .agreed(.client, tls13),
        ]
        let count =
            switch step {
            case .beginning: 0
            case .server: 1
            case .identity: 2
            case .client: 3
            case .over: 4
            }
        for input in inputs.prefix(count) { #expect(handle(input) != nil) }
    }
}

extension Negotiation.Output {
    fileprivate static func startServer(
        _ name: String?,
        sendsName: Bool = true,
        _ protocols: [String] = [],
        isDirect: Bool = false
    ) -> Self {
        .perform(.startServer(name: name, sendsName: sendsName, protocols: protocols, isDirect: isDirect))
    }

    fileprivate static func findIdentity(_ name: String?) -> Self { .perform(.findIdentity(name: name)) }

    /// Returns the handshake with a client that waits for the consent.
    fileprivate static func consent(maximum: UInt16?) -> Self {
        .perform(.startClient(maximumVersion: maximum, protocols: nil, isDirect: false, first: []))
    }

    /// Returns the handshake with a client that has begun TLS.
    fileprivate static func answer(maximum: UInt16?, _ protocols: [String]?, _ early: [UInt8]) -> Self {
        .perform(.startClient(maximumVersion: maximum, protocols: protocols, isDirect: true, first: early))
    }

    /// The progress of a negotiation after this output.
    fileprivate var rank: Int {
        switch self {
        case .perform(.startServer): 1
        case .perform(.findIdentity): 2
        case .perform(.startClient): 3
        case .perform(.presentIdentity): 4
        case .release, .abandon, .fail: 5
        }
    }
}

/// A sequence of inputs of a negotiation, with the output of each.
private struct Play: Sendable {
    let name: String
    let way: Way
    var client = LegTLS.auto
    var server = LegTLS.auto
    let lines: [(Negotiation.Input, Negotiation.Output?)]
}

/// Tests of TLS on both legs: the steps keep their order, whatever inputs arrive in between.
@Suite struct TLSNegotiationTests {
    private static let consented = Negotiation.Input.consented(domain: "example.org", directProtocol: nil)
    private static let found = Negotiation.Input.found(isServersOwn: false)
    private static let modern = RecordedHello.modern
    private static let plain = RecordedHello.plain

    private static let plays: [Play] = [
        Play(
            name: "STARTTLS on both legs",
            way: .startTLS,
            lines: [
                (consented, .startServer("example.org")),
                (.agreed(.server, tls12), .findIdentity("example.org")),
                (found, .consent(maximum: 0x0303)),
                (.agreed(.client, tls12), .release(server: tls12, client: tls12)),
            ]
        ),
        Play(
            name: "a server that requests the certificate of another server",
            way: .startTLS,
            lines: [
                (consented, .startServer("example.org")),
                (.identityRequested(tls12), .findIdentity("example.org")),
                (found, .consent(maximum: 0x0303)),
                (.agreed(.client, tls12), .perform(.presentIdentity)),
                // The initiating server opens its stream at once.
                (.received(.client, Array("<stream:stream".utf8)), nil),
                (.agreed(.server, tls12), .release(server: tls12, client: tls12)),
            ]
        ),
        Play(
            name: "a server that requests a certificate although the client leg has no TLS",
            way: .startTLS,
            client: .off,
            lines: [
                (consented, .startServer("example.org")),
                (.identityRequested(tls13), .perform(.presentIdentity)),
                (.agreed(.server, tls13), .release(server: tls13, client: nil)),
            ]
        ),
        Play(
            name: "a server that refuses the certificate of another server",
            way: .startTLS,
            lines: [
                (consented, .startServer("example.org")),
                (.identityRequested(tls13), .findIdentity("example.org")),
                (found, .consent(maximum: 0x0304)),
                (.agreed(.client, tls13), .perform(.presentIdentity)),
                (.failed(.server, fault), .fail(.server, failure(.startTLS, answered: true))),
            ]
        ),
        Play(
            name: "a server that disconnects while the other server is asked for its certificate",
            way: .startTLS,
            lines: [
                (consented, .startServer("example.org")),
                (.identityRequested(tls13), .findIdentity("example.org")),
                (found, .consent(maximum: 0x0304)),
                (.ended(.server, fault), .fail(.server, failure(.startTLS, answered: true))),
            ]
        ),
        Play(
            name: "a client of an older version than its server's",
            way: .startTLS,
            lines: [
                (consented, .startServer("example.org")),
                (.agreed(.server, tls13), .findIdentity("example.org")),
                (found, .consent(maximum: 0x0304)),
                (.agreed(.client, tls12), .release(server: tls13, client: tls12)),
            ]
        ),
        Play(
            name: "STARTTLS by a client that names no domain",
            way: .startTLS,
            lines: [
                (.consented(domain: nil, directProtocol: nil), .startServer(nil)),
                (.agreed(.server, tls13), .findIdentity(nil)),
            ]
        ),
        Play(
            name: "STARTTLS by the client, TLS from the first byte with the server",
            way: .startTLS,
            server: .direct,
            lines: [
                (
                    .consented(domain: "example.org", directProtocol: "xmpp-client"),
                    .startServer("example.org", ["xmpp-client"], isDirect: true)
                ),
                (.agreed(.server, tls13), .findIdentity("example.org")),
                (found, .consent(maximum: 0x0304)),
                (.agreed(.client, tls13), .release(server: tls13, client: tls13)),
            ]
        ),
        Play(
            name: "the server's leg alone",
            way: .startTLS,
            client: .off,
            lines: [
                (consented, .startServer("example.org")), (found, nil),
                (.agreed(.server, tls13), .release(server: tls13, client: nil)),
            ]
        ),
        Play(
            name: "the client's leg alone",
            way: .startTLS,
            server: .off,
            lines: [
                (consented, .findIdentity("example.org")), (.agreed(.server, tls13), nil),
                (found, .consent(maximum: nil)), (.agreed(.client, tls13), .release(server: nil, client: tls13)),
            ]
        ),
        Play(
            name: "no leg",
            way: .startTLS,
            client: .off,
            server: .off,
            lines: [(consented, .release(server: nil, client: nil))]
        ),
        Play(
            name: "TLS from the first byte on both legs",
            way: .direct,
            lines: [
                (.received(.client, modern), .startServer("xmpp.example.org", ["xmpp-client", "h2"], isDirect: true)),
                (.agreed(.server, tls13), .findIdentity("xmpp.example.org")),
                (found, .answer(maximum: 0x0304, ["xmpp-client"], modern)),
                (.agreed(.client, tls13), .release(server: tls13, client: tls13)),
            ]
        ),
        Play(
            name: "a hello in pieces, and more behind it",
            way: .direct,
            lines: modern.dropLast().map { (.received(.client, [$0]), nil) } + [
                (
                    .received(.client, [modern[modern.count - 1], 0x14]),
                    .startServer("xmpp.example.org", ["xmpp-client", "h2"], isDirect: true)
                ), (.received(.client, modern), nil),
                (.agreed(.server, tls12), .findIdentity("xmpp.example.org")),
                (found, .answer(maximum: 0x0303, nil, modern + [0x14] + modern)),
            ]
        ),
        Play(
            name: "a hello without a name and without protocols",
            way: .direct,
            lines: [
                (.received(.client, plain), .startServer(nil, sendsName: false, isDirect: true)),
                (.agreed(.server, tls12), .findIdentity(nil)),
                (found, .answer(maximum: 0x0303, nil, plain)),
            ]
        ),
        Play(
            name: "TLS from the first byte on the client's leg alone",
            way: .direct,
            server: .off,
            lines: [
                (.received(.client, modern), .findIdentity("xmpp.example.org")),
                (found, .answer(maximum: nil, ["xmpp-client", "xmpp-server"], modern)),
                (.agreed(.client, tls13), .release(server: nil, client: tls13)),
            ]
        ),
        Play(
            name: "a malformed hello",
            way: .direct,
            lines: [
                (.received(.client, [0x16, 3, 1]), nil),
                (
                    .received(.client, [0, 0]),
                    .fail(
                        .client,
                        TLSFailure(
                            code: "malformed-client-hello",
                            "malformed ClientHello: an empty record",
                            alert: .decodeError
                        )
                    )
                ), (.received(.client, modern), nil),
            ]
        ),
        Play(
            name: "what begins like TLS and is none",
            way: .direct,
            lines: [
                (
                    .received(.client, Array("\u{16}\n<?xml".utf8)),
                    .fail(
                        .client,
                        TLSFailure(
                            code: "malformed-client-hello",
                            "not TLS, although it begins like a TLS record",
                            alert: .decodeError
                        )
                    )
                )
            ]
        ),
        Play(
            name: "results that nobody waits for",
            way: .startTLS,
            lines: [
                (found, nil), (.agreed(.server, tls13), nil),
                (.agreed(.client, tls13), nil),
                (.notFound(fault), nil), (.notStarted(fault), nil), (consented, .startServer("example.org")),
                (consented, nil), (found, nil), (.notFound(fault), nil), (.agreed(.client, tls13), nil),
                (.agreed(.server, tls13), .findIdentity("example.org")),
                (.agreed(.server, tls12), nil), (.notStarted(fault), nil), (found, .consent(maximum: 0x0304)),
                (found, nil), (.notFound(fault), nil), (.agreed(.server, tls12), nil),
                (.agreed(.client, tls12), .release(server: tls13, client: tls12)),
            ]
        ),
    ]

    @Test(arguments: plays.map(\.name)) func `each input yields the expected output`(name: String) throws {
        let play = try #require(Self.plays.first { $0.name == name })
        var negotiation = try Negotiation(play.way, play.client, play.server)
        for (index, (input, output)) in play.lines.enumerated() {
            let got = negotiation.handle(input)
            #expect(got == output, "line \(index)")
        }
    }

    @Test func `direct TLS is not negotiated after plaintext or if the client leg has TLS off`() {
        var options = SessionOptions()
        #expect(Negotiation(options, first: UInt8(ascii: "<")) == nil)
        options.clientTLS = .off
        #expect(Negotiation(options, first: 0x16) == nil)
    }

    @Test(arguments: Way.allCases) private func `a leg is read only in the steps that need it`(way: Way) throws {
        let expected: [Step: [Leg]] = [
            .beginning: way == .direct ? [.client] : [], .server: [.server], .identity: [.server],
            .client: [.client, .server],
            .over: [],
        ]
        for step in Step.allCases {
            let negotiation = try Negotiation(way, at: step)
            let read = Leg.allCases.filter(negotiation.reads)
            #expect(read == expected[step], "\(step)")
        }
        var inClear = try Negotiation(way, .auto, .off)
        _ = inClear.handle(way == .direct ? .received(.client, Self.modern) : Self.consented)
        #expect(!inClear.reads(.client) && !inClear.reads(.server))
    }

    @Test(arguments: Way.allCases) private func `the client's domain is known in the negotiation`(way: Way) throws {
        let name = way == .direct ? "xmpp.example.org" : "example.org"
        for step in Step.allCases {
            let negotiation = try Negotiation(way, at: step)
            let isKnown = step != .beginning && step != .over
            #expect(negotiation.clientName == (isKnown ? name : nil), "\(step)")
            #expect(negotiation.isDirect == (way == .direct && step != .over), "\(step)")
        }
    }

    // MARK: Failures

    /// Returns the failure as it is output: with an alert for a client that began with TLS and has received no answer.
    private static func failure(_ way: Way, answered: Bool, _ failure: TLSFailure = fault) -> TLSFailure {
        var failure = failure
        failure.alert = way == .direct && !answered ? failure.alert ?? .internalError : nil
        return failure
    }

    @Test(arguments: Way.allCases)
    private func `a failed handshake ends the negotiation on its leg`(way: Way) throws {
        for step in Step.allCases where step != .over {
            for leg in Leg.allCases {
                var negotiation = try Negotiation(way, at: step)
                let output = negotiation.handle(.failed(leg, fault))
                #expect(output == .fail(leg, Self.failure(way, answered: step == .client)), "\(step), \(leg)")
                #expect(negotiation.handle(.failed(leg, fault)) == nil)
            }
        }
    }

    @Test(arguments: Way.allCases) private func `a handshake that cannot start fails on its leg`(way: Way) throws {
        for (step, leg) in [(Step.server, Leg.server), (.client, .client)] {
            var negotiation = try Negotiation(way, at: step)
            // The handshake with the client was not started, so the client has received no answer.
            let output = negotiation.handle(.notStarted(fault))
            #expect(output == .fail(leg, Self.failure(way, answered: false)), "\(step)")
            #expect(negotiation.handle(.agreed(leg, tls13)) == nil)
        }
    }

    @Test(arguments: Way.allCases)
    private func `if no certificate is available for the client, it receives the matching alert`(way: Way) throws {
        let name = TLSFailure(code: "no-certificate", "none may be made for com", alert: .unrecognizedName)
        let limit = TLSFailure(code: "no-certificate", "the limit is reached")
        for failure in [name, limit] {
            var negotiation = try Negotiation(way, at: .identity)
            let output = negotiation.handle(.notFound(failure))
            #expect(output == .fail(.client, Self.failure(way, answered: false, failure)))
            #expect(negotiation.handle(Self.found) == nil)
        }
    }

    @Test(arguments: Way.allCases, [Step.server, .identity])
    private func `plaintext before TLS ends the session, white space does not`(way: Way, step: Step) throws {
        let injected = TLSFailure(code: "starttls-injection", "plaintext received where TLS was expected")
        for leg in Leg.allCases where way == .startTLS || leg == .server {
            var negotiation = try Negotiation(way, at: step)
            #expect(negotiation.handle(.received(leg, [0x0A])) == nil)
            #expect(negotiation.kept(leg.inbound) == [0x0A])
            #expect(negotiation.handle(.received(leg, [0x3C])) == nil)
            if step == .server {
                let output = negotiation.handle(.agreed(.server, tls13))
                guard leg == .client else {
                    #expect(output == .fail(.server, Self.failure(way, answered: false, injected)))
                    continue
                }
            }
            let output = negotiation.handle(Self.found)
            #expect(output == .fail(.client, Self.failure(way, answered: false, injected)))
            #expect(negotiation.handle(Self.found) == nil)
        }
    }

    @Test func `reading from the server stops at a limit before TLS with the client is established`() throws {
        var negotiation = try Negotiation(.startTLS, at: .client)
        let limit = SessionOptions().waitingBytes
        #expect(negotiation.handle(.received(.server, Array(repeating: 0x20, count: limit - 1))) == nil)
        #expect(negotiation.reads(.server))
        #expect(negotiation.handle(.received(.server, [0x20])) == nil)
        #expect(!negotiation.reads(.server) && negotiation.reads(.client))
        #expect(negotiation.kept(.recv).count == limit)
        #expect(negotiation.handle(.agreed(.client, tls13)) == .release(server: tls13, client: tls13))
    }

    @Test(arguments: Way.allCases)
    private func `a peer that ends in its own handshake fails it; otherwise the session is abandoned`(
        way: Way
    ) throws {
        let turns: [Step: Leg] = [.server: .server, .client: .client]
        for step in Step.allCases where step != .over {
            for leg in Leg.allCases {
                var negotiation = try Negotiation(way, at: step)
                let isTurn = way == .direct && step == .beginning ? leg == .client : turns[step] == leg
                let output = negotiation.handle(.ended(leg, fault))
                let failed = Negotiation.Output.fail(leg, Self.failure(way, answered: step == .client))
                #expect(output == (isTurn ? failed : .abandon), "\(step), \(leg)")
                #expect(negotiation.handle(.ended(leg.other, fault)) == nil)
            }
        }
    }

    @Test(arguments: Way.allCases)
    private func `a negotiation can be stopped at each step, with or without a failure`(way: Way) throws {
        for step in Step.allCases where step != .over {
            var negotiation = try Negotiation(way, at: step)
            #expect(negotiation.handle(.stopped(nil)) == .abandon, "\(step)")
            #expect(negotiation.handle(Self.found) == nil)

            negotiation = try Negotiation(way, at: step)
            let leg = step == .server || way == .startTLS && step == .beginning ? Leg.server : .client
            let output = negotiation.handle(.stopped(fault))
            #expect(output == .fail(leg, Self.failure(way, answered: step == .client)), "\(step)")
            #expect(negotiation.handle(.stopped(nil)) == nil)
        }
    }

    // MARK: Random order of inputs

    @Test func `each output comes at most once in any order of inputs`() throws {
        var generator = SeededGenerator(seed: 20_261_122)
        let pieces = [modern(..<5), modern(5...), Self.modern, [0x16], Array("<stream".utf8), []]
        let results: [Negotiation.Input] = [
            Self.consented, .consented(domain: nil, directProtocol: "xmpp-client"), Self.found, .notFound(fault),
            .received(.server, [0x3C]), .notStarted(fault), .stopped(nil), .stopped(fault),
        ]
        let onLegs = Leg.allCases.flatMap { leg -> [Negotiation.Input] in
            [.agreed(leg, tls13), .agreed(leg, tls12), .failed(leg, fault), .ended(leg, fault)]
        }
        // Inputs that continue the negotiation are more frequent; otherwise, few negotiations would reach the last
        // steps.
        let leading: [Negotiation.Input] = [
            Self.consented, .received(.client, Self.modern), .identityRequested(tls13), Self.found,
        ]
        let agreed: [Negotiation.Input] = Leg.allCases.map { .agreed($0, tls13) }
        let inputs =
            results + onLegs + pieces.map { .received(.client, $0) }
            + [[Negotiation.Input]](
                repeating: leading + agreed,
                count: 6
            ).flatMap(\.self)
        var ends: Set<Int> = []
        var presented = 0
        for _ in 0..<2000 {
            let way = Way.allCases.randomElement(using: &generator) ?? .direct
            let legs = [LegTLS.auto, .off]
            let client = way == .direct ? .auto : legs.randomElement(using: &generator) ?? .auto
            let server = legs.randomElement(using: &generator) ?? .auto
            var negotiation = try Negotiation(way, client, server)
            var rank = 0
            var agreed: Set<Leg> = []
            for _ in 0..<30 {
                let input = inputs.randomElement(using: &generator) ?? Self.found
                if case .agreed(let leg, _) = input, negotiation.reads(leg) { agreed.insert(leg) }
                guard let output = negotiation.handle(input) else { continue }
                #expect(output.rank > rank)
                rank = output.rank
                switch output {
                case .perform(.startServer): #expect(server != .off)
                case .perform(.startClient): #expect(client != .off)
                case .release:
                    #expect(client == .off || agreed.contains(.client))
                    #expect(server == .off || agreed.contains(.server))
                    ends.insert(0)
                case .abandon: ends.insert(1)
                case .fail(_, let failure):
                    #expect(way == .direct || failure.alert == nil)
                    ends.insert(2)
                case .perform(.presentIdentity): presented += 1
                case .perform(.findIdentity): break
                }
                if rank == 5 { #expect(!negotiation.reads(.client) && !negotiation.reads(.server)) }
            }
        }
        #expect(ends.count == 3)
        #expect(presented > 0)
    }

    private func modern(_ range: some RangeExpression<Int>) -> [UInt8] { Array(Self.modern[range]) }
}
