internal import HTTPTypes
internal import HummingbirdCore
internal import Synchronization
internal import TapRecord
internal import TapRules

// Live records.
extension Route {
    static func records(_ context: ControlContext, _ streams: EventStreams) -> [Route] {
        [
            Route(method: .get, path: "/records", query: ["content", "filter", "level", "session"]) { request in
                let chosen = try request.query("filter").map { text throws(Problem) in
                    do throws(FilterFault) {
                        return try RecordFilter(text)
                    } catch {
                        throw .refused("filter: \(error)")
                    }
                }
                let level = try request.query("level").map { try Problem.level($0) } ?? .info
                let content = request.query("content")
                guard content == nil || content == "all" else { throw Problem.bad("content must be all") }
                let showsItems = content != nil
                var spec = LogSpec(level: level)
                if let number = try request.session() {
                    spec = LogSpec(level: .off)
                    spec.set(level, session: number)
                }
                let levels = LogFilter(spec)
                let form = Mutex(JSONForm())
                return try streams.respond(
                    with: EventStream("record", level: levels.level, run: context.run) { record, content, data in
                        let shown = levels.shown(of: record)
                        guard !shown.isEmpty, chosen?.matches(copy record, content: content) ?? true else {
                            return false
                        }
                        let hasContent = showsItems || shown.contains(.xml) || record.bytes != nil
                        form.withLock { $0.append(record, content: content, hasContent ? .content : [], to: &data) }
                        return true
                    }
                )
            }
        ]
    }
}
