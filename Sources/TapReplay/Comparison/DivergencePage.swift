extension DivergenceReport {
    /// Returns the report as a self-contained HTML page.
    package func html() -> String {
        var page = """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"><title>xmpptap \(Self.escaped(command))</title>
            <style>
            html { color-scheme: light dark; font: 14px/1.45 system-ui, sans-serif; }
            body { max-width: 90rem; margin: 1rem auto; padding: 0 1rem; }
            pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0; padding: .3rem; }
            .r { background: color-mix(in srgb, #c22 12%, transparent); }
            .l { background: color-mix(in srgb, #2a2 12%, transparent); }
            .sides { display: grid; grid-template-columns: 1fr 1fr; gap: .5rem; }
            h3 { font-size: 1rem; margin: 1rem 0 .2rem; } code { overflow-wrap: anywhere; }
            </style></head><body>
            <h1>xmpptap \(Self.escaped(command))</h1>
            <p>\(Self.escaped(recorded)) and \(Self.escaped(live))</p>
            <p><strong>\(Self.escaped(summary))</strong></p>

            """
        for error in errors { page += "<p class=\"r\">\(Self.escaped(error))</p>\n" }
        for cause in causes {
            let divergence = cause.first
            page += "<h2>\(Self.escaped(cause.title))</h2>\n"
            page += "<h3>\(Self.escaped(Self.head(cause)))</h3>\n"
            if !divergence.differences.isEmpty {
                page += "<ul>"
                for difference in divergence.differences {
                    page += "<li><code>\(Self.escaped(difference.path))</code>: "
                    page += "<code class=\"r\">\(Self.escaped(difference.recorded ?? "absent"))</code> → "
                    page += "<code class=\"l\">\(Self.escaped(difference.live ?? "absent"))</code></li>"
                }
                page += "</ul>\n"
            }
            page += "<div class=\"sides\">"
            page +=
                "<pre class=\"r\">\(divergence.recorded.map { Self.titled($0, "expected", divergence.recordedMarks) } ?? "")</pre>"
            page +=
                "<pre class=\"l\">\(divergence.live.map { Self.titled($0, "received", divergence.liveMarks) } ?? "")</pre></div>\n"
            guard !cause.followed.isEmpty else { continue }
            page += "<details><summary>\(cause.followed.count) follow from it</summary>\n<ul>"
            for consequence in cause.followed {
                page += "<li><code>\(Self.escaped(Self.line(consequence)))</code></li>"
            }
            page += "</ul></details>\n"
        }
        for note in notes { page += "<p>note: \(Self.escaped(note))</p>\n" }
        return page + "</body></html>\n"
    }

    private static func titled(_ item: Divergence.Item, _ word: String, _ marks: DifferenceMarks) -> String {
        escaped("\(item.label(word))\n")
            + marks.text(item.text, marked: { "<mark>\(escaped($0))</mark>" }, plain: escaped)
    }
}
