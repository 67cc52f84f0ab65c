package import TapRecord
package import XMPPCore

/// One step of an authentication, without its secrets.
package struct AuthenticationStep: Sendable, Hashable {
    /// The kind of step.
    package enum Kind: String, Sendable, Hashable {
        /// The initiator begins, with or without an initial response.
        case begin
        case challenge
        case response
        /// The mechanism has succeeded, but the client must complete a further task first (XEP-0388 §2.6).
        case proceed = "continue"
        /// A message of a further task that ``proceed`` requested.
        case task
        case success
        case failure
        case abort
    }

    /// The kind of step.
    package var kind: Kind
    /// The details that could be decoded, without secrets.
    package var details: Attributes
    /// For a failure: the SASL condition, or the condition of the stanza or stream error.
    package var condition: String?
    /// For a failure: the text of the failure, if it has one.
    package var text: String?
}

/// Follows one authentication and decodes its steps: SASL (RFC 6120 §6), SASL2 (XEP-0388), authentication by iq
/// (XEP-0078), the handshake of a component (XEP-0114).
///
/// The decoded details contain no secrets, except under ``RedactionPolicy/none``: they show the lengths of nonces and
/// salts, and nothing of passwords, proofs and tokens. Any input is accepted; for a message that violates its
/// mechanism, the only detail is `malformed`.
package struct SASLDecoder: Sendable {
    /// The mechanism in use, as the initiator named it; `iq-auth` or `handshake` for an authentication without SASL.
    package private(set) var mechanism: String?
    /// The name with which the initiator authenticates; nil until it is known.
    package private(set) var user: String?
    /// Whether an authentication has begun and not ended.
    package private(set) var isUnderWay = false

    private static let maximumMechanismLength = 64

    private let policy: RedactionPolicy
    private var messages: SASLMessageDecoder
    private var requestID: String?

    /// Creates a decoder in its initial state. `policy` decides whether private names appear in its details.
    package init(policy: RedactionPolicy = .secrets) {
        self.policy = policy
        messages = SASLMessageDecoder(.other, policy: policy)
    }

    /// Sets the user name from a stored record, because the message that contained it is now redacted.
    mutating func apply(user: String) { self.user = user }

    /// Returns the authentication step of a stream element; nil if the element is not part of an authentication.
    package mutating func decode(_ element: Element, _ direction: Direction) -> AuthenticationStep? {
        switch element.namespace {
        case .sasl: return decodeSASL(element)
        case .sasl2, .sasl2Legacy: return decodeSASL2(element)
        case .componentAccept, .componentConnect:
            if element.isNamed("handshake") { return decodeHandshake(element, direction) }
        case .streams:
            guard element.isNamed("error"), isUnderWay, direction == .recv else { return nil }
            return fail(condition: Self.condition(in: element, .streamErrors), element.childText("text", .streamErrors))
        default: break
        }
        return element.isNamed("iq") ? decodeIQ(element, direction) : nil
    }

    // MARK: SASL

    private mutating func decodeSASL(_ element: Element) -> AuthenticationStep? {
        if element.isNamed("auth") {
            begin(element.attribute("mechanism"))
            return step(.begin, .initial, element.text)
        }
        if element.isNamed("challenge") { return step(.challenge, .challenge, element.text) }
        if element.isNamed("response") { return step(.response, .response, element.text) }
        if element.isNamed("success") { return step(.success, .success, element.text) }
        if element.isNamed("failure") {
            return fail(condition: Self.condition(in: element, .sasl), element.childText("text", .sasl))
        }
        return element.isNamed("abort") ? step(.abort) : nil
    }

    private mutating func decodeSASL2(_ element: Element) -> AuthenticationStep? {
        let namespace = element.namespace
        if element.isNamed("authenticate") {
            begin(element.attribute("mechanism"))
            var step = step(.begin, .initial, element.childText("initial-response", namespace))
            if let software = element.child("user-agent", namespace)?.childText("software", namespace) {
                step.details["software"] = .string(software)
            }
            record(inline: element, in: &step.details)
            return step
        }
        if element.isNamed("challenge") { return step(.challenge, .challenge, element.text) }
        if element.isNamed("response") { return step(.response, .response, element.text) }
        if element.isNamed("continue") {
            var step = step(.proceed, .success, element.childText("additional-data", namespace))
            let tasks = element.child("tasks", namespace)?.children("task", namespace).map(\.text) ?? []
            step.details["tasks"] = .strings(tasks)
            return step
        }
        if element.isNamed("next") || element.isNamed("task-data") {
            var step = step(.task)
            if let task = element.attribute("task") { step.details["task"] = .string(task) }
            return step
        }
        if element.isNamed("success") {
            var step = step(.success, .success, element.childText("additional-data", namespace))
            if let identifier = element.childText("authorization-identifier", namespace) {
                step.details["authorization_identifier"] = .string(identifier)
            }
            record(inline: element, in: &step.details)
            return step
        }
        if element.isNamed("failure") {
            return fail(condition: Self.condition(in: element, .sasl), element.childText("text", namespace))
        }
        return element.isNamed("abort") ? step(.abort) : nil
    }

    /// Adds the names of the inline requests or results to the details.
    private func record(inline element: Element, in details: inout Attributes) {
        let names = element.children.filter { $0.namespace != element.namespace }.map(\.name)
        if !names.isEmpty { details["inline"] = .strings(names) }
    }

    private mutating func begin(_ mechanism: String?) {
        // A mechanism name has at most 20 characters (RFC 4422 §3.1), and each step's record repeats it.
        self.mechanism = mechanism.map { String($0.unicodeScalars.prefix(Self.maximumMechanismLength)) }
        user = nil
        isUnderWay = true
        requestID = nil
        messages = SASLMessageDecoder(mechanism.map { SASLMechanism($0) } ?? .other, policy: policy)
    }

    /// Returns a step with the details of its message.
    private mutating func step(
        _ kind: AuthenticationStep.Kind,
        _ role: SASLMessage.Role? = nil,
        _ text: String? = nil
    ) -> AuthenticationStep {
        var details = Attributes()
        if let mechanism { details["mechanism"] = .string(mechanism) }
        details["step"] = .string(kind.rawValue)
        if let role, let text {
            switch SASLMessage.read(Array(text.utf8).span) {
            case .none: break
            case .empty: details["empty"] = true
            case .placeholder: details["redacted"] = true
            case .malformed: details["malformed"] = true
            case .bytes(let bytes):
                // RFC 4648 §3.1 forbids line breaks in base64, and some servers refuse a message that contains one.
                let isClients = role == .initial || role == .response
                if isClients, text.trimmingPrefix(while: \.isWhitespace).split(whereSeparator: \.isNewline).count > 1 {
                    details["line_break"] = true
                }
                if let name = messages.decode(bytes, role, &details) { user = name }
            }
        }
        if let user, details["user"] == nil { details["user"] = .string(user) }
        if kind == .success || kind == .failure || kind == .abort { isUnderWay = false }
        return AuthenticationStep(kind: kind, details: details)
    }

    private mutating func fail(condition: String?, _ text: String?) -> AuthenticationStep {
        var step = step(.failure)
        step.condition = condition ?? "undefined-condition"
        step.text = text
        return step
    }

    /// Returns the name of the first child element that is an error condition.
    private static func condition(in element: Element, _ namespace: Namespace) -> String? {
        element.firstChild { $0.namespace == namespace && !$0.isNamed("text") }?.name
    }

    // MARK: Authentication other than SASL

    private mutating func decodeHandshake(_ element: Element, _ direction: Direction) -> AuthenticationStep? {
        guard direction == .send else { return isUnderWay && mechanism == "handshake" ? step(.success) : nil }
        begin("handshake")
        return step(.begin)
    }

    private mutating func decodeIQ(_ iq: Element, _ direction: Direction) -> AuthenticationStep? {
        let id = iq.attribute("id")
        if direction == .send, iq.attribute("type") == "set", let query = iq.child("query", .iqAuth) {
            begin("iq-auth")
            requestID = id
            user = query.childText("username", .iqAuth).flatMap {
                $0.utf8.count <= SASLMessageDecoder.maximumNameLength ? $0 : nil
            }
            var step = step(.begin)
            if query.child("digest", .iqAuth) != nil {
                step.details["method"] = "digest"
            } else if query.child("password", .iqAuth) != nil {
                step.details["method"] = "password"
            }
            if let resource = query.childText("resource", .iqAuth) { step.details["resource"] = .string(resource) }
            return step
        }
        guard direction == .recv, isUnderWay, mechanism == "iq-auth", let id, id == requestID else { return nil }
        switch iq.attribute("type") {
        case "result": return step(.success)
        case "error":
            let error = iq.firstChild { $0.isNamed("error") }
            let condition = error.flatMap { Self.condition(in: $0, .stanzaErrors) } ?? error?.attribute("code")
            return fail(condition: condition, error?.childText("text", .stanzaErrors))
        default: return nil
        }
    }
}
