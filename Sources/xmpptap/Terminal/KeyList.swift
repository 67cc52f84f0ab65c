/// The keys of the inspector in a terminal, by view.
enum KeyList {
    struct Section {
        let title: String
        let keys: [(key: String, meaning: String)]
    }

    /// All keys.
    ///
    /// - Parameter hasHeld: Whether stanzas can be held: only those of a running proxy.
    static func sections(hasHeld: Bool) -> [Section] {
        let held = Section(
            title: "Held stanzas",
            keys: [
                ("H", "hold the next stanza of this session"),
                ("e", "edit it in $EDITOR, and relay it"),
                ("P", "relay it as it is"),
                ("D", "drop it"),
            ]
        )
        return [everywhere, sessions, records, details, diagram] + (hasHeld ? [held] : [])
    }

    private static let everywhere = Section(
        title: "Everywhere",
        keys: [
            ("1 2 3", "sessions, records, diagram"),
            ("m", "messages of xmpptap"),
            ("z", "local time or UTC"),
            ("?", "this list"),
            ("Esc", "close, or go back"),
            ("Ctrl-L", "draw the screen again"),
            ("Ctrl-Z", "suspend"),
            ("q", "quit"),
        ]
    )
    private static let sessions = Section(
        title: "Sessions",
        keys: [
            ("↓ ↑ j k", "next and previous session"),
            ("Enter l →", "records, or a failed login's diagram"),
            ("d", "its diagram"),
            ("/", "find an account, address or cause"),
        ]
    )
    private static let records = Section(
        title: "Records",
        keys: [
            ("↓ ↑ j k", "next and previous record"),
            ("Page, Ctrl-F Ctrl-B", "page"),
            ("Ctrl-D Ctrl-U", "half a page"),
            ("Home End g G", "first and last"),
            ("F f", "follow new records"),
            ("Enter l →", "details"),
            ("h ←", "back"),
            ("/", "filter, while you type"),
            ("c", "remove the filter and keep the place"),
            ("s", "only this session"),
            ("d", "diagram of this session"),
            ("a", "request to answer, and back"),
            ("w W", "next and previous error or warning"),
        ]
    )
    private static let details = Section(
        title: "Details",
        keys: [
            ("↓ ↑ j k Page g G", "scroll"),
            ("n p", "next and previous record"),
            ("a", "request to answer, and back"),
            ("d", "diagram of this session"),
            ("h ← Enter", "back"),
        ]
    )
    private static let diagram = Section(
        title: "Diagram",
        keys: [
            ("↓ ↑ j k Page g G F", "as in records"),
            ("Enter →", "details"),
            ("l", "everything, login, stanzas or errors"),
            ("x", "where the login failed"),
            ("[ ]", "previous and next session"),
            ("r", "as a list"),
        ]
    )

    /// The lines of the list: a key and its meaning, or a title.
    static func lines(hasHeld: Bool) -> [(key: String, meaning: String)] {
        sections(hasHeld: hasHeld).flatMap { section in
            [(key: section.title, meaning: "")] + section.keys + [(key: "", meaning: "")]
        }
    }

    /// The keys at the bottom of a view, the most important ones first.
    static func bottom(_ view: Inspector.View) -> [String] {
        switch view {
        case .sessions: ["Enter records", "d diagram", "/ find", "2 all records", "m messages"]
        case .records:
            ["Enter details", "/ filter", "F follow", "s session", "d diagram", "a answer", "c no filter", "w warning"]
        case .diagram: ["Enter details", "l login", "[ ] session", "r list", "x failure", "F follow"]
        case .detail: ["Esc back", "n next", "p previous", "a answer", "d diagram"]
        case .keys, .messages: ["Esc back"]
        }
    }
}
