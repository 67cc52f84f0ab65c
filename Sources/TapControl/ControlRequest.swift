internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import TapRules
internal import XMPPCore

/// A request with its path parameters.
struct ControlRequest {
    /// Time limit for receiving a body.
    private static let bodyTime = Duration.seconds(30)

    let request: Request
    let parameters: [Substring: Substring]
    /// Returns whether the client has closed its side of the connection, so that waiting for something is useless.
    let isCancelled: @Sendable () -> Bool

    /// Returns a number from the path.
    func number(_ name: String) throws(Problem) -> UInt64 {
        guard let text = parameters[Substring(name)], let number = UInt64(text), text.utf8.allSatisfy({ $0 != 0x2B })
        else {
            throw .bad("{\(name)} in the path must be a number")
        }
        return number
    }

    /// Returns a query parameter; nil if there is none.
    func query(_ name: String) -> String? { request.uri.queryParameters[Substring(name)].map(String.init) }

    /// Returns the session number from the query; nil if there is none.
    func session() throws(Problem) -> UInt64? {
        guard let text = query("session") else { return nil }
        guard let number = UInt64(text), number > 0 else { throw .bad("session must be a number from 1") }
        return number
    }

    /// Throws a problem if there are query parameters with other names.
    func allowQuery(_ names: [String]) throws(Problem) {
        for (name, _) in request.uri.queryParameters where !names.contains(String(name)) {
            let known = names.isEmpty ? "there is none" : "known are \(names.joined(separator: ", "))"
            throw .bad("unknown query parameter \"\(name)\"; \(known)")
        }
    }

    /// Reads the body as a JSON object of at most `limit` bytes.
    func body(limit: Int = 64 << 10) async throws -> JSONObject {
        let bytes = try await withThrowingTaskGroup(of: [UInt8].self) { tasks in
            tasks.addTask {
                do {
                    let buffer = try await request.body.collect(upTo: limit)
                    return Array(buffer.readableBytesView)
                } catch is NIOTooManyBytesError {
                    throw Problem(.bodyTooLarge, "the body is larger than \(limit) bytes")
                }
            }
            tasks.addTask {
                try await Task.sleep(for: Self.bodyTime)
                throw Problem(.bodyTimeout, "the body did not arrive within \(Self.bodyTime)")
            }
            defer { tasks.cancelAll() }
            return try await tasks.next() ?? []
        }
        return try JSONObject(bytes)
    }
}

extension Problem {
    /// Parses a JID in a request.
    static func jid(_ text: String, _ name: String) throws(Problem) -> JID {
        do throws(JIDError) {
            return try JID(parsing: text)
        } catch {
            throw .refused("\"\(name)\": \(error)")
        }
    }

    /// Parses a filter in a request.
    static func filter(_ text: String) throws(Problem) -> RecordFilter {
        do throws(FilterFault) {
            return try RecordFilter(text)
        } catch {
            throw Problem(error)
        }
    }

    /// Creates the problem of a filter that is refused, with the column of its mistake.
    init(_ fault: FilterFault) {
        let column = fault.column
        self.init(.invalidFilter, "\(fault)") { $0.field("column", column) }
    }

    /// Parses a level in a request.
    static func level(_ text: String) throws(Problem) -> Level {
        guard let level = Level(name: text) else {
            throw .refused("\"level\" must be one of \(Level.allCases.map(\.name).joined(separator: ", "))")
        }
        return level
    }
}

extension JSONObject {
    /// Returns the leg in the field `to`.
    func leg() throws(Problem) -> Leg {
        switch try required("to") {
        case "client": .client
        case "server": .server
        default: throw .refused("\"to\" must be \"client\" or \"server\"")
        }
    }

    /// Returns the time limit for an injected stanza and its answer, in nanoseconds.
    func timeout() throws(Problem) -> Int64 {
        try integer("timeout_ns", in: 1...Injection.maximumTimeout) ?? Injection.usualTimeout
    }
}

extension Response {
    /// Creates a response with a JSON object.
    static func json(_ body: (inout LineBuffer) -> Void) -> Response {
        var line = LineBuffer()
        line.openObject()
        body(&line)
        line.closeObject()
        line.endLine()
        return Response(
            status: .ok,
            headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(bytes: line.bytes))
        )
    }
}

extension LineBuffer {
    /// Writes a field with a text or null.
    mutating func field(_ name: StaticString, orNull value: String?) {
        field(name)
        if let value { appendJSONString(value) } else { append("null") }
    }

    /// Writes a field with an array of objects.
    mutating func field<Item>(
        _ name: StaticString,
        _ items: some Sequence<Item>,
        _ body: (inout LineBuffer, Item) -> Void
    ) {
        field(name)
        openArray()
        for item in items {
            openObject()
            body(&self, item)
            closeObject()
        }
        closeArray()
    }

    /// Writes a field with an object.
    mutating func field(_ name: StaticString, _ body: (inout LineBuffer) -> Void) {
        field(name)
        openObject()
        body(&self)
        closeObject()
    }
}
