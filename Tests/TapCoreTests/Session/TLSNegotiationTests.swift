import TapDiagnosis
import TapRecord
import TapTestKit
import Testing

@testable import TapCore

private typealias Negotiation = TLSNegotiation<String>

/// How a client asks for TLS.
private enum Way: CaseIterable {
    case startTLS, direct
}

/// How far a negotiation on both legs has come.
private enum Step: CaseIterable {
    case beginning, server, identity, client, over
}

private let tls13 = Negotiation.Agreed(version: 0x0304, applicationProtocol: "xmpp-client")
private let tls12 = Negotiation.Agreed(version: 0x0303)
private let fault = TLSFailure(code: "tls-fault", "it failed", alert: .protocolVersion)

extension Negotiation {
    fileprivate init(_ way: Way, _ client: LegTLS = .auto, _ server: LegTLS = .auto) throws {
        var options = SessionOptions()
        options.clientTLS = client
        options.serverTLS = server
        switch way {
        case .startTLS: self.init(options, upstream: "upstream.example")
        case .direct: self = try #require(Negotiation(options, upstream: "upstream.example", first: 0x16))
        }
    }

    /// A negotiation on both legs that has come to a step.
    fileprivate init(_ way: Way, at step: Step) throws {
        try self.init(way)
        let inputs: [Input] = [
            way == .direct ? .received(RecordedHello.modern) : .consented(domain: "example.org", directProtocol: nil),
            .agreed(.server, tls13), .found("leaf", plaintextWaits: false), .agreed(.client, tls13),
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
        _ name: String,
        sendsName: Bool = true,
        _ protocols: [String] = [],
        isDirect: Bool = false
    ) -> Self {
        .startServer(name: name, sendsName: sendsName, protocols: protocols, isDirect: isDirect)
    }

    /// The handshake with a client that waits for the consent.
    fileprivate static func consent(maximum: UInt16?) -> Self {
        .startClient(.init(identity: "leaf", maximumVersion: maximum, protocols: nil, early: nil))
    }

    /// The handshake with a client that has begun it.
    fileprivate static func answer(maximum: UInt16?, _ protocols: [String]?, _ early: [UInt8]) -> Self {
        .startClient(
            .init(identity: "leaf", maximumVersion: maximum, protocols: protocols, early: early)
        )
    }

    /// How far it comes with this output.
    fileprivate var rank: Int {
        switch self {
        case .startServer: 1
        case .findIdentity: 2
        case .startClient: 3
        case .release, .abandon, .fail: 4
        }
    }
}

/// The inputs of a negotiation and what each yields.
private struct Play: Sendable {
    let name: String
    let way: Way
    var client = LegTLS.auto
    var server = LegTLS.auto
    let lines: [(Negotiation.Input, Negotiation.Output?)]
}

/// TLS on both legs: what follows what, whatever comes in between.
@Suite struct TLSNegotiationTests {
    private static let consented = Negotiation.Input.consented(domain: "example.org", directProtocol: nil)
    private static let found = Negotiation.Input.found("leaf", plaintextWaits: false)
    private static let modern = RecordedHello.modern
    private static let plain = RecordedHello.plain

    private static let plays: [Play] = [
        Play(
            name: "STARTTLS on both legs",
            way: .startTLS,
            lines: [
                (consented, .startServer("example.org")),
                (.agreed(.server, tls12), .findIdentity(name: "example.org", isNamed: true)),
                (found, .consent(maximum: 0x0303)),
                (.agreed(.client, tls12), .release(server: tls12, client: tls12)),
            ]
        ),
        Play(
            name: "a client of an older version than its server's",
            way: .startTLS,
            lines: [
                (consented, .startServer("example.org")),
                (.agreed(.server, tls13), .findIdentity(name: "example.org", isNamed: true)),
                (found, .consent(maximum: 0x0304)),
                (.agreed(.client, tls12), .release(server: tls13, client: tls12)),
            ]
        ),
        Play(
            name: "STARTTLS by a client that names no domain",
            way: .startTLS,
            lines: [
                (.consented(domain: nil, directProtocol: nil), .startServer("upstream.example")),
                (.agreed(.server, tls13), .findIdentity(name: "upstream.example", isNamed: false)),
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
                (.agreed(.server, tls13), .findIdentity(name: "example.org", isNamed: true)),
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
                (consented, .findIdentity(name: "example.org", isNamed: true)), (.agreed(.server, tls13), nil),
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
                (.received(modern), .startServer("xmpp.example.org", ["xmpp-client", "h2"], isDirect: true)),
                (.agreed(.server, tls13), .findIdentity(name: "xmpp.example.org", isNamed: true)),
                (found, .answer(maximum: 0x0304, ["xmpp-client"], modern)),
                (.agreed(.client, tls13), .release(server: tls13, client: tls13)),
            ]
        ),
        Play(
            name: "a hello in pieces, and more behind it",
            way: .direct,
            lines: modern.dropLast().map { (.received([$0]), nil) } + [
                (
                    .received([modern[modern.count - 1], 0x14]),
                    .startServer("xmpp.example.org", ["xmpp-client", "h2"], isDirect: true)
                ), (.received(modern), nil),
                (.agreed(.server, tls12), .findIdentity(name: "xmpp.example.org", isNamed: true)),
                (found, .answer(maximum: 0x0303, nil, modern + [0x14])),
            ]
        ),
        Play(
            name: "a hello without a name and without protocols",
            way: .direct,
            lines: [
                (.received(plain), .startServer("upstream.example", sendsName: false, isDirect: true)),
                (.agreed(.server, tls12), .findIdentity(name: "upstream.example", isNamed: false)),
                (found, .answer(maximum: 0x0303, nil, plain)),
            ]
        ),
        Play(
            name: "TLS from the first byte on the client's leg alone",
            way: .direct,
            server: .off,
            lines: [
                (.received(modern), .findIdentity(name: "xmpp.example.org", isNamed: true)),
                (found, .answer(maximum: nil, ["xmpp-client", "xmpp-server"], modern)),
                (.agreed(.client, tls13), .release(server: nil, client: tls13)),
            ]
        ),
        Play(
            name: "a malformed hello",
            way: .direct,
            lines: [
                (.received([0x16, 3, 1]), nil),
                (
                    .received([0, 0]),
                    .fail(
                        .client,
                        TLSFailure(
                            code: "malformed-client-hello",
                            "malformed ClientHello: an empty record",
                            alert: .decodeError
                        )
                    )
                ), (.received(modern), nil),
            ]
        ),
        Play(
            name: "what begins like TLS and is none",
            way: .direct,
            lines: [
                (
                    .received(Array("\u{16}\n<?xml".utf8)),
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
                (.received(modern), nil), (found, nil), (.agreed(.server, tls13), nil), (.agreed(.client, tls13), nil),
                (.notFound(fault), nil), (.notStarted(fault), nil), (consented, .startServer("example.org")),
                (consented, nil), (found, nil), (.notFound(fault), nil), (.agreed(.client, tls13), nil),
                (.agreed(.server, tls13), .findIdentity(name: "example.org", isNamed: true)),
                (.agreed(.server, tls12), nil), (.notStarted(fault), nil), (found, .consent(maximum: 0x0304)),
                (found, nil), (.notFound(fault), nil), (.agreed(.server, tls12), nil),
                (.agreed(.client, tls12), .release(server: tls13, client: tls12)),
            ]
        ),
    ]

    @Test(arguments: plays.map(\.name)) func `each input yields what follows from it`(name: String) throws {
        let play = try #require(Self.plays.first { $0.name == name })
        var negotiation = try Negotiation(play.way, play.client, play.server)
        for (index, (input, output)) in play.lines.enumerated() {
            let got = negotiation.handle(input)
            #expect(got == output, "line \(index)")
        }
    }

    @Test func `a client begins with TLS by its first byte, unless its leg stays in clear`() {
        var options = SessionOptions()
        #expect(Negotiation(options, upstream: "upstream.example", first: UInt8(ascii: "<")) == nil)
        options.clientTLS = .off
        #expect(Negotiation(options, upstream: "upstream.example", first: 0x16) == nil)
    }

    @Test(arguments: Way.allCases) private func `a leg is read while its peer is waited for`(way: Way) throws {
        let expected: [Step: [Leg]] = [
            .beginning: way == .direct ? [.client] : [], .server: [.server], .identity: [.server],
            .client: [.client, .server],
            .over: [],
        ]
        for step in Step.allCases {
            let negotiation = try Negotiation(way, at: step)
            let read = Leg.allCases.filter(negotiation.reads)
            #expect(read == expected[step], "\(step)")
            #expect(negotiation.readsHello == (way == .direct && step == .beginning), "\(step)")
        }
        var inClear = try Negotiation(way, .auto, .off)
        _ = inClear.handle(way == .direct ? .received(Self.modern) : Self.consented)
        #expect(!inClear.reads(.client) && !inClear.reads(.server))
    }

    @Test(arguments: Way.allCases) private func `what is known of the client is told at each step`(way: Way) throws {
        let name = way == .direct ? "xmpp.example.org" : "example.org"
        for step in Step.allCases {
            let negotiation = try Negotiation(way, at: step)
            let isKnown = step != .beginning && step != .over
            #expect(negotiation.clientName == (isKnown ? name : nil), "\(step)")
            #expect(negotiation.name == (isKnown ? name : "upstream.example"), "\(step)")
            #expect(negotiation.isDirect == (way == .direct && step != .over), "\(step)")
            #expect(negotiation.identity == (step == .client ? "leaf" : nil), "\(step)")
        }
    }

    // MARK: Failures

    /// The failure as it goes out: with the alert for a client that began with TLS and has had no answer.
    private static func failure(_ way: Way, answered: Bool, _ failure: TLSFailure = fault) -> TLSFailure {
        var failure = failure
        failure.alert = way == .direct && !answered ? failure.alert ?? .internalError : nil
        return failure
    }

    @Test(arguments: Way.allCases)
    private func `a handshake that fails ends the session on its leg`(way: Way) throws {
        for step in Step.allCases where step != .over {
            for leg in Leg.allCases {
                var negotiation = try Negotiation(way, at: step)
                let output = negotiation.handle(.failed(leg, fault))
                #expect(output == .fail(leg, Self.failure(way, answered: step == .client)), "\(step), \(leg)")
                #expect(negotiation.handle(.failed(leg, fault)) == nil)
            }
        }
    }

    @Test(arguments: Way.allCases) private func `a handshake that cannot be started fails on its leg`(way: Way) throws {
        for (step, leg) in [(Step.server, Leg.server), (.client, .client)] {
            var negotiation = try Negotiation(way, at: step)
            // The client that was to be answered by it was not.
            let output = negotiation.handle(.notStarted(fault))
            #expect(output == .fail(leg, Self.failure(way, answered: false)), "\(step)")
            #expect(negotiation.handle(.agreed(leg, tls13)) == nil)
        }
    }

    @Test(arguments: Way.allCases)
    private func `a client for whom there is no certificate is told by the alert that fits`(way: Way) throws {
        let name = TLSFailure(code: "no-certificate", "none may be made for com", alert: .unrecognizedName)
        let limit = TLSFailure(code: "no-certificate", "the limit is reached")
        for failure in [name, limit] {
            var negotiation = try Negotiation(way, at: .identity)
            let output = negotiation.handle(.notFound(failure))
            #expect(output == .fail(.client, Self.failure(way, answered: false, failure)))
            #expect(negotiation.handle(Self.found) == nil)
        }
    }

    @Test(arguments: Way.allCases) private func `plaintext before the client's TLS ends the session`(way: Way) throws {
        var negotiation = try Negotiation(way, at: .identity)
        let injected = TLSFailure(code: "starttls-injection", "plaintext received where TLS was expected")
        let output = negotiation.handle(.found("leaf", plaintextWaits: true))
        #expect(output == .fail(.client, Self.failure(way, answered: false, injected)))
        #expect(negotiation.handle(Self.found) == nil)
    }

    @Test(arguments: Way.allCases)
    private func `a peer that leaves in its own handshake has failed, and any other ends the session itself`(
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
    private func `a session can be stopped at each step, with a word and without`(way: Way) throws {
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

    // MARK: Any order

    @Test func `whatever the order, each output comes once, and none behind the last`() throws {
        var generator = SeededGenerator(seed: 20_261_122)
        let pieces = [modern(..<5), modern(5...), Self.modern, [0x16], Array("<stream".utf8), []]
        let results: [Negotiation.Input] = [
            Self.consented, .consented(domain: nil, directProtocol: "xmpp-client"), Self.found, .notFound(fault),
            .found("leaf", plaintextWaits: true), .notStarted(fault), .stopped(nil), .stopped(fault),
        ]
        let onLegs = Leg.allCases.flatMap { leg -> [Negotiation.Input] in
            [.agreed(leg, tls13), .agreed(leg, tls12), .failed(leg, fault), .ended(leg, fault)]
        }
        // What leads on comes more often, or few would come far.
        let leading: [Negotiation.Input] = [Self.consented, .received(Self.modern), Self.found]
        let agreed: [Negotiation.Input] = Leg.allCases.map { .agreed($0, tls13) }
        let inputs =
            results + onLegs + pieces.map { .received($0) }
            + [[Negotiation.Input]](
                repeating: leading + agreed,
                count: 6
            ).flatMap(\.self)
        var ends: Set<Int> = []
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
                case .startServer: #expect(server != .off)
                case .startClient: #expect(client != .off)
                case .release:
                    #expect(client == .off || agreed.contains(.client))
                    #expect(server == .off || agreed.contains(.server))
                    ends.insert(0)
                case .abandon: ends.insert(1)
                case .fail(_, let failure):
                    #expect(way == .direct || failure.alert == nil)
                    ends.insert(2)
                case .findIdentity: break
                }
                if rank == 4 { #expect(!negotiation.reads(.client) && !negotiation.reads(.server)) }
            }
        }
        #expect(ends.count == 3)
    }

    private func modern(_ range: some RangeExpression<Int>) -> [UInt8] { Array(Self.modern[range]) }
}
