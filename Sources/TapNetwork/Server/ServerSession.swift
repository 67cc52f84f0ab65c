internal import TapCore
internal import XMPPCore

/// One client's stream, seen from the server: from the header to the end, sans-IO.
///
/// Bytes go in, commands come out. Until a resource is bound the session speaks for itself; every stanza after that goes
/// to the ``ServerDirectory``, which is a parameter of each call because all sessions share it. A session is an object only
/// because its decoder cannot be copied and the core keeps sessions in a dictionary; it belongs to the core alone.
final class ServerSession {
    enum State {
        /// A header is due: the first one, or the one after authentication, when the account is known.
        case opening(account: JID?)
        /// TLS begins; what the client has said before it does not count.
        case negotiatingTLS
        /// Features have been sent; the client is not authenticated.
        case negotiating
        /// In a SASL exchange.
        case authenticating(any SASLExchange)
        /// Logged in; a resource has to be bound.
        case binding(account: JID)
        /// The session is established.
        case bound(JID)
        /// The stream has been closed by the server, or by both.
        case closed
    }

    let connection: ConnectionID
    var state = State.opening(account: nil)
    /// Failed log-ins so far.
    var failures = 0
    /// What comes is what TLS carried.
    private(set) var isSecure = false
    private var decoder = StreamDecoder(limits: .unauthenticated)
    /// The answer to the current header has been sent.
    private var hasAnswered = false

    init(connection: ConnectionID) { self.connection = connection }

    var isClosed: Bool { if case .closed = state { true } else { false } }

    /// Takes what the client has sent.
    func receive(
        _ bytes: Span<UInt8>,
        parser: StanzaParser,
        directory: inout ServerDirectory,
        _ output: inout [ServerCommand]
    ) {
        guard !isClosed else { return }
        decoder.append(bytes)
        while !isClosed, let event = decoder.next() {
            take(event, parser: parser, directory: &directory, &output)
            guard case .negotiatingTLS = state else { continue }
            // Discard plaintext after `<starttls/>` (CVE-2011-0411).
            decoder = StreamDecoder(limits: .unauthenticated)
            hasAnswered = false
            isSecure = true
            state = .opening(account: nil)
        }
    }

    private func take(
        _ event: StreamEvent,
        parser: StanzaParser,
        directory: inout ServerDirectory,
        _ output: inout [ServerCommand]
    ) {
        switch event.kind {
        case .item(.declaration), .item(.whitespace), .torn: break
        case .item(.header): open(event.head, directory: &directory, &output)
        case .item(.element):
            do {
                take(try parser.parse(decoder), directory: &directory, &output)
            } catch {
                fail(.internalServerError, "\(error.message)", directory: &directory, &output)
            }
        case .item(.end): close(directory: &directory, &output)
        case .fragment:
            let text = "element larger than \(decoder.limits.itemBytes) bytes"
            fail(.policyViolation, text, directory: &directory, &output)
        case .fault(let fault): fail(fault.condition, fault.explanation, directory: &directory, &output)
        }
    }

    // MARK: Stream

    private func open(
        _ head: StanzaHead,
        directory: inout ServerDirectory,
        _ output: inout [ServerCommand]
    ) {
        guard case .opening(let account) = state else {
            return fail(.badFormat, "unexpected stream restart", directory: &directory, &output)
        }
        answerHeader(directory, &output)
        let version = decoder.text(of: head.version)?.split(separator: ".").first.flatMap { Int($0) } ?? 0
        guard decoder.contentNamespace == .client else {
            return fail(.invalidNamespace, "this server accepts only client streams", directory: &directory, &output)
        }
        guard version >= 1 else {
            return fail(.unsupportedVersion, "version 1.0 is required", directory: &directory, &output)
        }
        guard let recipient = decoder.text(of: head.to) else {
            return fail(.improperAddressing, "the stream header has no 'to' domain", directory: &directory, &output)
        }
        guard Address(recipient).jid == directory.domain else {
            let text = "this server serves \(directory.domain)"
            return fail(.hostUnknown, text, directory: &directory, &output)
        }
        state = account.map { .binding(account: $0) } ?? .negotiating
        output.append(.write(connection, account == nil ? loginFeatures(directory.settings) : Self.bindFeatures))
    }

    private func answerHeader(_ directory: ServerDirectory, _ output: inout [ServerCommand]) {
        hasAnswered = true
        var xml = XMLWriter()
        xml.verbatim("<?xml version='1.0'?>".utf8)
        xml.start(
            "stream:stream",
            xmlns: Namespace.client.uri.description,
            [
                "xmlns:stream": Namespace.streams.uri.description,
                "id": try? randomName(bytes: 8, directory.cryptography),
                "from": directory.domain.description, "version": "1.0", "xml:lang": "en",
            ]
        )
        output.append(.write(connection, xml.take()))
    }

    private static let bindFeatures = XMLWriter.bytes {
        $0.element("stream:features") {
            $0.element("bind", .bind)
            $0.element("session", .session) { $0.element("optional") }
        }
    }

    /// A new stream has to begin: after success the client sends another header (RFC 6120 §6.4.6).
    func restart(account: JID) {
        state = .opening(account: account)
        hasAnswered = false
        decoder.limits = .authenticated
    }

    /// Answers the end of the client's stream with the end of this one.
    private func close(directory: inout ServerDirectory, _ output: inout [ServerCommand]) {
        output.append(.write(connection, Array("</stream:stream>".utf8)))
        output.append(.close(connection))
        end(directory: &directory, &output)
    }

    /// Ends the stream with an error (RFC 6120 §4.9).
    func fail(
        _ condition: StreamErrorCondition,
        _ text: String? = nil,
        directory: inout ServerDirectory,
        _ output: inout [ServerCommand]
    ) {
        guard !isClosed else { return }
        // Where the fault lies in the header itself, an answer to it goes before the error (§4.9.1.2).
        if !hasAnswered { answerHeader(directory, &output) }
        let bytes = XMLWriter.bytes {
            $0.element("stream:error") {
                $0.element(condition.rawValue, .streamErrors)
                $0.element("text", .streamErrors, text: text)
            }
        }
        output.append(.write(connection, bytes + Array("</stream:stream>".utf8)))
        output.append(.close(connection))
        end(directory: &directory, &output)
    }

    /// The stream is over, said or unsaid; those who saw the client's presence learn of it.
    func end(directory: inout ServerDirectory, _ output: inout [ServerCommand]) {
        if case .bound(let jid) = state { directory.unbind(connection, jid, &output) }
        state = .closed
    }

    // MARK: Elements

    private func take(
        _ element: Element,
        directory: inout ServerDirectory,
        _ output: inout [ServerCommand]
    ) {
        switch state {
        case .bound(let jid): take(element, as: jid, directory: &directory, &output)
        case .binding(let account): bind(element, account, directory: &directory, &output)
        case .negotiating, .authenticating: login(element, directory: &directory, &output)
        case .opening, .negotiatingTLS:
            fail(.notAuthorized, "stream restart required", directory: &directory, &output)
        case .closed: break
        }
    }

    private func take(
        _ stanza: Element,
        as jid: JID,
        directory: inout ServerDirectory,
        _ output: inout [ServerCommand]
    ) {
        guard stanza.namespace == .client, ["iq", "message", "presence"].contains(stanza.name) else {
            return fail(.unsupportedStanzaType, "<\(stanza.name)/> is not a stanza", directory: &directory, &output)
        }
        if let from = stanza.attribute("from") {
            // RFC 6120 §8.1.2.1: the client's own address, full or bare, and no other.
            guard let from = Address(from).jid, from == jid || from == jid.bare else {
                return fail(.invalidFrom, "this stream is bound to \(jid)", directory: &directory, &output)
            }
        }
        directory.handle(stanza, from: ServerSender(connection: connection, jid: jid), &output)
    }

    /// The one request that is allowed before a resource is bound (RFC 6120 §7).
    private func bind(
        _ iq: Element,
        _ account: JID,
        directory: inout ServerDirectory,
        _ output: inout [ServerCommand]
    ) {
        guard iq.matches("iq", .client), iq.attribute("type") == "set", let payload = iq.child("bind", .bind) else {
            return fail(.notAuthorized, "bind a resource first", directory: &directory, &output)
        }
        do throws(StanzaError) {
            guard iq.attribute("id") != nil else { throw .badRequest }
            let requested = payload.childText("resource", .bind).flatMap { $0.isEmpty ? nil : $0 }
            let jid = try directory.bind(connection, to: account, resource: requested, &output)
            state = .bound(jid)
            let answer = directory.result(of: iq, nil) {
                $0.element("bind", .bind) { $0.element("jid", text: jid.description) }
            }
            output.append(.write(connection, answer))
        } catch {
            if let answer = error.answer(to: iq, from: nil) { output.append(.write(connection, answer)) }
        }
    }
}

extension StreamDecoder {
    /// The value of an attribute of the last event's head; `nil` if it is absent.
    fileprivate func text(of attribute: StanzaHead.Attribute?) -> String? {
        guard let attribute else { return nil }
        var value: [UInt8] = []
        AttributeValue.decode(bytes.slice(attribute.range), into: &value)
        return String(decoding: value, as: UTF8.self)
    }
}
