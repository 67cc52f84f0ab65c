internal import XMPPCore

/// A client that is played, with the stanzas that it expects.
struct ReplayPlayer<Stanza: Expectable> {
    enum State { case idle, connecting, open, closing, over }

    /// The meaning of an element of stream management (XEP-0198).
    enum Management {
        /// The server asks for an acknowledgement; send these bytes.
        case answer([UInt8])
        /// The server enabled stream management.
        case enabled
        /// Another element that is not compared.
        case ignored
    }

    var state = State.idle
    var expectations = ExpectationSet<Stanza>()
    var options: OptionalStanzas
    /// The id of its stream management, once it is enabled.
    var resumptionID: String?
    var isManaged = false
    /// Number of stanzas received since stream management was enabled.
    var handled: UInt32 = 0
    /// Whether another client resumes its session.
    var isSuperseded = false
    /// The divergence that explains missing items, and the step from which on it explains them.
    var cause: (divergence: Int, step: Int)?

    init(options: OptionalStanzas) { self.options = options }

    /// Handles an element of stream management; returns nil for other elements, which are compared.
    mutating func manage(_ element: Element) -> Management? {
        guard element.namespace == .streamManagement || element.namespace == .streamManagement2 else { return nil }
        switch element.name {
        case "r":
            return .answer(XMLWriter.bytes { $0.element("a", element.namespace, ["h": String(handled)]) })
        case "a": return .ignored
        case "enabled":
            isManaged = true
            resumptionID = element.attribute("id")
            return .enabled
        default: return nil
        }
    }
}

/// The origin of a compared stanza: a step of the script, or a received item.
enum ReplayTag {
    case step(Int)
    /// Kept elsewhere in memory: a long script has many steps.
    indirect case live([UInt8], number: UInt64, at: Int64, after: Int64)
}

/// A request that was sent and not answered yet.
struct SentRequest {
    let at: Int64
    let step: Int
}
