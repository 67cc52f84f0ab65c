import Testing
import XMPPCore

@Suite struct WebSocketHandshakeTests {
    /// The example of RFC 6455 §1.3; its SHA-1 digest is given there.
    @Test func `the example key of RFC 6455 gives the expected answer`() {
        let digest: [UInt8] = [
            0xB3, 0x7A, 0x4F, 0x2C, 0xC0, 0x62, 0x4F, 0x16, 0x90, 0xF6, 0x46, 0x06, 0xCF, 0x38, 0x59, 0x45, 0xB2, 0xBE,
            0xC4, 0xEA,
        ]
        for key in ["dGhlIHNhbXBsZSBub25jZQ==", " dGhlIHNhbXBsZSBub25jZQ==\t"] {
            let accept = WebSocketHandshake.accept(key: key) { input in
                #expect(input.string() == "dGhlIHNhbXBsZSBub25jZQ==258EAFA5-E914-47DA-95CA-C5AB0DC85B11")
                return digest
            }
            #expect(accept == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        }
        #expect(WebSocketHandshake.accept(key: "") { _ in [] } == "")
        #expect(WebSocketHandshake.accept(key: "") { _ in [0xFF] } == "/w==")
        #expect(WebSocketHandshake.accept(key: "") { _ in [0, 0, 0x3F, 0xFB] } == "AAA/+w==")
    }

    @Test func `a key is the Base64 of 16 bytes`() {
        for key in ["dGhlIHNhbXBsZSBub25jZQ==", "AAAAAAAAAAAAAAAAAAAAAA==", " +/8AAAAAAAAAAAAAAAAAAQ== "] {
            #expect(WebSocketHandshake.isKey(key), "\(key)")
        }
        for key in [
            "", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZQ=a", "dGhlIHNhbXBsZSBub25jZZ==",
            "dGhlIHNhbXBsZSBub25jZGE=", "dGhl-HNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZQ==AAAA",
            "=======================",
        ] {
            #expect(!WebSocketHandshake.isKey(key), "\(key)")
        }
    }

    @Test func `the subprotocol must be xmpp`() {
        typealias Fault = WebSocketHandshake.SubprotocolFault
        let cases: [(offered: [String], answered: [String], fault: Fault?)] = [
            (["xmpp"], ["xmpp"], nil), (["chat, xmpp"], ["xmpp"], nil), (["chat", " xmpp\t"], [" xmpp "], nil),
            ([], ["xmpp"], .notOffered), (["chat"], ["chat"], .notOffered), (["XMPP"], ["xmpp"], .notOffered),
            (["xmpp"], [], .notAnswered), (["xmpp"], [", "], .notAnswered), (["xmpp, a"], ["xmpp, a"], .several),
            (["xmpp, a"], ["a"], .other),
        ]
        for (offered, answered, fault) in cases {
            #expect(WebSocketHandshake.subprotocolFault(offered: offered, answered: answered) == fault)
        }
    }
}

@Suite struct WebSocketExtensionTests {
    private typealias Extension = WebSocketExtension

    @Test func `extension fields are parsed`() {
        let cases: [(fields: [String], extensions: [Extension]?)] = [
            ([], []), ([""], []), ([" , ,"], []),
            (["permessage-deflate"], [Extension("permessage-deflate")]),
            (
                ["permessage-deflate; client_max_window_bits, x-webkit-deflate-frame"],
                [
                    Extension("permessage-deflate", [.init("client_max_window_bits")]),
                    Extension("x-webkit-deflate-frame"),
                ]
            ),
            (
                ["a;b=1 ;\tc = \"2\\3\"", "d"],
                [Extension("a", [.init("b", "1"), .init("c", "23")]), Extension("d")]
            ),
            ([",a,,b,"], [Extension("a"), Extension("b")]),
            (["a b"], nil), (["a;"], nil), (["a;b="], nil), (["a;b=\"\""], nil), (["a;b=\"x y\""], nil),
            (["a;b=\"x"], nil),
            (["a;b=\"x\\"], nil), (["a;=1"], nil), (["=1"], nil), ([";a"], nil), (["a", "b;"], nil), (["ä"], nil),
            (["a;b=1=2"], nil), (["a\r\n"], nil), (["a;b;;c"], nil),
        ]
        for (fields, extensions) in cases { #expect(Extension.parse(fields) == extensions, "\(fields)") }
    }

    @Test func `an extension is removed from an offer`() {
        let cases: [(fields: [String], rest: String?)] = [
            (["permessage-deflate"], nil), ([], nil), (["permessage-deflate; client_max_window_bits"], nil),
            (["permessage-deflate, a;b=\"1\"", "permessage-deflate; x, c"], "a; b=1, c"), (["a"], "a"),
            (["a, permessage-deflate;"], nil), (["Permessage-Deflate, a"], "a"),
        ]
        for (fields, rest) in cases {
            #expect(Extension.removing(PerMessageDeflate.name, from: fields) == rest, "\(fields)")
        }
    }

    struct Negotiation: CustomTestStringConvertible {
        var offer: String
        var answer: String
        var fault: WebSocketExtensionFault?
        var testDescription: String { "\(offer) / \(answer)" }

        init(_ offer: String, _ answer: String, _ fault: WebSocketExtensionFault? = nil) {
            self.offer = offer
            self.answer = answer
            self.fault = fault
        }
    }

    static let negotiations: [Negotiation] = [
        Negotiation("permessage-deflate", "permessage-deflate"),
        Negotiation("permessage-deflate; client_max_window_bits", "permessage-deflate; client_max_window_bits=9"),
        Negotiation("permessage-deflate; client_max_window_bits=10", "permessage-deflate"),
        Negotiation("permessage-deflate; server_no_context_takeover", "permessage-deflate; server_no_context_takeover"),
        Negotiation("permessage-deflate", "permessage-deflate; client_no_context_takeover; server_max_window_bits=15"),
        Negotiation("permessage-deflate; server_max_window_bits=10, permessage-deflate", "permessage-deflate"),
        Negotiation("a, permessage-deflate; wrong, permessage-deflate", "permessage-deflate"),
        Negotiation("", "permessage-deflate", .notOffered),
        Negotiation("a", "permessage-deflate", .notOffered),
        Negotiation("permessage-deflate", "permessage-deflate, permessage-deflate", .notOffered),
        Negotiation("a, permessage-deflate", "a", .unsupported),
        Negotiation("a, permessage-deflate", "permessage-deflate, a", .unsupported),
        Negotiation("permessage-deflate", "permessage-deflate;", .malformed),
        Negotiation("permessage-deflate;", "permessage-deflate", .malformed),
        Negotiation("permessage-deflate", "permessage-deflate; other", .parameter),
        Negotiation("permessage-deflate", "permessage-deflate; server_no_context_takeover=1", .parameter),
        Negotiation(
            "permessage-deflate",
            "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
            .parameter
        ),
        Negotiation(
            "permessage-deflate; client_max_window_bits",
            "permessage-deflate; client_max_window_bits",
            .parameter
        ),
        Negotiation("permessage-deflate", "permessage-deflate; server_max_window_bits=7", .parameter),
        Negotiation("permessage-deflate", "permessage-deflate; server_max_window_bits=16", .parameter),
        Negotiation("permessage-deflate", "permessage-deflate; server_max_window_bits=08", .parameter),
        Negotiation("permessage-deflate", "permessage-deflate; server_max_window_bits", .parameter),
        Negotiation("permessage-deflate", "permessage-deflate; client_max_window_bits=9", .mismatch),
        Negotiation("permessage-deflate; server_no_context_takeover", "permessage-deflate", .mismatch),
        Negotiation("permessage-deflate; server_max_window_bits=10", "permessage-deflate", .mismatch),
        Negotiation(
            "permessage-deflate; server_max_window_bits=10",
            "permessage-deflate; server_max_window_bits=11",
            .mismatch
        ),
        Negotiation("permessage-deflate; server_max_window_bits=99", "permessage-deflate", .mismatch),
    ]

    @Test(arguments: negotiations) func `an answer must match the offer`(_ one: Negotiation) {
        do throws(WebSocketExtensionFault) {
            let agreed = try PerMessageDeflate.agreed(offered: [one.offer], answered: [one.answer])
            #expect(agreed != nil && one.fault == nil)
        } catch {
            #expect(error == one.fault)
        }
    }

    @Test func `agreed parameters apply to each direction`() throws {
        let agreed = try #require(
            try PerMessageDeflate.agreed(
                offered: ["permessage-deflate; client_max_window_bits; server_no_context_takeover"],
                answered: ["permessage-deflate; client_max_window_bits=9; server_no_context_takeover"]
            )
        )
        #expect(agreed.windowBits(from: .client) == 9 && agreed.windowBits(from: .server) == 15)
        #expect(agreed.keepsContext(from: .client) && !agreed.keepsContext(from: .server))
        #expect(try PerMessageDeflate.agreed(offered: ["permessage-deflate"], answered: []) == nil)
        #expect(try PerMessageDeflate.agreed(offered: ["a;"], answered: [""]) == nil)
    }
}
