package import TapDiagnosis
package import TapRecord
internal import XMPPCore

/// The reason why a WebSocket to the server was not opened.
package struct UpgradeFailure: Sendable {
    /// The reason, as a clause.
    package var reason: String
    /// The cause (default: the server refused the WebSocket).
    package var cause = LoginCause.webSocketRefused
    /// The side at fault; nil for the default side of the cause.
    package var side: LoginCause.Side?
    /// The code of the record.
    package var code = "websocket-refused"
    /// The remedy; nil for the usual one of the cause.
    package var remedy: Remedy?

    /// Creates the failure of a server that was reached.
    package init(_ reason: String) { self.reason = reason }

    /// Creates the failure of a server that was not reached.
    package init(_ reason: String, _ fault: ConnectionFault) {
        self.reason = reason
        cause = fault.cause
        code = "server-unreachable"
    }
}

/// An opening handshake of a WebSocket (RFC 6455 §4) that has succeeded on both legs, as the session records it.
package struct WebSocketUpgrade: Sendable {
    /// The path of the client's request, without the query, which may contain a token.
    package var path: String
    /// The field `Origin`: the site of the page that opened the connection; nil for clients that are not browsers.
    package var origin: String?
    /// The values of `Sec-WebSocket-Protocol` in the client's request.
    package var offered: [String]
    /// The values of `Sec-WebSocket-Protocol` in the server's answer.
    package var answered: [String]
    /// The names of the extensions that xmpptap removed from the client's offer, because frames could not be read with
    /// them.
    package var removedExtensions: [String]
    /// The TLS with the client; nil without TLS.
    package var clientTLS: TLSAgreement?
    /// The TLS with the server; nil without TLS.
    package var serverTLS: TLSAgreement?
    /// Other facts for the record, such as the software of the server.
    package var details: Attributes

    /// Creates the facts of a handshake.
    package init(
        path: String,
        origin: String? = nil,
        offered: [String] = [],
        answered: [String] = [],
        removedExtensions: [String] = [],
        details: Attributes = [:]
    ) {
        self.path = path
        self.origin = origin
        self.offered = offered
        self.answered = answered
        self.removedExtensions = removedExtensions
        self.details = details
    }
}

extension SessionContext {
    /// Records the handshake, before any message.
    mutating func upgraded(_ upgrade: WebSocketUpgrade) {
        for (leg, agreement) in [(Leg.server, upgrade.serverTLS), (.client, upgrade.clientTLS)] {
            guard let agreement else { continue }
            if agreement.overlooked != nil { info.isUnverified = true }
            if leg == .client { info.hasClientTLS = true }
            record(TLSReport(opened: agreement, on: leg))
        }
        (info.serverTLS, info.clientTLS) = (upgrade.serverTLS?.version, upgrade.clientTLS?.version)
        var details = upgrade.details
        details["path"] = .string(upgrade.path)
        if let origin = upgrade.origin { details["origin"] = .string(origin) }
        var message: Prose = "WebSocket at \(upgrade.path)"
        if let origin = upgrade.origin { message = "\(message), opened by a page of \(origin)" }
        if !upgrade.removedExtensions.isEmpty {
            let names = upgrade.removedExtensions.joined(separator: ", ")
            details["removed_extensions"] = .strings(upgrade.removedExtensions)
            message = "\(message); \(names) was removed from the client's offer, so that messages can be read"
        }
        report(.session, .verbose, code: Record.Code.webSocketOpened, message, part: .net, details: details)
        guard
            let fault = WebSocketHandshake.subprotocolFault(offered: upgrade.offered, answered: upgrade.answered)
        else { return }
        report(.note, .warn, code: fault.rawValue, fault.explanation, part: .net)
    }
}

extension SessionContext {
    /// Ends the session, because the handshake has failed.
    mutating func upgradeFailed(_ failure: UpgradeFailure) {
        let reason = failure.reason
        blame(failure.cause, at: .connect, reason, side: failure.side, remedy: failure.remedy)
        finishStep(.connect, .failed(Prose(reason)))
        report(.error, .error, code: failure.code, Prose(reason), part: .net, remedy: failure.remedy)
        endUnconnected()
        finish(reset: false)
    }
}

extension WebSocketHandshake.SubprotocolFault {
    /// A description of the fault, and of its consequence.
    fileprivate var explanation: Prose {
        switch self {
        case .notOffered:
            "the client does not offer the subprotocol xmpp, which RFC 7395 requires; Prosody refuses such clients"
        case .notAnswered: "the server does not answer with the subprotocol xmpp; browsers end the connection"
        case .several: "the server answers with several subprotocols; browsers end the connection"
        case .other: "the server answers with another subprotocol than xmpp; browsers end the connection"
        }
    }
}
