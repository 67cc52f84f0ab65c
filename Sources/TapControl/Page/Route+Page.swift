internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import NIOPosix
internal import TapCapture
internal import TapNetwork
internal import TapRecord
internal import TapRules

/// Makes answers on threads that nothing else uses: a search takes time, and requests wait for each other.
struct PageAnswers: Sendable {
    private let inspection: Inspection
    private let pool: NIOThreadPool
    /// Whether the page can act on sessions.
    let acts: Bool

    init(_ inspection: Inspection, on pool: NIOThreadPool, acts: Bool = false) {
        self.inspection = inspection
        self.pool = pool
        self.acts = acts
    }

    /// Calls `body` on one of the threads.
    func ask<Answer: Sendable>(_ body: @escaping @Sendable (Inspection) -> Answer) async throws -> Answer {
        inspection.touch()
        return try await pool.runIfActive { [inspection] in body(inspection) }
    }

    /// Returns a response with the JSON text that `body` makes.
    fileprivate func json(_ body: @escaping @Sendable (Inspection) -> [UInt8]) async throws -> Response {
        Response(
            status: .ok,
            headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: try await ask(body)))
        )
    }
}

// The page and its data. A page pulls: it asks for rows after those that it has, and waits if there are none.
extension Route {
    /// The longest time that a request waits for new rows.
    private static let maximumWait = 20
    /// How often a waiting request looks for new rows, so that relayed sessions need not wake it.
    private static let pause = Duration.milliseconds(50)

    static func page(_ answers: PageAnswers) -> [Route] {
        let assets = PageAssets.paths.map { path, asset in
            Route(method: .get, path: path) { _ in
                Response(
                    status: .ok,
                    headers: [.contentType: asset.type],
                    body: ResponseBody(byteBuffer: ByteBuffer(string: asset.text))
                )
            }
        }
        return assets + [rows(answers)] + data(answers)
    }

    private static func rows(_ answers: PageAnswers) -> Route {
        Route(
            method: .get,
            path: "/page/rows",
            query: ["from", "around", "count", "known", "wait", "filter", "list"]
        ) { request in
            let filter = try request.filter()
            let list = try request.integer("list")
            let around = try request.integer("around")
            let place: Inspection.Place = try around.map { .around($0) } ?? .from(request.integer("from") ?? 0)
            let count = try request.integer("count") ?? 200
            if let known = try request.integer("known") {
                let seconds = min(max(0, try request.integer("wait") ?? 0), maximumWait)
                let end = ContinuousClock.now + .seconds(seconds)
                // A cancelled request would keep one of the connections until its end.
                while ContinuousClock.now < end, !request.isCancelled(),
                    try await !answers.ask({ $0.hasMore(than: known, filter: filter, list: list) })
                {
                    try await Task.sleep(for: pause)
                }
            }
            return try await answers.json { $0.rows(filter, place, count: count) }
        }
    }

    private static func data(_ answers: PageAnswers) -> [Route] {
        [
            Route(method: .get, path: "/page/state") { _ in
                try await answers.json { $0.state(build: PageAssets.build, acts: answers.acts) }
            },
            Route(method: .get, path: "/page/seek", query: ["at", "filter", "back"]) { request in
                guard let filter = try request.filter() else { throw Problem.bad("filter is missing") }
                let at = try request.integer("at") ?? 0
                let isBack = request.query("back") == "1"
                return try await answers.json { $0.seek(filter, from: at, backwards: isBack) }
            },
            Route(method: .get, path: "/page/record", query: ["at"]) { request in
                guard let at = try request.integer("at"), at >= 0 else { throw Problem.bad("at is missing") }
                return try await answers.json { $0.record(at: at) }
            },
            Route(method: .get, path: "/page/sessions") { _ in try await answers.json { $0.sessions() } },
            Route(method: .get, path: "/page/findings") { _ in try await answers.json { $0.findings() } },
            Route(method: .get, path: "/page/measures") { _ in try await answers.json { $0.measures() } },
            Route(method: .get, path: "/page/conversations", query: ["filter"]) { request in
                let filter = try request.filter()
                return try await answers.json { $0.conversations(filter) }
            },
            Route(method: .get, path: "/page/messages", query: ["conversation", "before", "count", "filter"]) {
                request in
                guard let conversation = try request.integer("conversation") else {
                    throw Problem.bad("conversation is missing")
                }
                let before = try request.integer("before")
                let count = try request.integer("count") ?? 200
                let filter = try request.filter()
                return try await answers.json { $0.messages(of: conversation, before: before, count: count, filter) }
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
        return try Problem.filter(text)
    }
}
