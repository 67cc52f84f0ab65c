internal import CAssets

/// A page of the manual, which is part of the program.
package struct ManualPage: Sendable {
    /// The name that users type, such as `tls`: the name of the file without its extension.
    package let name: String
    /// The first heading of the page.
    package let title: String
    /// The content after the first heading.
    package let blocks: [Markdown.Block]

    private init(_ name: String) {
        self.name = name
        let all = Markdown.blocks(of: String(cString: casset_text("\(name).md")))
        if case .heading(_, let text) = all.first {
            title = Markdown.plain(text)
            blocks = Array(all.dropFirst())
        } else {
            title = name
            blocks = all
        }
    }

    /// Returns the page with this name or about this subject; nil if there is none.
    package static func named(_ name: String) -> ManualPage? {
        let name = subjects[name] ?? name
        return all.first { $0.name == name }
    }

    /// Further subjects, each with the name of the page that explains it.
    package static let subjects = ["filter": "changes", "filters": "changes", "socks": "upstream"]

    /// All pages, in the order in which a new user would read them.
    package static let all: [ManualPage] = [
        "start",
        "install",
        "clients",
        "concepts",
        "logs",
        "conversation",
        "tls",
        "trust",
        "logins",
        "browser",
        "captures",
        "packets",
        "audit",
        "fleet",
        "changes",
        "injection",
        "control",
        "regression",
        "compare",
        "upstream",
        "federation",
        "websocket",
        "transparent",
        "phone",
        "secrets",
        "limits",
        "performance",
        "files",
        "faq",
        "changelog",
    ].map { ManualPage($0) }
}
