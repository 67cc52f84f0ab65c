internal import NIOCore
internal import TapReplay
internal import TapSecurity
package import XMPPCore

/// Forwarding of requests that the recording does not answer.
package struct ServeForwarding: Sendable {
    /// The real server that answers the requests.
    let server: LiveServer
    /// The passwords by bare JID. Clients log in to ``ServeService`` with these, which also logs in to the real server
    /// with them.
    let passwords: [JID: String]

    package init(server: LiveServer, passwords: [JID: String]) {
        self.server = server
        self.passwords = passwords
    }
}

/// Forwards the requests of one client to a real server, in order, in a separate session. Used on the client's event
/// loop only.
///
/// It holds a limited number of requests. The time limit for an answer is that of a login step.
final class ServeForwarder {
    /// The result of a request, or the end of the session.
    enum Event {
        /// The server's answer to a request.
        case answered(_ request: Element, _ answer: Element)
        /// No answer arrived for a request.
        case unanswered(_ request: Element)
        /// The session has ended, or could not be opened; with the reason, as a clause.
        case ended(String)
    }

    private struct Request {
        let id: String
        let element: Element
        let size: Int
        let due: NIODeadline
    }

    private enum State {
        /// The session is not open yet; with the items to send once it is.
        case connecting([[UInt8]])
        case open, closed
    }

    /// Maximum number of requests that wait for an answer, and the maximum of their total size in bytes.
    private static let maximumRequests = 1024
    private static let maximumBytes = 8 << 20

    private let timeout: TimeAmount
    private let loop: any EventLoop
    private let onEvent: (Event) -> Void
    private var client: LiveClient?
    private var state = State.connecting([])
    /// Requests that wait for an answer, the oldest first.
    private var requests: ArraySlice<Request> = []
    private var timer: Scheduled<Void>?

    init(
        _ account: LiveAccount,
        at server: LiveServer,
        parser: StanzaParser,
        on loop: any EventLoop,
        onEvent: @escaping (Event) -> Void
    ) {
        timeout = server.timeout
        self.loop = loop
        self.onEvent = onEvent
        let client = LiveClient(account, at: server, parser: parser, on: loop) { [weak self] in self?.handle($0) }
        self.client = client
        client.connect()
    }

    /// Whether an open session was lost; if so, another one can be opened.
    private(set) var isLost = false

    /// Forwards a request, after the session is open.
    ///
    /// - Throws: The error that the client gets instead of an answer.
    func forward(_ request: Element) throws(StanzaError) {
        guard let id = request.attribute("id"), !requests.contains(where: { $0.id == id }) else {
            throw .serviceUnavailable.saying("requests without an id are not forwarded")
        }
        let bytes = XMLWriter.bytes {
            $0.element(request, inheriting: Namespace.client.uri.description, setting: ["from": nil])
        }
        let size = requests.reduce(bytes.count) { $0 + $1.size }
        guard requests.count < Self.maximumRequests, size <= Self.maximumBytes else {
            throw .resourceConstraint.saying("too many forwarded requests wait for an answer")
        }
        switch state {
        case .connecting(let unsent): state = .connecting(unsent + [bytes])
        case .open: client?.send(bytes)
        case .closed: throw .remoteServerTimeout.saying("there is no connection to the server that answers requests")
        }
        requests.append(Request(id: id, element: request, size: bytes.count, due: .now() + timeout))
        arm()
    }

    /// Ends the session; no event follows.
    func close() {
        state = .closed
        timer?.cancel()
        requests = []
        client?.close()
        client = nil
    }

    private func handle(_ event: LiveClient.Event) {
        switch event {
        case .bound:
            guard case .connecting(let unsent) = state else { return }
            state = .open
            for bytes in unsent { client?.send(bytes) }
        case .received(_, let element):
            guard element.matches("iq", .client) else { return }
            guard ["result", "error"].contains(element.attribute("type")) else {
                // Refuse requests of the server. For a ping, an error is as good as any answer.
                if let answer = StanzaError.serviceUnavailable.answer(to: element, from: nil) { client?.send(answer) }
                return
            }
            guard let index = requests.firstIndex(where: { $0.id == element.attribute("id") }) else { return }
            let request = requests.remove(at: index)
            onEvent(.answered(request.element, element))
        case .ended(let end): ended(end.reason)
        case .resumed: break
        }
    }

    private func ended(_ reason: String) {
        if case .closed = state { return }
        if case .open = state { isLost = true }
        state = .closed
        client = nil
        timer?.cancel()
        let rest = requests
        requests = []
        onEvent(.ended(reason))
        for request in rest { onEvent(.unanswered(request.element)) }
    }

    /// Schedules the timer for the oldest request: all requests have the same time limit.
    private func arm() {
        timer?.cancel()
        timer = requests.first.map { first in
            loop.assumeIsolated().scheduleTask(deadline: first.due) { [weak self] in self?.expire() }
        }
    }

    private func expire() {
        // End the session if the server does not read: its requests would accumulate in memory.
        guard client?.isWritable != false else {
            client?.drop()
            return ended("the server does not read")
        }
        while let first = requests.first, first.due <= .now() {
            requests.removeFirst()
            onEvent(.unanswered(first.element))
        }
        arm()
    }
}
