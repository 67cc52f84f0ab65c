import XMPPCore

/// How far a session has come. Each case holds what belongs to it alone.
enum Phase {
    /// Streams are being opened, features announced.
    case opening
    /// The initiator has asked for TLS.
    case startingTLS
    /// Authentication is under way.
    case authenticating
    /// Authentication has succeeded; the initiator owes a new stream header.
    case restarting
    /// Authenticated, features known; resource binding or resumption comes next.
    case binding
    /// Stanzas flow.
    case open
    /// One side has closed its stream.
    case closing
    /// Nothing is decoded: TLS passed through, or no XMPP.
    case opaque
    /// The session is answered with a stream error as soon as the client's header has come.
    case refusing(StreamErrorCondition, String)
    /// The last record has been made.
    case closed

    var isClosed: Bool {
        if case .closed = self { return true }
        return false
    }

    /// Whether an authentication is allowed to begin, or has not ended.
    var isBeforeAuthentication: Bool {
        switch self {
        case .opening, .startingTLS, .authenticating: true
        default: false
        }
    }
}
