// Words in records that more depends on than who reads them. Other codes stand where they are written.
extension Record {
    /// The ``code`` of records that others are told by. All are stable.
    public enum Code {
        /// A session began; its ``Beginning`` is the message where nobody connected.
        public static let sessionBegan = "session-began"
        /// Stanzas flow.
        public static let sessionReady = "session-ready"
        /// A session ended, with its figures.
        public static let sessionEnded = "session-ended"
        /// TLS has begun on a leg; its message says what its facts say.
        public static let tlsOpened = "tls-opened"
        /// A session ended before it was ready, and why.
        public static let loginFailed = "login-failed"
    }

    /// Names of ``details`` that are read back.
    public enum Detail {
        /// Of ``Code/loginFailed``: the cause, as a code of its own.
        public static let cause = "cause"
        /// Of ``Code/sessionReady``: the number of the session that this one continues.
        public static let resumes = "resumes"
    }

    /// How a session begins that is not relayed.
    public enum Beginning {
        /// It is read from a client's own log.
        public static let ownLog = "a session by the client's own log"
        /// Its client is this program.
        public static let ownClient = "a session of xmpptap's own"
    }

    /// The ``action`` on an item that was for this program and went no further.
    public static let answered = "answered"
}
