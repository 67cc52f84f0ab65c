internal import CAssets
internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TapCore
internal import TapNetwork
internal import TapRecord

/// A route: an operation of the OpenAPI description.
struct Route {
    let method: HTTPRequest.Method
    /// The path with parameters in braces: `/sessions/{id}`.
    let path: String
    /// The allowed query parameters.
    var query: [String] = []
    let handle: @Sendable (ControlRequest) async throws -> Response
}

extension Route {
    /// Returns all routes of the control service.
    static func all(_ context: ControlContext, _ streams: EventStreams, _ metrics: Metrics) -> [Route] {
        sessions(context) + commands(context) + held(context) + level(context) + records(context, streams)
            + rules(context) + [ruleTrace(streams), health(context), metrics.route, document]
    }

    private static func health(_ context: ControlContext) -> Route {
        let began = context.clock.now().monotonic
        return Route(method: .get, path: "/health") { _ in
            .json { line in
                line.field("status", literal: "ok")
                line.field("pid", Int(ProcessFigures.number))
                line.field("version", context.version)
                line.field("uptime_ns", Int(context.clock.now().monotonic - began))
                line.field("sessions", context.metrics.sessionsOpen)
            }
        }
    }

    /// The OpenAPI description of the routes.
    private static let document = Route(method: .get, path: "/openapi.json") { _ in
        Response(
            status: .ok,
            headers: [.contentType: "application/json"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: String(cString: casset_text("openapi.json"))))
        )
    }

    /// Returns the response of the route that matches a request.
    ///
    /// - Parameter isCancelled: Returns whether the client has closed its side of the connection.
    static func respond(
        to request: Request,
        by routes: [Route],
        isCancelled: @escaping @Sendable () -> Bool
    ) async throws -> Response {
        for route in routes where route.method == request.method {
            guard let parameters = route.parameters(of: request.uri.path) else { continue }
            let request = ControlRequest(request: request, parameters: parameters, isCancelled: isCancelled)
            try request.allowQuery(route.query)
            return try await route.handle(request)
        }
        throw problem(request, routes)
    }

    /// Returns the path parameters if a path matches; empty parts of the path are ignored.
    private func parameters(of path: String) -> [Substring: Substring]? {
        let parts = path.split(separator: "/")
        let names = self.path.split(separator: "/")
        guard parts.count == names.count else { return nil }
        var parameters: [Substring: Substring] = [:]
        for (name, part) in zip(names, parts) {
            if name.hasPrefix("{") {
                parameters[name.dropFirst().dropLast()] = part
            } else if name != part {
                return nil
            }
        }
        return parameters
    }

    /// Returns the problem for a request that matches no route.
    private static func problem(_ request: Request, _ routes: [Route]) -> Problem {
        let others = routes.filter { $0.parameters(of: request.uri.path) != nil }
        guard !others.isEmpty else {
            return Problem(.noSuchResource, "no such resource", advice: "see GET /openapi.json")
        }
        let allowed = others.map { "\($0.method)" }.sorted().joined(separator: ", ")
        return Problem(
            .methodNotAllowed,
            "\(request.method) is not allowed here",
            advice: "allowed is \(allowed)",
            allowed: allowed
        )
    }
}
