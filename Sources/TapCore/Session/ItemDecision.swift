internal import TapDiagnosis
internal import TapRecord
import TapRules
import TapStreamManagement
import XMPPCore

/// What happens to an item: decided by the first interceptor that returns a decision, performed by
/// ``SessionContext/apply(_:to:_:)``.
enum ItemDecision {
    /// Forward the item unchanged.
    case pass
    /// Store the item until an event.
    case buffer(until: BufferEnd)
    /// Drop the item.
    case drop
    /// Forward these bytes instead.
    indirect case replace(EditedItem)
    /// Drop the item, because it was meant for xmpptap. The handler of its ``ItemReading`` sends an answer if
    /// necessary.
    case answer
    /// Drop the item, and close the session.
    indirect case refuse(Refusal)
    /// Perform the fault that a rule requires, such as a cut connection.
    indirect case fault(RuleFaultAction)

    /// The event until which an item is stored.
    enum BufferEnd {
        /// TLS begins on the server leg. The item is stored, and later items wait.
        case serverTLS
        /// The server's features arrive, which show whether TLS follows. The item is stored.
        case features
        /// The stream inside TLS begins, which xmpptap opens with the stored part of the item. No other data received
        /// in clear is used inside TLS (RFC 6120 §5.4.3.3).
        case restart
        /// The stanza counts of the resumed session, which another connection still owns, are available. Then the item
        /// is decided on again; later items wait.
        case counts
    }

    /// The `action` in the item's record; nil for an item that is forwarded unchanged, even after a delay.
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

/// The reason why a session is closed because of a peer's item: for the peers, the log and the diagnosis.
struct Refusal {
    /// The message to the peers.
    enum Answer {
        /// A stream error, sent in the stream of the side at fault.
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
    /// The reason in the diagnosis of the login.
    var diagnosis: Prose?
    var cause: LoginCause?
    /// The remedy for the error record.
    var remedy: Remedy?
    /// The `part` of the item's record; nil if the item is not recorded.
    var itemPart: Part?
}

/// The findings of an interceptor about an item, for the record and the state of the session.
enum ItemReading {
    case none
    /// The item belongs to TLS that begins on one leg only; with the server's offer, if the item contains one.
    case asymmetricTLS(StreamFeatures?)
    /// The server's stream features; nil if libxml2 cannot parse them.
    case features(StreamFeatures?)
    /// An element of a login, with the actions of the SASL bridge, whether the bridge was logging in when the element
    /// arrived, and the stream management inside the element.
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
