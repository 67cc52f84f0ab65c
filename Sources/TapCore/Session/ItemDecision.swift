internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// What happens to an item: said by the first interceptor that speaks, carried out by ``Session/apply(_:to:_:)``.
enum ItemDecision {
    /// It goes on as it came.
    case pass
    /// It waits for an event.
    case buffer(until: BufferEnd)
    /// It goes no further.
    case drop
    /// Other bytes go on in its place.
    indirect case replace(EditedItem)
    /// It was meant for xmpptap, which says what there is to say (``ItemReading``), and goes no further.
    case answer
    /// It goes no further, and the session ends.
    indirect case refuse(Refusal)
    /// A rule breaks the session here.
    indirect case fault(RuleFaultAction)

    /// What ends the wait of an item.
    enum BufferEnd {
        /// TLS on the server's leg. The item is stored, all that follows waits, and TLS begins.
        case serverTLS
        /// The server's features, which say whether TLS follows. The item is stored.
        case features
        /// The stream inside TLS, which xmpptap opens with what it has kept of the item. Nothing else of what was said in
        /// clear is used there (RFC 6120 §5.4.3.3).
        case restart
        /// The counts of the session that it resumes, which another connection still has. It is looked at again then, and
        /// all that follows waits.
        case counts
    }

    /// What was done, as the item's record says it; nil for an item that passed, or passes as it came when its wait is over.
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

/// Why a session ends at what a peer has said: for the peers, the log and the diagnosis.
struct Refusal {
    /// How the peers learn of it.
    enum Answer {
        /// By a stream error, in the stream of the one at fault.
        case streamError(StreamErrorCondition, String, fault: Direction = .send)
        /// By the `<failure/>` of STARTTLS, which ends the client's stream (RFC 6120 §5.4.2.2).
        case tlsFailure
    }

    var answer: Answer
    /// The error record's.
    var code: String
    var message: Prose
    var condition: StreamErrorCondition?
    var direction: Direction?
    var part = Part.session
    /// For the diagnosis of the login.
    var diagnosis: Prose?
    var cause: LoginCause?
    /// What to try, for the error record.
    var remedy: Remedy?
    /// The part that the item's own record belongs to; nil where the item has none.
    var itemPart: Part?
}

/// What an interceptor has found out about an item, for the record and the state of the session.
enum ItemReading {
    case none
    /// TLS begins on one leg alone, and the item belongs to that; with what the server offers, where it does.
    case asymmetricTLS(StreamFeatures?)
    /// The server's features; nil where libxml2 cannot read them.
    case features(StreamFeatures?)
    /// An element of a login, what the SASL bridge does about it, and whether that was logging in when it came; with what
    /// it holds of stream management.
    case login(Element, [SASLBridge.Act], wasLoggingIn: Bool, StreamManagementTranslator.Translation?)
    /// The answer to an injected request.
    case injected(IQTracker.Request)
    case streamManagement(StreamManagementTranslator.Translation)

    var isInjected: Bool {
        if case .injected = self { return true }
        return false
    }
}

extension StreamEvent {
    /// Which item it is; nil where it is none.
    var item: StanzaScanner.Item.Kind? {
        if case .item(let kind) = kind { return kind }
        return nil
    }
}
