internal import XMPPCore

/// Identifies a connection during the lifetime of the server.
struct ConnectionID: Hashable, Sendable {
    let number: UInt64
}

/// A command of the server's core to the connection handlers.
enum ServerCommand: Hashable, Sendable {
    /// Send these bytes, in the order of the commands.
    case write(ConnectionID, [UInt8])
    /// Close the connection after all data has been sent.
    case close(ConnectionID)
    /// Start TLS on the server's side after all data has been sent.
    case startTLS(ConnectionID)
    /// Close another connection's stream with this error. The core performs it itself; handlers never get it.
    case terminate(ConnectionID, StreamErrorCondition)
}

/// A stanza error: its condition and the associated type (RFC 6120 §8.3.3).
struct StanzaError: Error, Hashable, Sendable {
    let condition: String
    let type: String
    /// An additional human-readable text.
    var text: String?

    static let badRequest = StanzaError(condition: "bad-request", type: "modify")
    static let conflict = StanzaError(condition: "conflict", type: "cancel")
    static let internalServerError = StanzaError(condition: "internal-server-error", type: "cancel")
    static let itemNotFound = StanzaError(condition: "item-not-found", type: "cancel")
    static let jidMalformed = StanzaError(condition: "jid-malformed", type: "modify")
    static let notAcceptable = StanzaError(condition: "not-acceptable", type: "modify")
    static let notAllowed = StanzaError(condition: "not-allowed", type: "cancel")
    static let remoteServerNotFound = StanzaError(condition: "remote-server-not-found", type: "cancel")
    static let remoteServerTimeout = StanzaError(condition: "remote-server-timeout", type: "wait")
    static let resourceConstraint = StanzaError(condition: "resource-constraint", type: "wait")
    static let serviceUnavailable = StanzaError(condition: "service-unavailable", type: "cancel")

    /// Returns the error with this text.
    func saying(_ text: String) -> StanzaError { StanzaError(condition: condition, type: type, text: text) }

    /// Returns the error stanza that answers `stanza`; nil if it must not be answered with an error (RFC 6120 §8.3.1).
    ///
    /// - Parameter recipient: The sender of `stanza`; nil before a resource is bound.
    func answer(to stanza: Element, from recipient: JID?) -> [UInt8]? {
        guard let type = stanza.attribute("type") ?? .some(""), type != "error", type != "result" else { return nil }
        return XMLWriter.bytes {
            $0.element(
                stanza.name,
                [
                    "type": "error", "id": stanza.attribute("id"), "from": stanza.attribute("to"),
                    "to": recipient?.description,
                ]
            ) {
                $0.element("error", ["type": self.type]) {
                    $0.element(condition, .stanzaErrors)
                    $0.element("text", .stanzaErrors, text: text)
                }
            }
        }
    }
}
