/// A message stanza (RFC 6121 §5).
public struct Message: Stanza {
    /// What a message is.
    public enum Kind: String, Sendable, CaseIterable {
        case normal, chat, groupchat, headline, error
    }

    /// What the writer is doing (XEP-0085).
    public enum ChatState: String, Sendable, CaseIterable {
        case active, composing, paused, inactive, gone
    }

    /// The element itself.
    public let element: Element

    /// The view of a `<message/>`; nil for any other element.
    public init?(_ element: Element) {
        guard element.isStanza("message") else { return nil }
        self.element = element
    }

    /// Its type; ``Kind/normal`` where the attribute is absent or unknown (RFC 6121 §5.2.2).
    public var type: Kind { element.attribute("type").flatMap(Kind.init) ?? .normal }

    /// The text without a language of its own, else the first; nil where there is none.
    public var body: String? { text("body") }
    /// The text in `language`; `de` fits `de-AT`. Nil where no body is in it.
    public func body(in language: String) -> String? { text("body", in: language) }
    /// The subject without a language of its own, else the first. In a room it may be empty: the topic is taken away.
    public var subject: String? { text("subject") }
    /// The subject in `language`.
    public func subject(in language: String) -> String? { text("subject", in: language) }
    /// The conversation it belongs to.
    public var thread: String? { element.childText("thread", element.namespace) }
    /// The conversation out of which its own was begun.
    public var parentThread: String? { element.child("thread", element.namespace)?.attribute("parent") }

    /// What the writer is doing; nil where the message does not say.
    public var chatState: ChatState? {
        element.firstChild { $0.namespace == .chatStates }.flatMap { ChatState(rawValue: $0.name) }
    }
}
