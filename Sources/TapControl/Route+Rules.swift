internal import HTTPTypes
internal import HummingbirdCore
internal import TapNetwork
internal import TapRecord
internal import TapRules
internal import XMPPCore

// Rule files.
extension Route {
    static func rules(_ context: ControlContext) -> [Route] {
        [
            Route(method: .get, path: "/rules") { _ in show(context.rules) },
            Route(method: .put, path: "/rules/state") { request in
                let body = try await request.body()
                try body.allow("file", "line", "on")
                let (file, line) = (try body.required("file"), try body.integer("line", in: 1...Int64(Int32.max)))
                guard let line else { throw Problem.refused("\"line\" is missing") }
                guard let isOn = try body.bool("on") else { throw Problem.refused("\"on\" is missing") }
                let rules = try rules(of: context)
                guard rules.set(RulePlace(file: file, line: Int(line)), isOn) else {
                    throw Problem.refused("there is no rule at \(file):\(line); GET /rules lists the rules")
                }
                return show(rules)
            },
            Route(method: .post, path: "/rules/reload") { _ in
                let rules = try rules(of: context)
                let off = rules.statuses().count { !$0.isOn }
                do {
                    try rules.reload()
                } catch let error as RuleSet.LoadError {
                    throw Problem(error)
                }
                return show(rules, switchedOn: off)
            },
        ]
    }

    private static func rules(of context: ControlContext) throws(Problem) -> ControlledRules {
        guard let rules = context.rules else { throw Problem(.noRules, "this proxy has no rule files") }
        return rules
    }

    /// The hits of rules, live.
    static func ruleTrace(_ streams: EventStreams) -> Route {
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
        }
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

    /// - Parameter switchedOn: The number of rules that were off before a reload.
    private static func show(_ rules: ControlledRules?, switchedOn: Int? = nil) -> Response {
        .json { line in
            line.field("files")
            line.openArray()
            for file in rules?.files ?? [] {
                line.separate()
                line.appendJSONString(file)
            }
            line.closeArray()
            line.field("rules", rules?.statuses() ?? []) { line, rule in
                line.field("file", rule.place.file)
                line.field("line", rule.place.line)
                line.field("hits", rule.hits)
                line.field("on", rule.isOn)
            }
            if let switchedOn { line.field("switched_on", switchedOn) }
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
