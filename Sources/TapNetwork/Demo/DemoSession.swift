internal import TapCore
internal import TapSecurity
internal import XMPPCore

/// One thing the demo's client has done, for the summary.
public struct DemoStep: Sendable, Hashable {
    /// What was done, in a few words.
    public let title: String
    /// What came of it.
    public let detail: String
    /// Seconds since the client connected.
    public let time: Double
}

/// Why the demo's client could not go on.
public struct DemoError: Error, Sendable, CustomStringConvertible {
    /// The step that failed.
    public let step: String
    /// What was wrong.
    public let reason: String

    /// One line: the step and what was wrong.
    public var description: String { "\(step): \(reason)" }
}

/// The demo's client, sans-IO: a whole session from header to end, one step after the other.
///
/// Bytes and the time go in; bytes come out. When it is done or has failed it says so through ``outcome``.
struct DemoSession: ~Copyable {
    private enum State {
        case opening
        case negotiating
        case securing
        case authenticating(SCRAMClient)
        case reopening
        case binding
        case starting
        case awaiting(Request)
        case closing
        case finished
    }

    /// What is asked after the session is bound, in this order.
    private enum Request: String {
        case session, roster, presence, ping, message
    }

    static let text = "Wherefore art thou? 🌹"

    let account: JID
    private let password: String
    private let nonce: String
    private let cryptography: any Cryptography
    private let parser: StanzaParser
    private var decoder = StreamDecoder(limits: .authenticated)
    private var state = State.opening
    /// Whether it takes TLS where that is offered, and has not yet.
    private var wantsTLS: Bool
    /// The server has consented to TLS, which is to begin; ``secured(_:at:)`` goes on.
    private(set) var isTLSDue = false
    private var bound: JID?
    private(set) var steps: [DemoStep] = []
    /// How it ended, once it has ended.
    private(set) var outcome: Result<[DemoStep], DemoError>?

    /// - Parameters:
    ///   - account: A bare address; its password goes with it.
    ///   - wantsTLS: Whether it insists on STARTTLS.
    init(
        account: JID,
        password: String,
        wantsTLS: Bool,
        nonce: String,
        cryptography: any Cryptography,
        parser: StanzaParser
    ) {
        self.account = account
        self.password = password
        self.wantsTLS = wantsTLS
        self.nonce = nonce
        self.cryptography = cryptography
        self.parser = parser
    }

    /// What to send first.
    func header() -> [UInt8] {
        var xml = XMLWriter()
        xml.verbatim("<?xml version='1.0'?>".utf8)
        xml.start(
            "stream:stream",
            xmlns: Namespace.client.uri.description,
            ["xmlns:stream": Namespace.streams.uri.description, "to": account.domain, "version": "1.0"]
        )
        return xml.take()
    }

    /// Takes what the server has sent and gives what to send.
    ///
    /// - Parameter time: Seconds since the connection was made.
    mutating func receive(_ bytes: Span<UInt8>, at time: Double) -> [UInt8] {
        decoder.append(bytes)
        var output: [UInt8] = []
        do throws(DemoError) {
            while outcome == nil, let event = decoder.next() { output += try take(event, at: time) }
        } catch {
            outcome = .failure(error)
            output += Array("</stream:stream>".utf8)
        }
        return output
    }

    /// TLS is up; gives what to send.
    mutating func secured(_ words: String, at time: Double) -> [UInt8] {
        guard isTLSDue else { return [] }
        isTLSDue = false
        note("tls", words, time)
        decoder = StreamDecoder(limits: .authenticated)
        state = .opening
        return header()
    }

    /// TLS could not begin, or has failed.
    mutating func failed(_ words: String) {
        guard outcome == nil else { return }
        outcome = .failure(DemoError(step: name, reason: words))
    }

    /// The connection has ended.
    mutating func disconnected() {
        guard outcome == nil else { return }
        outcome = .failure(DemoError(step: name, reason: "the connection was closed"))
    }

    /// Nothing has come for too long.
    mutating func expired() {
        guard outcome == nil else { return }
        outcome = .failure(DemoError(step: name, reason: "no answer came"))
    }

    /// The step that is due, for an error.
    private var name: String {
        switch state {
        case .opening, .reopening: "stream"
        case .negotiating: "mechanisms"
        case .securing: "tls"
        case .authenticating: "login"
        case .binding, .starting: "bind"
        case .awaiting(let request): request.rawValue
        case .closing, .finished: "close"
        }
    }

    private func failure(_ reason: String) -> DemoError { DemoError(step: name, reason: reason) }

    private mutating func note(_ title: String, _ detail: String, _ time: Double) {
        steps.append(DemoStep(title: title, detail: detail, time: time))
    }

    private mutating func take(_ event: StreamEvent, at time: Double) throws(DemoError) -> [UInt8] {
        switch event.kind {
        case .item(.declaration), .item(.whitespace): return []
        case .item(.header):
            switch state {
            case .opening: state = .negotiating
            case .reopening: state = .binding
            default: throw failure("a stream header came out of turn")
            }
            return []
        case .item(.element):
            do {
                return try take(try parser.parse(decoder), at: time)
            } catch let error as DemoError {
                throw error
            } catch {
                throw failure("\(error)")
            }
        case .item(.end):
            guard case .closing = state else { throw failure("the server has ended the stream") }
            note("close", "the server has ended its stream too", time)
            state = .finished
            outcome = .success(steps)
            return []
        case .fault(let fault): throw failure(fault.explanation)
        case .fragment, .torn: throw failure("an item is too long or incomplete")
        }
    }

    private mutating func take(_ element: Element, at time: Double) throws(DemoError) -> [UInt8] {
        if element.matches("error", .streams) {
            throw failure("stream error \(element.firstChild?.name ?? "without a condition")")
        }
        switch state {
        case .negotiating where element.matches("features", .streams) && wantsTLS:
            guard element.child("starttls", .tls) != nil else { throw failure("TLS is not offered") }
            wantsTLS = false
            state = .securing
            return XMLWriter.bytes { $0.element("starttls", .tls) }
        case .securing:
            guard element.matches("proceed", .tls) else { throw failure("the server says \(element.name)") }
            isTLSDue = true
            return []
        case .negotiating where element.matches("features", .streams): return try login(element, at: time)
        case .authenticating(let exchange): return try answer(element, exchange, at: time)
        case .binding where element.matches("features", .streams):
            state = .starting
            return request("set", id: "bind") {
                $0.element("bind", .bind) { $0.element("resource", text: "demo") }
            }
        case .starting where element.attribute("id") == "bind":
            let text = element.child("bind", .bind)?.childText("jid", .bind)
            guard element.attribute("type") == "result", let jid = text.flatMap({ Address($0).jid }) else {
                throw failure("the server has bound nothing")
            }
            bound = jid
            note("bind", jid.description, time)
            state = .awaiting(.session)
            return request("set", id: "session") { $0.element("session", .session) }
        case .awaiting(let request): return try take(element, answering: request, at: time)
        default: return []
        }
    }

    // MARK: Login

    private mutating func login(_ features: Element, at time: Double) throws(DemoError) -> [UInt8] {
        let offered = features.child("mechanisms", .sasl)?.children("mechanism", .sasl).map(\.text) ?? []
        note("stream", "\(account.domain) offers \(offered.joined(separator: ", "))", time)
        let mechanism = SCRAMMechanism(.sha256)
        guard offered.contains(mechanism.description) else { throw failure("\(mechanism) is not offered") }
        var exchange = SCRAMClient(
            mechanism,
            identity: SASLIdentity(authentication: account.local ?? ""),
            password: password,
            nonce: nonce,
            cryptography: cryptography
        )
        guard case .send(let message) = exchange.step(nil) else { throw failure("the password cannot be used") }
        state = .authenticating(exchange)
        return XMLWriter.bytes {
            $0.element("auth", .sasl, ["mechanism": mechanism.description], text: Base64.encode(message))
        }
    }

    private mutating func answer(
        _ element: Element,
        _ exchange: SCRAMClient,
        at time: Double
    ) throws(DemoError) -> [UInt8] {
        var exchange = exchange
        guard element.namespace == .sasl, element.name != "failure" else {
            throw failure("the server says \(element.firstChild?.name ?? element.name)")
        }
        guard let message = Base64.decode(element.text) else { throw failure("no base64") }
        switch (element.name, exchange.step(message)) {
        case ("challenge", .send(let response)):
            state = .authenticating(exchange)
            return XMLWriter.bytes { $0.element("response", .sasl, text: Base64.encode(response)) }
        case ("success", .done):
            note("login", "\(exchange.mechanism), and the server has proven itself", time)
            state = .reopening
            return header()
        case (_, .failed(_, let text)): throw failure(text)
        default: throw failure("<\(element.name)/> came out of turn")
        }
    }

    // MARK: Session

    private mutating func take(
        _ element: Element,
        answering request: Request,
        at time: Double
    ) throws(DemoError) -> [UInt8] {
        switch request {
        case .presence:
            // Its own presence comes back to it, which shows that the server has spread it.
            guard element.matches("presence", .client), Address(element.attribute("from") ?? "").jid == bound else {
                return []
            }
            note("presence", "available, and seen to be", time)
            state = .awaiting(.ping)
            return self.request("get", id: "ping", to: account.domain) { $0.element("ping", .ping) }
        case .message:
            guard element.matches("message", .client) else { return [] }
            guard element.childText("body", .client) == Self.text else { throw failure("it came back as another") }
            note("message", "“\(Self.text)” has come back to its sender", time)
            state = .closing
            return Array("</stream:stream>".utf8)
        case .session, .roster, .ping:
            guard element.matches("iq", .client), element.attribute("id") == request.rawValue else { return [] }
            guard element.attribute("type") == "result" else {
                throw failure("the server says \(element.child("error", .client)?.firstChild?.name ?? "no")")
            }
            return finish(request, element, at: time)
        }
    }

    private mutating func finish(_ request: Request, _ answer: Element, at time: Double) -> [UInt8] {
        switch request {
        case .session:
            state = .awaiting(.roster)
            return self.request("get", id: "roster") { $0.element("query", .roster) }
        case .roster:
            let items = answer.child("query", .roster)?.children("item", .roster) ?? []
            let names = items.compactMap { $0.attribute("jid") }.joined(separator: ", ")
            note("roster", "\(items.count) contacts: \(names)", time)
            state = .awaiting(.presence)
            return XMLWriter.bytes { $0.element("presence") }
        default:
            note("ping", "the server has answered", time)
            state = .awaiting(.message)
            let recipient = account.description
            return XMLWriter.bytes {
                $0.element("message", ["type": "chat", "id": "message", "to": recipient]) {
                    $0.element("body", text: Self.text)
                }
            }
        }
    }

    private func request(
        _ type: String,
        id: String,
        to: String? = nil,
        _ payload: (inout XMLWriter) -> Void
    ) -> [UInt8] {
        XMLWriter.bytes { $0.element("iq", ["type": type, "id": id, "to": to], content: payload) }
    }
}
