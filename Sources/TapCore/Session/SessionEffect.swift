internal import TapRecord
import XMPPCore

/// An effect of a component on another component. ``Session/perform(_:)`` carries them out in order.
enum SessionEffect {
    /// Stanzas flow from now on; `resumes` is the session that this one continues.
    case open(String, resumes: UInt64? = nil)
    /// The server has enabled stream management.
    case enabled(Element)
    /// The server has resumed an earlier session, at the address in its SASL2 success, if any.
    case resumed(Element?, identifier: String? = nil)
    /// The software name in the client's login, if any.
    case software(String?)

    // Logins that xmpptap performs itself.

    /// Sends a message of the login to the client, as its server would.
    case answerLogin([UInt8])
    /// Sends a message of the login to the server, as its client would.
    case relayLogin([UInt8])
    /// The server has accepted xmpptap's login, and the client its own.
    case authenticated(Element)
    /// The server has refused xmpptap's login, and the client has received that failure.
    case refusedLogin(Element)
}
