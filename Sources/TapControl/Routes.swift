internal import CAssets
internal import Hummingbird
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
            + rules(context, streams) + [health(context), metrics.route, document]
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

    /// Creates the responder for the routes.
    static func responder(_ routes: [Route]) -> RouterResponder<BasicRequestContext> {
        let router = Router()
        for route in routes {
            let place = RouterPath(route.path.replacing("{", with: ":").replacing("}", with: ""))
            router.on(place, method: route.method) { request, context in
                let request = ControlRequest(request: request, parameters: context.parameters)
                try request.allowQuery(route.query)
                return try await route.handle(request)
            }
        }
        return router.buildResponder()
    }

    /// Returns the problem for a request that matches no route.
    static func problem(_ request: Request, _ routes: [Route]) -> Problem {
        let parts = request.uri.path.split(separator: "/")
        let others = routes.filter { route in
            let names = route.path.split(separator: "/")
            return names.count == parts.count && zip(names, parts).allSatisfy { $0 == $1 || $0.hasPrefix("{") }
        }
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
