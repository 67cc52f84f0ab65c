internal import CAssets

/// A page of the manual, which is part of the program.
package struct ManualPage: Sendable {
    /// The name to type, such as `tls`: the name of its file without the ending.
    package let name: String
    /// Its first heading.
    package let title: String
    /// The page behind that heading.
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

    /// The page of a name or a subject; nil if there is none.
    package static func named(_ name: String) -> ManualPage? {
        let name = subjects[name] ?? name
        return all.first { $0.name == name }
    }

    /// Subjects that people ask for, and the page that explains them.
    package static let subjects = ["filter": "changes", "filters": "changes"]

    /// All pages, in the order in which somebody new would read them.
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
        "captures",
        "packets",
        "changes",
        "injection",
        "control",
        "regression",
        "compare",
        "upstream",
        "secrets",
        "limits",
        "performance",
        "files",
        "faq",
        "changelog",
    ].map { ManualPage($0) }
}
