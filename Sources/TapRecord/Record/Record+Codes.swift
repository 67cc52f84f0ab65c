// Codes and details that code reads back from records. All others appear only in the code that writes them.
extension Record {
    /// Values of ``code`` by which records are found. All are stable.
    public enum Code {
        /// A session began; see ``Beginning``.
        public static let sessionBegan = "session-began"
        /// The session is ready: stanzas flow.
        public static let sessionReady = "session-ready"
        /// The session ended; the details are its figures.
        public static let sessionEnded = "session-ended"
        /// TLS is negotiated on a leg. The message says the same as the details.
        public static let tlsOpened = "tls-opened"
        /// The session ended before it was ready; the details say why.
        public static let loginFailed = "login-failed"
        /// What channel binding means for the login under way.
        public static let channelBinding = "channel-binding"
        /// The subscription between an account and a contact changed, or was meant to.
        public static let subscription = "subscription"
        /// A client reconnects again and again.
        public static let reconnectLoop = "reconnect-loop"
        /// Logins of one account from one address fail again and again.
        public static let loginLoop = "login-loop"
        /// Records of a session, or of sessions, are left out of a capture here; the details say how many.
        public static let recordsOmitted = "records-omitted"
        /// The capture has ended before the run.
        public static let captureEnded = "capture-ended"
        /// Less than nine tenths of the XML in a log of another program could be read; the message says how much.
        public static let logUnderstoodInPart = "log-understood-in-part"
        /// The conditions of a rule held for an item; see ``Record/rule``.
        public static let ruleHit = "rule-hit"
    }

    /// Names in ``details`` that are read back.
    public enum Detail {
        /// Of ``Code/loginFailed``: the code of the cause.
        public static let cause = "cause"
        /// Of ``Code/loginFailed``: the finding, as a clause.
        public static let finding = "finding"
        /// Of ``Code/loginFailed``: the suggested remedy.
        public static let advice = "try"
        /// Of ``Code/sessionEnded``: why it ended, a stable word.
        public static let closeReason = "close_reason"
        /// Requests that had no answer when the session ended.
        public static let unanswered = "unanswered"
        /// Of ``Code/sessionReady``: the number of the session that this one resumes.
        public static let resumes = "resumes"
        /// Of ``Code/sessionBegan``: the source of a session that is not relayed.
        public static let source = "source"
        /// Of ``Code/sessionBegan``: the server of a relayed session, as the user named it.
        public static let upstream = "upstream"
        /// Of ``Code/subscription``: the contact's bare JID; an invalid JID as it was written.
        public static let contact = "contact"
        /// Of ``Code/subscription``: the state before.
        public static let before = "before"
        /// Of ``Code/subscription``: the state after.
        public static let after = "after"
    }

    /// The contents of a record with ``Code/sessionBegan``.
    public struct Beginning: Sendable {
        /// The message.
        public let words: Prose
        /// The ``Detail/source``; nil if a client connected to this program.
        public let source: String?
        /// The ``Detail/upstream``; nil if the session is not relayed.
        public let upstream: String?

        /// The session is read from a client's log.
        public static let ownLog = Beginning(words: "a session by the client's own log", source: "client-log")
        /// The session is read from a text log of this program.
        public static let textLog = Beginning(words: "a session in a text log", source: "text-log")
        /// The session is read from a server's log.
        public static let serverLog = Beginning(
            words: "a session by the server's log, shown from the client's side",
            source: "server-log"
        )
        /// The session is read from captured packets.
        public static let packets = Beginning(words: "a session in captured packets", source: "packets")
        /// The client is this program.
        public static let ownClient = Beginning(words: "a session of xmpptap's own", source: "own-client")

        /// The session was recorded.
        public init(of record: Record) {
            self.init(
                words: record.message ?? "",
                source: record.details?[Detail.source]?.text,
                upstream: record.details?[Detail.upstream]?.text
            )
        }

        /// The session of a client that has connected to this program, to be relayed.
        /// - Parameter relay: The address of the proxy whose header named the client.
        public init(client: String?, relay: String?, upstream: String) {
            let way = relay.map { " by way of \($0)" } ?? ""
            self.init(
                words: "\(client ?? "a client") connected\(way), to be relayed to \(upstream)",
                source: nil,
                upstream: upstream
            )
        }

        private init(words: Prose, source: String?, upstream: String? = nil) {
            self.words = words
            self.source = source
            self.upstream = upstream
        }
    }

    /// The ``action`` on an item that this program answered instead of forwarding it.
    public static let answered = "answered"
}
