/// A page of the manual, which is part of the program.
package struct ManualPage: Sendable {
    /// The name to type, such as `tls`: the name of its file without the ending.
    package let name: String
    /// Its first heading.
    package let title: String
    /// The page behind that heading.
    package let blocks: [Markdown.Block]

    private init(_ name: String, _ bytes: [UInt8]) {
        self.name = name
        let all = Markdown.blocks(of: String(decoding: bytes, as: UTF8.self))
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
        ManualPage("start", PackageResources.start_md),
        ManualPage("install", PackageResources.install_md),
        ManualPage("clients", PackageResources.clients_md),
        ManualPage("concepts", PackageResources.concepts_md),
        ManualPage("logs", PackageResources.logs_md),
        ManualPage("conversation", PackageResources.conversation_md),
        ManualPage("tls", PackageResources.tls_md),
        ManualPage("trust", PackageResources.trust_md),
        ManualPage("logins", PackageResources.logins_md),
        ManualPage("captures", PackageResources.captures_md),
        ManualPage("packets", PackageResources.packets_md),
        ManualPage("changes", PackageResources.changes_md),
        ManualPage("injection", PackageResources.injection_md),
        ManualPage("control", PackageResources.control_md),
        ManualPage("regression", PackageResources.regression_md),
        ManualPage("compare", PackageResources.compare_md),
        ManualPage("upstream", PackageResources.upstream_md),
        ManualPage("secrets", PackageResources.secrets_md),
        ManualPage("limits", PackageResources.limits_md),
        ManualPage("performance", PackageResources.performance_md),
        ManualPage("files", PackageResources.files_md),
        ManualPage("faq", PackageResources.faq_md),
        ManualPage("changelog", PackageResources.changelog_md),
    ]
}
