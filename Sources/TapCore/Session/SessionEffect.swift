internal import TapRecord
import XMPPCore

/// An effect of one component on another. ``Session/perform(_:)`` performs the effects in order.
enum SessionEffect {
    /// Opens the session, so that stanzas are relayed; `resumes` is the number of the session that this one resumes.
    case open(String, resumes: UInt64? = nil)
    /// Handles stream management that the server has enabled.
    case enabled(Element)
    /// Handles the resumption of an earlier session by the server; `identifier` is the authorization identifier in a
    /// SASL2 success.
    case resumed(Element?, identifier: String? = nil)
    /// Stores the software name from the client's login, if any.
    case software(String?)

    // Logins that xmpptap performs itself.

    /// Sends a message of the login to the client, in the server's place.
    case answerLogin([UInt8])
    /// Sends the client's login message to the server.
    case relayLogin([UInt8])
    /// Handles the server's success, after both the client's login and xmpptap's own have succeeded.
    case authenticated(Element)
    /// Handles the server's refusal of xmpptap's login, which the client has received.
    case refusedLogin(Element)
}
