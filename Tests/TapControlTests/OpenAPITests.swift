import CAssets
import Foundation
import TapNetwork
import Testing

@testable import TapControl

/// The OpenAPI description, compared with the routes.
struct OpenAPITests {
    private typealias Object = [String: Any]

    private static let context = ControlContext.test()

    private static let routes = Route.all(context, EventStreams(context.dispatcher), Metrics(context))

    private func document() throws -> Object {
        let data = Data(String(cString: casset_text("openapi.json")).utf8)
        return try #require(try JSONSerialization.jsonObject(with: data) as? Object)
    }

    private func paths() throws -> Object {
        let document = try document()
        #expect(document["openapi"] as? String == "3.1.0")
        return try #require(document["paths"] as? Object)
    }

    @Test func `the OpenAPI description has every problem code`() throws {
        let schemas = (try document()["components"] as? Object)?["schemas"] as? Object
        let codes = (schemas?["ProblemCode"] as? Object)?["enum"] as? [String]
        #expect(codes?.sorted() == ControlProblem.allCases.map(\.rawValue).sorted())
    }

    @Test func `the OpenAPI description has exactly the routes that are served`() throws {
        let described = try paths().flatMap { path, operations in
            (operations as? Object ?? [:]).keys.map { "\($0.uppercased()) \(path)" }
        }
        let served = Self.routes.map { "\($0.method) \($0.path)" }
        #expect(Set(served).count == served.count)
        #expect(described.sorted() == served.sorted())
    }

    @Test func `the OpenAPI description has the path and query parameters of each route`() throws {
        let paths = try paths()
        for route in Self.routes {
            let operation = (paths[route.path] as? Object)?["\(route.method)".lowercased()] as? Object
            let parameters = operation?["parameters"] as? [Object] ?? []
            func names(_ place: String) -> [String] {
                parameters.filter { $0["in"] as? String == place }.compactMap { $0["name"] as? String }.sorted()
            }
            #expect(names("query") == route.query.sorted(), "\(route.path)")
            let inPath = route.path.split(separator: "/").filter { $0.hasPrefix("{") }.map { $0.dropFirst().dropLast() }
            #expect(names("path") == inPath.map(String.init).sorted(), "\(route.path)")
        }
    }
}
