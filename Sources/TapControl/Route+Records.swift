internal import Hummingbird
internal import Synchronization
internal import TapRecord

// What sessions do, live.
extension Route {
    static func records(_ context: ControlContext, _ streams: EventStreams) -> [Route] {
        [
            Route(method: .get, path: "/records", query: ["filter", "level", "session"]) { request in
                guard request.query("filter") == nil else {
                    throw Problem.refused("filter is not supported yet; leave it out")
                }
                let level = try request.query("level").map { try Problem.level($0) } ?? .info
                var spec = LogSpec(level: level)
                if let number = try request.session() {
                    spec = LogSpec(level: .off)
                    spec.set(level, session: number)
                }
                let filter = LogFilter(spec)
                let form = Mutex(JSONForm())
                let run = context.run
                return try streams.respond(
                    with: EventStream(level: filter.level) { record, content, event in
                        let shown = filter.shown(of: record)
                        guard !shown.isEmpty else { return false }
                        event.append("event: record\nid: ")
                        event.append(string: run)
                        event.append("-")
                        event.append(decimal: record.sequence)
                        event.append("\ndata: ")
                        let hasContent = shown.contains(.xml) || record.bytes != nil
                        form.withLock {
                            $0.append(record, content: content, hasContent ? .content : [], to: &event)
                        }
                        event.append("\n")
                        return true
                    }
                )
            }
        ]
    }
}
