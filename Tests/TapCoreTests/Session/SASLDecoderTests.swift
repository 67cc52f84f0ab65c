import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

/// Returns the parsed elements of a stream.
private func elements(_ xml: String) throws -> [Element] {
    let parser = StanzaParser()
    var decoder = StreamDecoder(limits: .authenticated)
    let header = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
    decoder.append(Array((header + xml).utf8).span)
    var elements: [Element] = []
    while let event = decoder.next() {
        if case .item(.element) = event.kind { elements.append(try parser.parse(decoder)) }
    }
    return elements
}

private let sasl = "urn:ietf:params:xml:ns:xmpp-sasl"

/// Returns an element with a message in base64; the first element of an exchange names a mechanism.
private func element(_ name: String, _ message: String, mechanism: String? = nil) -> String {
    let attribute = mechanism.map { " mechanism='\($0)'" } ?? ""
    return "<\(name) xmlns='\(sasl)'\(attribute)>\(Base64.encode(Array(message.utf8)))</\(name)>"
}

/// Returns the authentication steps of an exchange; each element has its direction.
private func steps(
    _ exchange: [(Direction, String)],
    _ decoder: inout SASLDecoder
) throws -> [AuthenticationStep] {
    try exchange.flatMap { direction, xml in
        try elements(xml).compactMap { decoder.decode($0, direction) }
    }
}

@Suite struct SASLDecoderTests {
    @Test func `a SCRAM exchange is recorded without its secrets`() throws {
        var decoder = SASLDecoder()
        let told = try steps(
            [
                (
                    .send,
                    element(
                        "auth",
                        "p=tls-exporter,a=admin@x,n=ro=2Cmeo,r=fJ3uH8sWqZ1x",
                        mechanism: "SCRAM-SHA-256-PLUS"
                    )
                ),
                (.recv, element("challenge", "r=fJ3uH8sWqZ1xP5tY,s=R0xkV2pNcTdLZg==,i=4096,h=bW5v,t=0304")),
                (
                    .send,
                    element(
                        "response",
                        "c=\(Base64.encode(Array("p=tls-exporter,a=admin@x,0123456789abcdef0123456789abcdef".utf8))),"
                            + "r=fJ3uH8sWqZ1xP5tY,p=dUh3WWV6M0xaczFyRTVHTg=="
                    )
                ),
                (.recv, element("success", "v=eE1hOVRvNEN3VjdoQWQ2Uw==")),
            ],
            &decoder
        )
        #expect(told.map(\.kind) == [.begin, .challenge, .response, .success])
        let base: Attributes = ["mechanism": "SCRAM-SHA-256-PLUS"]
        #expect(
            told[0].details.named
                == base.adding([
                    "step": "begin", "channel_binding_flag": "p", "channel_binding": "tls-exporter",
                    "authzid": "admin@x",
                    "client_nonce_bytes": 12, "user": "ro,meo",
                ])
        )
        #expect(
            told[1].details.named
                == base.adding([
                    "step": "challenge", "server_nonce_bytes": 4, "salt_bytes": 10, "iterations": 4096,
                    "signs_mechanisms": "h", "signs_tls_version": "0304", "user": "ro,meo",
                ])
        )
        #expect(
            told[2].details.named
                == base.adding(["step": "response", "proof": true, "channel_binding_bytes": 32, "user": "ro,meo"])
        )
        #expect(told[3].details.named == base.adding(["step": "success", "server_signature": true, "user": "ro,meo"]))
        #expect(decoder.user == "ro,meo")
        #expect(!decoder.isUnderWay)
    }

    struct First: CustomTestStringConvertible {
        var mechanism: String
        var message: String
        var details: Attributes
        var testDescription: String { "\(mechanism) \(message.debugDescription)" }
    }

    static let firsts: [First] = [
        First(mechanism: "PLAIN", message: "\0romeo\0pw", details: ["user": "romeo"]),
        First(mechanism: "plain", message: "a@b\0romeo\0pw", details: ["authzid": "a@b", "user": "romeo"]),
        First(mechanism: "PLAIN", message: "romeo\0pw", details: ["malformed": true]),
        First(mechanism: "PLAIN", message: "\0romeo\0", details: ["malformed": true]),
        First(mechanism: "PLAIN", message: "\0romeo\0p\0w", details: ["malformed": true]),
        First(mechanism: "PLAIN", message: "\0ro\nmeo\0pw", details: ["malformed": true]),
        First(
            mechanism: "SCRAM-SHA-1",
            message: "n,,n=romeo,r=abc",
            details: ["channel_binding_flag": "n", "client_nonce_bytes": 3, "user": "romeo"]
        ),
        First(
            mechanism: "SCRAM-SHA-1",
            message: "y,,n=a=3Db,r=abc,x=y",
            details: ["channel_binding_flag": "y", "client_nonce_bytes": 3, "user": "a=b"]
        ),
        First(mechanism: "SCRAM-SHA-1", message: "n,,m=ext,n=romeo,r=abc", details: ["malformed": true]),
        First(mechanism: "SCRAM-SHA-1", message: "n,,n=a=b,r=abc", details: ["malformed": true]),
        First(mechanism: "SCRAM-SHA-1", message: "x,,n=a,r=abc", details: ["malformed": true]),
        First(mechanism: "SCRAM-SHA-1", message: "n,n=a,r=abc", details: ["malformed": true]),
        First(mechanism: "SCRAM-SHA-1", message: "\0romeo\0pw", details: ["malformed": true]),
        First(mechanism: "EXTERNAL", message: "romeo@x", details: ["authzid_given": true]),
        First(mechanism: "ANONYMOUS", message: "me", details: ["trace_given": true]),
        First(
            mechanism: "OAUTHBEARER",
            message: "n,a=romeo@x,\u{1}host=x\u{1}port=5222\u{1}auth=Bearer tok\u{1}\u{1}",
            details: [
                "channel_binding_flag": "n", "host": "x", "port": "5222", "scheme": "Bearer", "user": "romeo@x",
            ]
        ),
        First(mechanism: "OAUTHBEARER", message: "n,,\u{1}auth=tok\u{1}\u{1}", details: ["malformed": true]),
        First(mechanism: "OAUTHBEARER", message: "\u{1}", details: ["acknowledges_error": true]),
        First(mechanism: "X-OAUTH2", message: "\0romeo\0tok", details: ["user": "romeo"]),
        First(mechanism: "HT-SHA-256-ENDP", message: "romeo\0mac", details: ["user": "romeo"]),
        First(mechanism: "HT-SHA-256-ENDP", message: "romeo", details: ["malformed": true]),
        First(mechanism: "GSSAPI", message: "ticket", details: ["bytes": 6]),
    ]

    @Test(arguments: firsts) func `the first message has the user and the mechanism's options`(_ first: First) throws {
        var decoder = SASLDecoder()
        let xml = element("auth", first.message, mechanism: first.mechanism)
        let step = try #require(try steps([(.send, xml)], &decoder).first)
        let expected: Attributes = ["mechanism": .string(first.mechanism), "step": "begin"]
        #expect(step.details.named == expected.adding(first.details))
    }

    @Test func `a DIGEST-MD5 exchange is recorded by its directives`() throws {
        var decoder = SASLDecoder()
        let told = try steps(
            [
                (.send, "<auth xmlns='\(sasl)' mechanism='DIGEST-MD5'/>"),
                (.recv, element("challenge", "realm=\"x \\\"y\\\"\",nonce=\"OA6MG9\",qop=\"auth\",charset=utf-8")),
                (
                    .send,
                    element(
                        "response",
                        "username=\"romeo\",realm=\"x\",nonce=\"OA6MG9\",cnonce=\"OA6MHX\",nc=00000001,qop=auth,"
                            + "digest-uri=\"xmpp/x\",response=d388dad9,authzid=\"r@x\""
                    )
                ),
                (.recv, element("challenge", "rspauth=ea40f603")),
                (.send, "<response xmlns='\(sasl)'/>"),
                (.recv, "<success xmlns='\(sasl)'/>"),
            ],
            &decoder
        )
        let base: Attributes = ["mechanism": "DIGEST-MD5"]
        #expect(told[0].details.named == base.adding(["step": "begin"]))
        #expect(
            told[1].details.named
                == base.adding(["step": "challenge", "realm": "x \"y\"", "server_nonce_bytes": 6, "qop": "auth"])
        )
        #expect(
            told[2].details.named
                == base.adding([
                    "step": "response", "user": "romeo", "realm": "x", "client_nonce_bytes": 6, "qop": "auth",
                    "digest_uri": "xmpp/x", "proof": true, "authzid": "r@x",
                ])
        )
        #expect(told[3].details.named == base.adding(["step": "challenge", "server_signature": true, "user": "romeo"]))
        #expect(told.map(\.kind).suffix(2) == [.response, .success])
    }

    @Test func `failures have their condition and text`() throws {
        let cases: [(String, String, String?)] = [
            ("<failure xmlns='\(sasl)'><not-authorized/><text>No</text></failure>", "not-authorized", "No"),
            ("<failure xmlns='\(sasl)'/>", "undefined-condition", nil),
            ("<failure xmlns='\(sasl)'><text>No</text><account-disabled/></failure>", "account-disabled", "No"),
            (
                "<failure xmlns='urn:xmpp:sasl:2'><credentials-expired xmlns='\(sasl)'/><text>Old</text></failure>",
                "credentials-expired", "Old"
            ),
        ]
        for (xml, condition, text) in cases {
            var decoder = SASLDecoder()
            let told = try steps([(.send, element("auth", "\0a\0b", mechanism: "PLAIN")), (.recv, xml)], &decoder)
            #expect(told.last?.kind == .failure)
            #expect(told.last?.condition == condition)
            #expect(told.last?.text == text)
            #expect(told.last?.details["user"] == "a")
            #expect(!decoder.isUnderWay)
        }
    }

    @Test func `server errors within a mechanism are named`() throws {
        let cases: [(String, String, String)] = [
            ("SCRAM-SHA-1", "e=channel-bindings-dont-match", "channel-bindings-dont-match"),
            ("SCRAM-SHA-1", "e=Some Thing Else", "other-error"),
            ("OAUTHBEARER", "{\"status\":\"invalid_token\",\"scope\":\"x\"}", "invalid_token"),
            ("OAUTHBEARER", "{\"scope\":[1,{}],\"status\":\"insufficient_scope\"}", "insufficient_scope"),
            ("OAUTHBEARER", "{", "other-error"),
        ]
        for (mechanism, message, error) in cases {
            var decoder = SASLDecoder()
            let told = try steps(
                [
                    (.send, "<auth xmlns='\(sasl)' mechanism='\(mechanism)'/>"), (.recv, element("challenge", message)),
                ],
                &decoder
            )
            #expect(told.last?.details["server_error"] == .string(error))
        }
    }

    @Test func `inline requests of SASL2 are recorded`() throws {
        var decoder = SASLDecoder()
        let told = try steps(
            [
                (
                    .send,
                    "<authenticate xmlns='urn:xmpp:sasl:2' mechanism='PLAIN'><initial-response>\n AHIAcA== \n</initial-response>"
                        + "<user-agent id='u'><software>S</software></user-agent><bind xmlns='urn:xmpp:bind:0'/></authenticate>"
                ),
                (
                    .recv,
                    "<continue xmlns='urn:xmpp:sasl:2'><tasks><task>A</task><task>B</task></tasks></continue>"
                ),
                (.send, "<next xmlns='urn:xmpp:sasl:2' task='A'><x xmlns='y'>secret</x></next>"),
                (
                    .recv,
                    "<success xmlns='urn:xmpp:sasl:2'><authorization-identifier>r@x/y</authorization-identifier>"
                        + "<bound xmlns='urn:xmpp:bind:0'/><token xmlns='urn:xmpp:fast:0' token='t'/></success>"
                ),
            ],
            &decoder
        )
        let base: Attributes = ["mechanism": "PLAIN", "user": "r"]
        #expect(told.map(\.kind) == [.begin, .proceed, .task, .success])
        #expect(told[0].details.named == base.adding(["step": "begin", "software": "S", "inline": .strings(["bind"])]))
        #expect(told[1].details.named == base.adding(["step": "continue", "tasks": .strings(["A", "B"])]))
        #expect(told[2].details.named == base.adding(["step": "task", "task": "A"]))
        #expect(
            told[3].details.named
                == base.adding([
                    "step": "success", "authorization_identifier": "r@x/y", "inline": .strings(["bound", "token"]),
                ])
        )
    }

    @Test func `legacy authentication is followed by its identifier`() throws {
        var decoder = SASLDecoder()
        let set =
            "<iq type='set' id='7'><query xmlns='jabber:iq:auth'><username>bill</username><digest>48fc</digest>"
            + "<resource>globe</resource></query></iq>"
        let told = try steps(
            [
                (.send, "<iq type='get' id='6'><query xmlns='jabber:iq:auth'><username>bill</username></query></iq>"),
                (.send, set), (.recv, "<iq type='result' id='6'/>"), (.send, "<iq type='result' id='7'/>"),
                (
                    .recv,
                    "<iq type='error' id='7'><error code='401' type='auth'><not-authorized "
                        + "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error></iq>"
                ),
            ],
            &decoder
        )
        #expect(told.map(\.kind) == [.begin, .failure])
        #expect(
            told[0].details.named == [
                "mechanism": "iq-auth", "step": "begin", "user": "bill", "method": "digest", "resource": "globe",
            ]
        )
        #expect(told[1].condition == "not-authorized")
        let again = try steps([(.send, set), (.recv, "<iq type='result' id='7'/>")], &decoder)
        #expect(again.map(\.kind) == [.begin, .success])
    }

    @Test func `names longer than allowed are not stored`() throws {
        let name = String(repeating: "x", count: 1024)
        let messages = [
            ("PLAIN", "\0\(name)\0pw"), ("SCRAM-SHA-1", "n,,n=\(name),r=abc"), ("HT-SHA-256-ENDP", "\(name)\0mac"),
            ("OAUTHBEARER", "n,a=\(name),\u{1}auth=Bearer tok\u{1}\u{1}"),
        ]
        var told = try messages.map { mechanism, message in
            var decoder = SASLDecoder()
            let both = try steps(
                [(.send, element("auth", message, mechanism: mechanism)), (.send, "<abort xmlns='\(sasl)'/>")],
                &decoder
            )
            #expect(both.map(\.details["malformed"]) == [true, nil])
            return both
        }
        var decoder = SASLDecoder()
        let query = "<query xmlns='jabber:iq:auth'><username>\(name)</username></query>"
        told.append(try steps([(.send, "<iq type='set' id='7'>\(query)</iq>")], &decoder))
        told.append(try steps([(.send, element("auth", "x", mechanism: name))], &decoder))
        for step in told.joined() {
            for entry in step.details.entries {
                guard case .string(let text) = entry.value else { continue }
                #expect(text.utf8.count <= 64, "\(entry.name)")
            }
        }
        let longest = String(name.dropLast())
        _ = try steps([(.send, element("auth", "\0\(longest)\0pw", mechanism: "PLAIN"))], &decoder)
        #expect(decoder.user == longest)
    }

    @Test func `a component's handshake ends in success or failure`() throws {
        let handshake = "<handshake xmlns='jabber:component:accept'>aaee83c2</handshake>"
        var decoder = SASLDecoder()
        let well = try steps([(.send, handshake), (.recv, "<handshake xmlns='jabber:component:accept'/>")], &decoder)
        #expect(well.map(\.kind) == [.begin, .success])
        let ill = try steps(
            [
                (.send, handshake),
                (.recv, "<stream:error><not-authorized xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>"),
            ],
            &decoder
        )
        #expect(ill.map(\.kind) == [.begin, .failure])
        #expect(ill.last?.condition == "not-authorized")
    }

    @Test func `other elements are not steps of an authentication`() throws {
        var decoder = SASLDecoder()
        let others = try steps(
            [
                (.recv, "<stream:error><reset xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>"),
                (.recv, "<stream:features/>"), (.send, "<iq type='set' id='1'/>"), (.recv, "<message/>"),
            ],
            &decoder
        )
        #expect(others.isEmpty)
    }

    @Test func `redacted messages are not reported as malformed`() throws {
        var decoder = SASLDecoder()
        let told = try steps(
            [
                (.send, "<auth xmlns='\(sasl)' mechanism='PLAIN'>[redacted:sasl-plain#1]</auth>"),
                (.recv, "<challenge xmlns='\(sasl)'>?</challenge>"), (.send, "<response xmlns='\(sasl)'>=</response>"),
            ],
            &decoder
        )
        #expect(told[0].details.named == ["mechanism": "PLAIN", "step": "begin", "redacted": true])
        #expect(told[1].details.named == ["mechanism": "PLAIN", "step": "challenge", "malformed": true])
        #expect(told[2].details.named == ["mechanism": "PLAIN", "step": "response", "empty": true])
    }

    @Test func `private names are recorded only without redaction`() throws {
        var decoder = SASLDecoder(policy: .none)
        let told = try steps(
            [
                (.send, element("auth", "romeo@x", mechanism: "EXTERNAL")),
                (.send, element("auth", "trace", mechanism: "ANONYMOUS")),
            ],
            &decoder
        )
        #expect(told[0].details["authzid"] == "romeo@x")
        #expect(told[1].details["trace"] == "trace")
    }

    @Test func `no secret of the catalogue is in the details`() throws {
        let search = SecretSearch(SecretCatalogue.items)
        for item in SecretCatalogue.all {
            // Each secret is sent in a separate exchange, and as an answer in an exchange with each mechanism.
            for mechanism in [
                nil, "PLAIN", "SCRAM-SHA-256", "DIGEST-MD5", "OAUTHBEARER", "HT-SHA-256-NONE", "X-UNKNOWN",
            ] {
                var decoder = SASLDecoder()
                let begin = mechanism.map { "<auth xmlns='\(sasl)' mechanism='\($0)'/>" } ?? ""
                let told = try steps([(.send, begin), (item.direction, item.xml)], &decoder)
                for step in told {
                    let text = "\(step) \(decoder.user ?? "") \(decoder.mechanism ?? "")"
                    #expect(search.leaks(in: text) == [], "\(item.name) by \(mechanism ?? "itself")")
                }
            }
        }
    }

    @Test func `mutated messages do not cause a crash`() throws {
        var random = SeededGenerator(seed: 9)
        let messages = [
            "p=tls-exporter,a=x,n=romeo,r=abc", "r=abcdef,s=R0xk,i=4096,h=a", "c=biws,r=abc,p=ZGVm", "v=ZGVm",
            "username=\"romeo\",realm=\"x\",nonce=\"a\\\"b\",qop=auth", "n,a=u,\u{1}auth=Bearer t\u{1}\u{1}",
            "{\"status\":\"x\"}", "\0a\0b",
        ]
        var malformed = 0
        for _ in 0..<3000 {
            var bytes = Array((messages.randomElement(using: &random) ?? "").utf8)
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let index = Int.random(in: bytes.indices, using: &random)
                bytes[index] = Bool.random(using: &random) ? UInt8.random(in: 0...255, using: &random) : 0x2C
            }
            let mechanism = ["PLAIN", "SCRAM-SHA-1", "DIGEST-MD5", "OAUTHBEARER"].randomElement(using: &random) ?? ""
            let name = ["challenge", "response", "success"].randomElement(using: &random) ?? ""
            var decoder = SASLDecoder()
            let told = try steps(
                [
                    (.send, "<auth xmlns='\(sasl)' mechanism='\(mechanism)'/>"),
                    (.recv, "<\(name) xmlns='\(sasl)'>\(Base64.encode(bytes))</\(name)>"),
                ],
                &decoder
            )
            #expect(told.count == 2)
            if told.last?.details["malformed"] == true { malformed += 1 }
        }
        #expect(malformed > 500)
    }
}

extension Attributes {
    /// The details by name, for comparisons that ignore the order.
    fileprivate var named: [String: Value] {
        Dictionary(entries.map { ($0.name, $0.value) }) { $1 }
    }

    /// Returns these details together with others.
    fileprivate func adding(_ others: Attributes) -> [String: Value] {
        named.merging(others.named) { $1 }
    }
}
