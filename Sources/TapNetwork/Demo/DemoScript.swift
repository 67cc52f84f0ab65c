internal import XMPPCore

/// One step of the demo client, for the summary.
package struct DemoStep: Sendable, Hashable {
    /// The name of the step.
    package let title: String
    /// The result of the step.
    package let detail: String
    /// Seconds since the client connected.
    package let time: Double
}

/// The reason why the demo client failed.
package struct DemoError: Error, Sendable, CustomStringConvertible {
    /// The step that failed.
    package let step: String
    /// The problem.
    package let reason: String

    /// One line: the step and the problem.
    package var description: String { "\(step): \(reason)" }
}

/// The script of the demo client after resource binding, without I/O: each request is sent after the answer to the
/// previous one.
struct DemoScript {
    /// The requests, in this order.
    private enum Request: String {
        case roster, presence, ping, message
    }

    static let text = "Wherefore art thou? 🌹"

    private let jid: JID
    private var awaited = Request.roster

    /// Creates the script for a client with this bound address.
    init(_ jid: JID) { self.jid = jid }

    /// The first request.
    var opening: [UInt8] { Self.request("roster") { $0.element("query", .roster) } }

    /// Handles an element. Returns the result of the current step and the bytes to send next; nil bytes end the script.
    /// Returns nil if the element does not belong to the step.
    mutating func receive(_ element: Element) throws(DemoError) -> (title: String, detail: String, next: [UInt8]?)? {
        let title = awaited.rawValue
        switch awaited {
        case .presence:
            // The server also sends the client's presence to the client itself (RFC 6121 §4.2.2).
            guard element.matches("presence", .client), Address(element.attribute("from") ?? "").jid == jid else {
                return nil
            }
            awaited = .ping
            return (
                title, "available, and received back",
                Self.request("ping", to: jid.domain) { $0.element("ping", .ping) }
            )
        case .message:
            guard element.matches("message", .client) else { return nil }
            guard element.childText("body", .client) == Self.text else {
                throw DemoError(step: title, reason: "the echo differs from what was sent")
            }
            return (title, "“\(Self.text)” received back by its sender", nil)
        case .roster, .ping:
            guard element.matches("iq", .client), element.attribute("id") == title else { return nil }
            guard element.attribute("type") == "result" else {
                let condition = element.child("error", .client)?.firstChild?.name ?? "no"
                throw DemoError(step: title, reason: "the server answered \(condition)")
            }
            return (title, detail(of: element), nextRequest())
        }
    }

    private func detail(of answer: Element) -> String {
        guard awaited == .roster else { return "the server answered" }
        let items = answer.child("query", .roster)?.children("item", .roster) ?? []
        return "\(items.count) contacts: \(items.compactMap { $0.attribute("jid") }.joined(separator: ", "))"
    }

    private mutating func nextRequest() -> [UInt8] {
        guard awaited == .ping else {
            awaited = .presence
            return XMLWriter.bytes { $0.element("presence") }
        }
        awaited = .message
        let recipient = jid.bare.description
        return XMLWriter.bytes {
            $0.element("message", ["type": "chat", "id": "message", "to": recipient]) {
                $0.element("body", text: Self.text)
            }
        }
    }

    private static func request(_ id: String, to: String? = nil, _ payload: (inout XMLWriter) -> Void) -> [UInt8] {
        XMLWriter.bytes { $0.element("iq", ["type": "get", "id": id, "to": to], content: payload) }
    }
}
