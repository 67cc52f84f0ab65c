internal import TapDiagnosis
internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

/// The action on an item: decided by the first interceptor that returns one, carried out by ``SessionContext/apply(_:to:_:)``.
enum ItemDecision {
    /// Forward the item unchanged.
    case pass
    /// Delay the item until an event.
    case buffer(until: BufferEnd)
    /// Drop the item.
    case drop
    /// Forward other bytes instead.
    indirect case replace(EditedItem)
    /// Drop the item: it was meant for xmpptap, which answers as far as necessary (``ItemReading``).
    case answer
    /// Drop the item, and end the session.
    indirect case refuse(Refusal)
    /// Break the session here, as a rule requires.
    indirect case fault(RuleFaultAction)

    /// The event that ends the delay of an item.
    enum BufferEnd {
        /// TLS on the server's leg. The item is stored, later ones wait, and TLS begins.
        case serverTLS
        /// The server's features, which show whether TLS follows. The item is stored.
        case features
        /// The stream inside TLS, which xmpptap opens with the stored part of the item. No other data received in clear
        /// is used there (RFC 6120 §5.4.3.3).
        case restart
        /// The counts of the session that it resumes, which another connection still owns. The item is decided on again
        /// then; later ones wait.
        case counts
    }

    /// The action in the item's record; nil for an item that was forwarded, or is forwarded unchanged after its delay.
    var action: String? {
        switch self {
        case .pass, .buffer(until: .serverTLS), .buffer(until: .counts): nil
        case .buffer: "buffered"
        case .drop: "dropped"
        case .replace: "edited"
        case .answer: Record.answered
        case .refuse, .fault(.streamError): "refused"
        case .fault(.cut): "cut"
        case .fault(.halfClose): "half-closed"
        case .fault: "reset"
        }
    }
}

/// The reason for ending a session because of a peer's item: for the peers, the log and the diagnosis.
struct Refusal {
    /// The message to the peers.
    enum Answer {
        /// A stream error, in the stream of the side at fault.
        case streamError(StreamErrorCondition, String, fault: Direction = .send)
        /// The `<failure/>` of STARTTLS, which ends the client's stream (RFC 6120 §5.4.2.2).
        case tlsFailure
    }

    var answer: Answer
    /// The code of the error record.
    var code: String
    var message: Prose
    var condition: StreamErrorCondition?
    var direction: Direction?
    var part = Part.session
    /// For the diagnosis of the login.
    var diagnosis: Prose?
    var cause: LoginCause?
    /// The remedy for the error record.
    var remedy: Remedy?
    /// The part of the item's record; nil if the item has none.
    var itemPart: Part?
}

/// The facts about an item that an interceptor found, for the record and the state of the session.
enum ItemReading {
    case none
    /// TLS begins on one leg only, and the item belongs to that; with the server's offer, if any.
    case asymmetricTLS(StreamFeatures?)
    /// The server's features; nil if libxml2 cannot parse them.
    case features(StreamFeatures?)
    /// An element of a login, the actions of the SASL bridge, and whether the bridge was logging in when the element
    /// arrived; with the stream management inside the element.
    case login(Element, [SASLBridge.Action], wasLoggingIn: Bool, StreamManagementTranslator.Translation?)
    /// The answer to an injected request.
    case injected(IQTracker.Request)
    case streamManagement(StreamManagementTranslator.Translation)

    var isInjected: Bool {
        if case .injected = self { return true }
        return false
    }
}

extension StreamEvent {
    /// The kind of the item; nil if the event is not an item.
    var item: StanzaScanner.Item.Kind? {
        if case .item(let kind) = kind { return kind }
        return nil
    }
}
