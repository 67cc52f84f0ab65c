internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TapCapture
internal import TapNetwork
internal import TapRecord
internal import TapRules

// The page and its data. A page pulls: it asks for rows after those that it has, and waits if there are none.
extension Route {
    /// The longest time that a request waits for new rows.
    private static let maximumWait = 20
    /// How often a waiting request looks for new rows, so that relayed sessions need not wake it.
    private static let pause = Duration.milliseconds(50)
    static func page(_ inspection: Inspection) -> [Route] {
        let assets = PageAssets.paths.map { path, asset in
            Route(method: .get, path: path) { _ in
                Response(
                    status: .ok,
                    headers: [.contentType: asset.type],
                    body: ResponseBody(byteBuffer: ByteBuffer(string: asset.text))
                )
            }
        }
        return assets + data(inspection)
    }

    private static func data(_ inspection: Inspection) -> [Route] {
        [
            Route(method: .get, path: "/page/state") { _ in .json(inspection.state(build: PageAssets.build)) },
            Route(
                method: .get,
                path: "/page/rows",
                query: ["from", "around", "count", "known", "wait", "filter"]
            ) { request in
                let filter = try request.filter()
                let around = try request.integer("around")
                let place: Inspection.Place = try around.map { .around($0) } ?? .from(request.integer("from") ?? 0)
                let count = try request.integer("count") ?? 200
                if let known = try request.integer("known") {
                    let seconds = min(max(0, try request.integer("wait") ?? 0), maximumWait)
                    let end = ContinuousClock.now + .seconds(seconds)
                    while !inspection.hasMore(than: known, filter: filter), ContinuousClock.now < end {
                        try await Task.sleep(for: pause)
                    }
                }
                return .json(inspection.rows(filter, place, count: count))
            },
            Route(method: .get, path: "/page/seek", query: ["at", "filter", "back"]) { request in
                guard let filter = try request.filter() else { throw Problem.bad("filter is missing") }
                let at = try request.integer("at") ?? 0
                return .json(inspection.seek(filter, from: at, backwards: request.query("back") == "1"))
            },
            Route(method: .get, path: "/page/record", query: ["at"]) { request in
                guard let at = try request.integer("at"), at >= 0 else { throw Problem.bad("at is missing") }
                return .json(inspection.record(at: at))
            },
            Route(method: .get, path: "/page/sessions") { _ in .json(inspection.sessions()) },
            Route(method: .get, path: "/page/findings") { _ in .json(inspection.findings()) },
            Route(method: .get, path: "/page/measures") { _ in .json(inspection.measures()) },
            Route(method: .get, path: "/page/conversations") { _ in .json(inspection.conversations()) },
            Route(method: .get, path: "/page/messages", query: ["conversation", "before", "count"]) { request in
                guard let conversation = try request.integer("conversation") else {
                    throw Problem.bad("conversation is missing")
                }
                return .json(
                    inspection.messages(
                        of: conversation,
                        before: try request.integer("before"),
                        count: try request.integer("count") ?? 200
                    )
                )
            },
        ]
    }
}

extension ControlRequest {
    /// The largest integer that JavaScript represents exactly.
    private static let maximumNumber: UInt = 1 << 53

    /// Returns an integer of the query; nil if there is none.
    fileprivate func integer(_ name: String) throws(Problem) -> Int? {
        guard let text = query(name) else { return nil }
        // `abs` traps if the number is the smallest one.
        guard let number = Int(text), number.magnitude <= Self.maximumNumber else {
            throw .bad("\(name) must be an integer")
        }
        return number
    }

    /// Returns the filter of the query; nil if there is none, or only white space.
    fileprivate func filter() throws(Problem) -> RecordFilter? {
        guard let text = query("filter"), text.contains(where: { !$0.isWhitespace }) else { return nil }
        do throws(FilterFault) {
            return try RecordFilter(text)
        } catch {
            let column = error.column
            throw Problem(.invalidFilter, "\(error)") { $0.field("column", column) }
        }
    }
}

extension Response {
    /// Creates a response with a JSON text.
    fileprivate static func json(_ bytes: [UInt8]) -> Response {
        Response(
            status: .ok,
            headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes))
        )
    }
}
