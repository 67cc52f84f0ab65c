// Codes and details that code reads back from records. All others stand only where they are written.
extension Record {
    /// Values of ``code`` by which records are found. All are stable.
    public enum Code {
        /// A session began. ``Beginning`` is its message where no client connected.
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
        /// A client reconnects again and again.
        public static let reconnectLoop = "reconnect-loop"
    }

    /// Names in ``details`` that are read back.
    public enum Detail {
        /// Of ``Code/loginFailed``: the code of the cause.
        public static let cause = "cause"
        /// Of ``Code/sessionReady``: the number of the session that this one resumes.
        public static let resumes = "resumes"
    }

    /// Messages of ``Code/sessionBegan`` for sessions that are not relayed.
    public enum Beginning {
        /// The session is read from a client's log.
        public static let ownLog = "a session by the client's own log"
        /// The client is this program.
        public static let ownClient = "a session of xmpptap's own"
    }

    /// The ``action`` on an item that this program answered instead of forwarding it.
    public static let answered = "answered"
}
