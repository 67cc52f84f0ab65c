internal import CAssets

/// The files of the page, which are part of the program.
package enum PageAssets {
    /// A file of the page.
    package struct Asset: Sendable {
        /// The name of the file in `Web`.
        package let name: String
        /// Its media type.
        let type: String
        /// Its contents.
        package var text: String { String(cString: casset_text("web/\(name)")) }
    }

    /// The scripts of the served page, each after those that it imports.
    package static let scripts = named([
        "dom.js", "format.js", "namespaces.js", "xml.js", "source.js", "virtual.js", "words.js", "filter.js", "rows.js",
        "cursor.js", "records.js", "detail.js", "sessions.js", "diagram.js", "chat.js", "avatars.js",
        "conversations.js", "findings.js", "measures.js", "report.js", "keys.js", "maketest.js", "inject.js",
        "ping.js", "tray.js", "hold.js", "rules.js", "act.js", "main.js",
    ])
    /// The scripts that only a page that is a file has: it searches itself.
    package static let fileScripts = named([
        "pattern.js", "filteritem.js", "filtervalue.js", "filtercondition.js", "pagefilter.js", "filesource.js",
    ])
    /// The scripts that a page that is a file does not have: it acts on nothing.
    private static let actScripts = ["inject.js", "ping.js", "tray.js", "hold.js", "rules.js", "act.js"]
    /// The scripts of a page that is a file, each after those that it imports.
    package static let bundledScripts =
        scripts.filter { $0.name != "main.js" && !actScripts.contains($0.name) } + fileScripts + named(["main.js"])

    private static func named(_ names: [String]) -> [Asset] {
        names.map { Asset(name: $0, type: "text/javascript; charset=utf-8") }
    }

    /// The page and its style.
    package static let page = Asset(name: "index.html", type: "text/html; charset=utf-8")
    package static let style = Asset(name: "style.css", type: "text/css; charset=utf-8")

    /// All files by their path.
    static let paths: [String: Asset] = {
        var paths = ["/": page, "/style.css": style]
        for script in scripts { paths["/\(script.name)"] = script }
        return paths
    }()

    /// The scripts of a page that is a file as one module. Their names at the top level differ, and each import is a line.
    package static let bundle: String = bundledScripts.map { script in
        script.text.split(separator: "\n", omittingEmptySubsequences: false)
            .filter { !$0.hasPrefix("import ") }
            .map { $0.hasPrefix("export ") ? $0.dropFirst("export ".count) : $0 }
            .joined(separator: "\n")
    }.joined()

    /// A number that changes with the files, so that an open page notices an update.
    package static let build: String = {
        // FNV-1a; it only has to differ.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for asset in [page, style] + scripts + fileScripts {
            for byte in asset.text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        }
        return String(hash, radix: 16)
    }()
}
