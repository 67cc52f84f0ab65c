package import XMPPCore

// Codes and details that other code reads back from records. All others appear only in the code that writes them.
extension Record {
    /// Values of ``code`` that code searches for. All are stable.
    package enum Code {
        /// A session began; see ``Beginning``.
        package static let sessionBegan = "session-began"
        /// The session is ready: stanzas flow.
        package static let sessionReady = "session-ready"
        /// The session ended; the details are its counts.
        package static let sessionEnded = "session-ended"
        /// The handshake of a WebSocket has succeeded.
        package static let webSocketOpened = "websocket-opened"
        /// TLS is negotiated on a leg. The message contains the same information as the details.
        package static let tlsOpened = "tls-opened"
        /// The server refused a login (RFC 6120 §6.5); see ``Record/condition``.
        package static let saslFailure = "sasl-failure"
        /// The session ended before it was ready; the details contain the reason.
        package static let loginFailed = "login-failed"
        /// The effect of channel binding on the pending login.
        package static let channelBinding = "channel-binding"
        /// A subscription between an account and a contact changed, or a stanza requested a change.
        package static let subscription = "subscription"
        /// A client reconnects repeatedly.
        package static let reconnectLoop = "reconnect-loop"
        /// Logins of one account from one address fail repeatedly.
        package static let loginLoop = "login-loop"
        /// Records of one or more sessions are missing from a capture at this position; the details contain their
        /// number.
        package static let recordsOmitted = "records-omitted"
        /// The capture ended before the run.
        package static let captureEnded = "capture-ended"
        /// Less than nine tenths of the XML in another program's log could be read; the message contains the share.
        package static let logUnderstoodInPart = "log-understood-in-part"
        /// The conditions of a rule matched an item; see ``Record/rule``.
        package static let ruleHit = "rule-hit"
    }

    /// Names in ``details`` that are read back.
    package enum Detail {
        /// For ``Code/loginFailed``: the code of the cause.
        package static let cause = "cause"
        /// For ``Code/loginFailed``: the finding, as a clause.
        package static let finding = "finding"
        /// For ``Code/loginFailed``: the suggested remedy.
        package static let advice = "try"
        /// For ``Code/sessionEnded``: the stable code of the reason.
        package static let closeReason = "close_reason"
        /// Requests that were unanswered when the session ended.
        package static let unanswered = "unanswered"
        /// For ``Code/sessionReady``: the number of the session that this one resumes.
        package static let resumes = "resumes"
        /// For ``Code/sessionBegan``: the source of a session that is not relayed.
        package static let source = "source"
        /// For ``Code/sessionBegan``: `websocket` or `bosh`; absent for TCP.
        package static let transport = "transport"
        /// For ``Code/sessionBegan``: the server of a relayed session, as the user named it.
        package static let upstream = "upstream"
        /// For ``Code/sessionBegan``: the protocol by which the client requested a target from xmpptap as a proxy.
        package static let request = "request"
        /// For ``Code/sessionBegan``: the target of that request, or of a redirected connection, as `HOST:PORT`.
        package static let target = "target"
        /// For ``Code/subscription``: the contact's bare JID; an invalid JID as written.
        package static let contact = "contact"
        /// For ``Code/subscription``: the state before the change.
        package static let before = "before"
        /// For ``Code/subscription``: the state after the change.
        package static let after = "after"
    }

    /// The contents of a record with ``Code/sessionBegan``.
    package struct Beginning: Sendable {
        /// The message.
        package let message: Prose
        /// The ``Detail/source``; nil if a client connected to xmpptap.
        package let source: String?
        /// The ``Detail/upstream``; nil if the session is not relayed.
        package let upstream: String?
        /// How the session's directions are divided into items: messages are those of a WebSocket, or elements in bodies
        /// of BOSH. As ``Detail/transport`` in the record.
        package var framing = StreamFraming.stream
        /// Whether messages are elements in bodies of BOSH.
        package var isBOSH = false
        /// The ``Detail/request`` and ``Detail/target``; nil if the client named no target.
        package let request: Request?

        /// A client's request for a target.
        package struct Request: Sendable {
            /// The code of the protocol, such as `socks5`.
            package let code: String
            /// The name of the protocol, such as `SOCKS5`.
            package let name: String
            /// The target as `HOST:PORT`.
            package let target: String

            package init(code: String, name: String, target: String) {
                self.code = code
                self.name = name
                self.target = target
            }
        }

        /// The session is read from a client's log.
        package static let ownLog = Beginning(message: "a session by the client's own log", source: "client-log")
        /// The session is read from a text log of xmpptap.
        package static let textLog = Beginning(message: "a session in a text log", source: "text-log")
        /// The session is read from a server's log.
        package static let serverLog = Beginning(
            message: "a session by the server's log, shown from the client's side",
            source: "server-log"
        )
        /// The session is read from captured packets.
        package static let packets = Beginning(message: "a session in captured packets", source: "packets")
        /// Another program observes the session, and uses this code as a library.
        package static let otherProgram = Beginning(
            message: "a session observed by another program",
            source: "other-program"
        )
        /// The client is xmpptap.
        package static let ownClient = Beginning(message: "a session of xmpptap's own", source: "own-client")

        /// Creates the contents of a stored record.
        package init(of record: Record) {
            self.init(
                message: record.message ?? "",
                source: record.details?[Detail.source]?.text,
                upstream: record.details?[Detail.upstream]?.text,
                request: (record.details?[Detail.request]?.text).map { code in
                    Request(code: code, name: code, target: record.details?[Detail.target]?.text ?? "")
                }
            )
            let transport = record.details?[Detail.transport]?.text
            isBOSH = transport == Self.bosh
            if isBOSH || transport == Self.webSocket { framing = .messages }
        }

        /// Creates the contents for a client that has connected to xmpptap, to be relayed.
        /// - Parameters:
        ///   - relay: The address of the proxy whose PROXY header named the client.
        ///   - request: The client's request, if it named a target.
        ///   - isBlind: Whether the session is relayed without decoding.
        package init(
            client: String?,
            relay: String?,
            upstream: String,
            request: Request? = nil,
            isBlind: Bool = false
        ) {
            let way = (request.map { " by \($0.name)" } ?? "") + (relay.map { " by way of \($0)" } ?? "")
            self.init(
                message:
                    "\(client ?? "a client") connected\(way), to be relayed\(isBlind ? " without decoding" : "") to \(upstream)",
                source: nil,
                upstream: upstream,
                request: request
            )
        }

        /// The value of ``Detail/transport`` for WebSockets.
        package static let webSocket = "websocket"
        /// The value of ``Detail/transport`` for BOSH.
        package static let bosh = "bosh"

        private init(message: Prose, source: String?, upstream: String? = nil, request: Request? = nil) {
            self.message = message
            self.source = source
            self.upstream = upstream
            self.request = request
        }
    }

    /// The value of ``action`` for an item that xmpptap answered instead of forwarding it.
    package static let answered = "answered"
}
