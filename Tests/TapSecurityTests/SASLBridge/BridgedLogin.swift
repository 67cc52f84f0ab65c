@testable import TapCore
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapSecurity

/// A login through a session that bridges it: a client and a server with this program's mechanisms, each on a separate
/// TLS connection.
final class BridgedLogin {
    /// The credentials of all sides, and the server's offer.
    struct Setting {
        var mechanisms = ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"]
        /// The channel binding types that the server lists; nil sends no list.
        var types: [String]? = ["tls-exporter", "tls-server-end-point"]
        var isSASL2 = false
        /// Additional inline features of SASL2.
        var inline = ""
        var user = "juliet"
        var clientPassword = "r0m30"
        var storePassword = "r0m30"
        /// The stored keys in the account store, instead of a password.
        var storeKeys: StoredKeys?
        /// The cryptographic functions of the account store.
        var storeCryptography: any Cryptography = BridgedLogin.cryptography
        /// Whether the store also contains Romeo's password.
        var otherAccount = false
        /// The server's salt for hashing.
        var salt = "salt"
        var iterations = 4096
        var serverPassword = "r0m30"
        var hasCertificate = false
        var version: UInt16 = 0x0304
        /// Whether both legs use TLS.
        var isSecure = true
        /// How TLS starts on the client leg, if it is intercepted.
        var clientTLS: LegTLS?
        var redaction = RedactionPolicy.secrets
        /// Whether all data arrives byte by byte.
        var drips = false
        /// Whether the server signs another offer than it sends.
        var lies = false
    }

    static let cryptography = OpenSSLCryptography()
    static let header =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='example.org' version='1.0'>"
    static let answer =
        "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' from='example.org' id='x' version='1.0'>"

    let setting: Setting
    var harness: SessionHarness
    /// The features that the client received.
    let features: StreamFeatures
    private var seenByClient: Int
    private var seenByServer: Int

    /// Creates a session that bridges logins, before any data.
    static func harness(_ setting: Setting) throws -> SessionHarness {
        var options = SessionOptions(level: .trace, redaction: setting.redaction)
        options.holdsProceed = setting.clientTLS != nil
        options.clientTLS = setting.clientTLS ?? .auto
        let juliet = AccountsFile.Account(
            jid: try JID(parsing: "juliet@example.org"),
            secret: setting.storeKeys.map { .keys($0) } ?? .password(setting.storePassword)
        )
        let romeo = AccountsFile.Account(jid: try JID(parsing: "romeo@example.org"), secret: .password("Montague"))
        options.authenticator = try AccountStore(
            setting.otherAccount ? [juliet, romeo] : [juliet],
            hasCertificate: setting.hasCertificate,
            cryptography: setting.storeCryptography
        )
        var harness = SessionHarness(options: options)
        if setting.isSecure {
            harness.session.sharedState.perform(.secured(.client, Self.leg("C", setting.version)))
            harness.session.sharedState.perform(.secured(.server, Self.leg("S", setting.version)))
        }
        return harness
    }

    init(_ setting: Setting = Setting()) throws {
        var harness = try Self.harness(setting)
        harness.send(Self.header)
        harness.recv(Self.answer)
        let before = harness.toClient.count
        harness.recv(Self.features(setting))
        // The features that the client receives use the prefix of its stream.
        var decoder = StreamDecoder()
        decoder.append(harness.toClient.span)
        var element: Element?
        while let event = decoder.next() {
            guard case .item(.element) = event.kind else { continue }
            element = try StanzaParser().parse(decoder)
        }
        guard let features = element.flatMap({ StreamFeatures($0) }), harness.toClient.count > before else {
            throw KitError("the client got no features")
        }
        self.features = features
        seenByClient = harness.toClient.count
        seenByServer = harness.toServer.count
        self.harness = harness
        self.setting = setting
    }

    /// Returns the channel bindings of a leg, which differ between legs.
    static func leg(_ name: String, _ version: UInt16) -> SecuredLeg {
        let first = version >= 0x0304 ? ["tls-exporter"] : ["tls-exporter", "tls-unique"]
        return SecuredLeg(
            version: version,
            bindings: (first + ["tls-server-end-point"]).map {
                ChannelBinding(type: $0, data: Array("\($0) of \(name)".utf8))
            }
        )
    }

    static func features(_ setting: Setting) -> String {
        let names = setting.mechanisms.map { "<mechanism>\($0)</mechanism>" }.joined()
        let types = setting.types.map { types in
            "<sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'>"
                + types.map { "<channel-binding type='\($0)'/>" }.joined() + "</sasl-channel-binding>"
        }
        let list =
            setting.isSASL2
            ? "<authentication xmlns='urn:xmpp:sasl:2'>\(names)<inline>\(setting.inline)</inline></authentication>"
            : "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\(names)</mechanisms>"
        return "<stream:features>\(list)\(types ?? "")</stream:features>"
    }

    /// Starts a login; nil sends no initial response.
    func begin(_ mechanism: String, _ message: [UInt8]?) {
        let text = message.map { $0.isEmpty ? "=" : Base64.encode($0) } ?? ""
        harness.send("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='\(mechanism)'>\(text)</auth>")
    }

    // MARK: Received elements

    /// Returns the element that the client received since the last call; nil if there is none.
    func toClient() -> Element? {
        defer { seenByClient = harness.toClient.count }
        let bytes = Array(harness.toClient[seenByClient...])
        var reader = ElementReader()
        return bytes.isEmpty ? nil : reader.read(bytes.span)
    }

    /// Returns the element that the server received since the last call; nil if there is none.
    func toServer() -> Element? {
        defer { seenByServer = harness.toServer.count }
        let bytes = Array(harness.toServer[seenByServer...])
        var reader = ElementReader()
        return bytes.isEmpty ? nil : reader.read(bytes.span)
    }

    // MARK: Client and server

    /// The parts of the client's received offer that a server signs.
    var offered: LoginOffer {
        LoginOffer(
            mechanisms: setting.isSASL2 ? features.sasl2Mechanisms ?? [] : features.mechanisms,
            bindingTypes: features.channelBindings,
            tlsVersion: setting.isSecure ? setting.version : nil
        )
    }

    /// Creates a client that uses a binding of `type` if the mechanism binds.
    func client(_ mechanism: String, type: String?, flag: BindingClaim = .unsupported) throws -> any SASLExchange {
        let names = SASLIdentity(authentication: setting.user)
        guard mechanism != "PLAIN" else { return PlainClient(identity: names, password: setting.clientPassword) }
        let own = Self.leg("C", setting.version).bindings.first { $0.type == type }
        return SCRAMClient(
            try #require(SCRAMMechanism(name: mechanism)),
            identity: names,
            secret: .password(setting.clientPassword),
            nonce: "fyko",
            binding: own.map { .bound($0) } ?? flag,
            offer: offered,
            cryptography: Self.cryptography
        )
    }

    private func server(_ mechanism: String) throws -> any SASLExchange {
        let password = setting.serverPassword
        if mechanism == "PLAIN" { return PlainServer { $0.authentication == "juliet" && $1 == password } }
        let family = try #require(SCRAMMechanism(name: mechanism))
        let kept = try SCRAMCredentials(
            family.algorithm,
            password: password,
            salt: Array(setting.salt.utf8),
            iterations: setting.iterations,
            cryptography: Self.cryptography
        )
        let isBound = setting.isSecure && setting.mechanisms.contains { $0.hasSuffix("-PLUS") }
        return SCRAMServer(
            family,
            settings: .init(
                nonce: "3rfc",
                channelBindings: isBound ? Self.leg("S", setting.version).bindings : [],
                decoyKey: [1],
                offer: LoginOffer(
                    mechanisms: setting.mechanisms + (setting.lies ? ["SCRAM-SHA-512"] : []),
                    bindingTypes: setting.types,
                    tlsVersion: setting.isSecure ? setting.version : nil
                )
            ) { $0 == "juliet" ? kept : nil },
            cryptography: Self.cryptography
        )
    }

    private func say(_ direction: Direction, _ text: String) {
        guard setting.drips else { return harness.receive(direction, Array(text.utf8)) }
        for byte in text.utf8 { harness.receive(direction, [byte]) }
    }

    // MARK: Complete logins

    /// The result of a login.
    struct Outcome {
        /// Whether the client received a success with a valid proof of the server.
        var succeeded = false
        /// The SASL condition of the failure; nil if there was none.
        var condition: String?
        /// The mechanism of the login to the server; nil if the bridge did not log in.
        var mechanism: String?
        /// The first element that the server received.
        var first: Element?
        /// The last element that the client received.
        var last: Element?
    }

    /// Runs a login of the client; the server's success includes `extra`.
    func logIn(_ client: any SASLExchange, inline: String = "", extra: String = "") throws -> Outcome {
        var outcome = Outcome()
        var client = client
        guard case .send(let first) = client.step(nil) else { throw KitError("the client does not begin") }
        let name = setting.isSASL2 ? "authenticate" : "auth"
        let uri = setting.isSASL2 ? "urn:xmpp:sasl:2" : "urn:ietf:params:xml:ns:xmpp-sasl"
        let text = Base64.encode(first)
        let content = setting.isSASL2 ? "<initial-response>\(text)</initial-response>\(inline)" : text
        say(.send, "<\(name) xmlns='\(uri)' mechanism='\(client.mechanism)'>\(content)</\(name)>")
        var server: (any SASLExchange)?
        for _ in 0..<10 {
            if let element = toClient() {
                outcome.last = element
                switch element.name {
                case "challenge":
                    let message = try #require(Base64.decode(element.text))
                    guard case .send(let response) = client.step(message) else {
                        throw KitError("the client does not go on from \(String(decoding: message, as: UTF8.self))")
                    }
                    say(.send, "<response xmlns='\(uri)'>\(Base64.encode(response))</response>")
                case "success":
                    let data = setting.isSASL2 ? element.child("additional-data", .sasl2)?.text : element.text
                    outcome.succeeded = client.step(data.flatMap { Base64.decode($0) }) == .done(nil)
                    return outcome
                case "failure":
                    outcome.condition = element.firstChild { $0.namespace == .sasl && !$0.isNamed("text") }?.name
                    return outcome
                default: throw KitError("the client got <\(element.name)>")
                }
            }
            if let element = toServer() {
                try serve(element, &server, &outcome, uri, extra)
            }
        }
        throw KitError("no end")
    }

    private func serve(
        _ element: Element,
        _ server: inout (any SASLExchange)?,
        _ outcome: inout Outcome,
        _ uri: String,
        _ extra: String
    ) throws {
        var text = element.text
        switch element.name {
        case "auth", "authenticate":
            let mechanism = try #require(element.attribute("mechanism"))
            outcome.first = element
            outcome.mechanism = mechanism
            #expect(setting.mechanisms.contains(mechanism))
            server = mechanism == "EXTERNAL" ? nil : try self.server(mechanism)
            if setting.isSASL2 { text = try #require(element.childText("initial-response", .sasl2)) }
        case "response": break
        case "abort":
            return say(.recv, "<failure xmlns='\(uri)'><aborted xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/></failure>")
        default: throw KitError("the server got <\(element.name)>")
        }
        let message = text == "=" ? [] : try #require(Base64.decode(text))
        switch server?.step(message) ?? .done(nil) {
        case .send(let challenge):
            say(.recv, "<challenge xmlns='\(uri)'>\(Base64.encode(challenge))</challenge>")
        case .done(let data):
            let proof = data.map { Base64.encode($0) } ?? ""
            say(
                .recv,
                setting.isSASL2
                    ? "<success xmlns='\(uri)'>\(data == nil ? "" : "<additional-data>\(proof)</additional-data>")\(extra)</success>"
                    : "<success xmlns='\(uri)'>\(proof)</success>"
            )
        case .failed(let condition, _):
            say(
                .recv,
                "<failure xmlns='\(uri)'><\(condition) xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/></failure>"
            )
        }
    }
}
