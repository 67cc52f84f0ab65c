internal import HTTPTypes
internal import HummingbirdCore
internal import TapNetwork
internal import TapRecord
internal import TapRules
internal import XMPPCore

// Rule files.
extension Route {
    static func rules(_ context: ControlContext, _ streams: EventStreams) -> [Route] {
        [
            Route(method: .get, path: "/rules") { _ in show(context.rules) },
            Route(method: .post, path: "/rules/reload") { _ in
                guard let rules = context.rules else {
                    throw Problem(.noRules, "this proxy has no rule files")
                }
                do {
                    try rules.reload()
                } catch let error as RuleSet.LoadError {
                    throw Problem(error)
                }
                return show(rules)
            },
            Route(method: .get, path: "/rules/trace", query: ["rule", "session", "tag"]) { request in
                let rule = request.query("rule")
                let tag = request.query("tag")
                let session = try request.session()
                return try streams.respond(
                    with: EventStream("hit", level: .verbose) { record, content, data in
                        guard record.code == Record.Code.ruleHit, session == nil || session == record.session,
                            rule == nil || rule == record.rule, tag.map({ record.tags.contains($0) }) ?? true
                        else { return false }
                        data.openObject()
                        append(record, content, to: &data)
                        data.closeObject()
                        data.endLine()
                        return true
                    }
                )
            },
        ]
    }

    private static func append(_ record: borrowing Record, _ content: Span<UInt8>, to data: inout LineBuffer) {
        data.field("session", record.session)
        if let direction = record.direction {
            data.field("direction", direction == .send ? "SEND" : "RECV")
        }
        if let rule = record.rule {
            let colon = rule.lastIndex(of: ":") ?? rule.endIndex
            data.field("file", String(rule[..<colon]))
            if let line = Int(rule[colon...].dropFirst()) { data.field("line", line) }
        }
        if case .string(let action)? = record.details?["action"] { data.field("action", action) }
        if case .strings(let conditions)? = record.details?["conditions"] {
            append(conditions, as: "conditions", to: &data)
        }
        if !record.tags.isEmpty { append(record.tags, as: "tags", to: &data) }
        if let xml = record.xml {
            data.field("stanza", content.slice(xml).bytes, orBase64: "base64")
        }
    }

    private static func append(_ texts: [String], as name: StaticString, to data: inout LineBuffer) {
        data.field(name)
        data.openArray()
        for text in texts {
            data.separate()
            data.appendJSONString(text)
        }
        data.closeArray()
    }

    private static func show(_ rules: ControlledRules?) -> Response {
        .json { line in
            line.field("files")
            line.openArray()
            for file in rules?.files ?? [] {
                line.separate()
                line.appendJSONString(file)
            }
            line.closeArray()
            line.field("rules", rules?.hits() ?? []) { line, rule in
                line.field("file", rule.place.file)
                line.field("line", rule.place.line)
                line.field("hits", rule.hits)
            }
        }
    }
}

extension Record {
    /// The tags of the stanza that the rule matched (`TAG TRACE`).
    fileprivate var tags: [String] {
        guard case .strings(let tags)? = details?["tags"] else { return [] }
        return tags
    }
}

extension Problem {
    /// Creates a problem from the faults of rule files.
    fileprivate init(_ error: RuleSet.LoadError) {
        self.init(.invalidRules, "the rule files have mistakes; the old rules stay") { line in
            line.field("faults", error.faults) { line, fault in
                line.field("file", fault.place.file)
                line.field("line", fault.place.line)
                line.field("column", fault.column)
                line.field("message", "\(fault)")
            }
        }
    }
}
