internal import NIOCore
internal import TapReplay
internal import TapSecurity
public import XMPPCore

/// Where requests go that the recording has no answer to.
public struct ServeForwarding: Sendable {
    /// A real server.
    let server: LiveServer
    /// The passwords by the bare JIDs with which clients log in to ``ServeService``, and it to the server.
    let passwords: [JID: String]

    /// Puts both together.
    public init(server: LiveServer, passwords: [JID: String]) {
        self.server = server
        self.passwords = passwords
    }
}

/// Forwards one client's requests to a real server, with a session of its own; lives on the event loop of the client.
final class ServeForwarder {
    private enum State {
        case connecting, open, closed
    }

    /// The answer to a request; nil where there will be none.
    private let answer: (_ request: Element, _ answer: Element?) -> Void
    private var client: LiveClient?
    private var state = State.connecting
    /// The most requests that wait for an answer.
    private static let mostOpen = 1024
    /// Requests without an answer, by id.
    private var open: [String: Element] = [:]

    init(
        _ account: LiveAccount,
        at server: LiveServer,
        parser: StanzaParser,
        on loop: any EventLoop,
        answer: @escaping (_ request: Element, _ answer: Element?) -> Void
    ) {
        self.answer = answer
        let client = LiveClient(account, at: server, parser: parser, on: loop) { [weak self] in self?.happened($0) }
        self.client = client
        client.connect()
    }

    /// Forwards a request, once the session is open; false where it cannot be.
    func forward(_ request: Element) -> Bool {
        guard state != .closed, open.count < Self.mostOpen, let id = request.attribute("id"), open[id] == nil else {
            return false
        }
        open[id] = request
        if state == .open { send(request) }
        return true
    }

    /// Ends the session; no answer follows.
    func close() {
        state = .closed
        open = [:]
        client?.close()
        client = nil
    }

    private func send(_ request: Element) {
        client?.send(
            XMLWriter.bytes {
                $0.element(request, inheriting: Namespace.client.uri.description, setting: ["from": nil])
            }
        )
    }

    private func happened(_ event: LiveClient.Event) {
        switch event {
        case .bound:
            state = .open
            for request in open.values { send(request) }
        case .received(_, let element):
            guard element.matches("iq", .client), ["result", "error"].contains(element.attribute("type")),
                let request = element.attribute("id").flatMap({ open.removeValue(forKey: $0) })
            else { return }
            answer(request, element)
        case .ended:
            guard state != .closed else { return }
            state = .closed
            client = nil
            let rest = open.values
            open = [:]
            for request in rest { answer(request, nil) }
        case .resumed: break
        }
    }
}
