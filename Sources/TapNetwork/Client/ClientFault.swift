/// Why a client could not go on.
struct ClientFault: Error, Sendable, Hashable {
    /// The step that failed.
    enum Step: String, Sendable {
        case stream
        case startTLS = "starttls"
        case tls
        case mechanisms
        case login
        case bind
        case session
        case open = "stream-in-use"
    }

    /// What went wrong, as far as programs want to know.
    enum Code: Sendable, Hashable {
        /// The server refused; its condition, if any.
        case refused(String?)
        /// What the server signs is not what the client saw (XEP-0474, XEP-0515).
        case altered
        /// The server broke the rules of the mechanism, or did not prove that it knows the password.
        case unproven
        /// This client cannot or will not go on, and the server has done nothing wrong: the password cannot be used.
        case given
        /// The server broke the rules of the protocol, or ended the connection.
        case broken
        /// No answer came.
        case silent
    }

    let step: Step
    let code: Code
    /// What was wrong, as a clause for people.
    let reason: String
}
