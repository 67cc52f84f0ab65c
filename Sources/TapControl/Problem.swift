internal import Hummingbird
internal import NIOCore
internal import TapNetwork
internal import TapRecord

/// Why a request was not served (RFC 9457), answered as `application/problem+json`.
struct Problem: Error {
    let status: HTTPResponse.Status
    /// What happened and the way out.
    let detail: String
    /// More fields of the answer.
    var more: @Sendable (inout LineBuffer) -> Void = { _ in }
    /// The methods that are allowed instead.
    var allowed: String?

    /// The request itself is wrong.
    static func bad(_ detail: String) -> Problem { Problem(status: .badRequest, detail: detail) }
    /// The request is well formed, but asks for what cannot be.
    static func refused(_ detail: String) -> Problem { Problem(status: .unprocessableContent, detail: detail) }
    /// The state of the session or the program is in the way.
    static func conflict(_ detail: String) -> Problem { Problem(status: .conflict, detail: detail) }

    static let tooManyConnections = Problem(
        status: .serviceUnavailable,
        detail: "more than \(HTTPListener.mostConnections) connections at once; close some"
    )

    var response: Response {
        var line = LineBuffer()
        line.openObject()
        line.field("title", status.reasonPhrase)
        line.field("status", status.code)
        line.field("detail", detail)
        more(&line)
        line.closeObject()
        line.endLine()
        var headers: HTTPFields = [.contentType: "application/problem+json"]
        if let allowed { headers[.allow] = allowed }
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: line.bytes)))
    }

    /// The answer of `body`, or of the error that it throws.
    static func answering(_ body: () async throws -> Response) async -> Response {
        do {
            return try await body()
        } catch let problem as Problem {
            return problem.response
        } catch let error as SessionDirectory.NoSuchSession {
            return Problem(
                status: .notFound,
                detail: "no session \(error.number); it has ended, or never was"
            ).response
        } catch let error as HTTPError {
            return Problem(status: error.status, detail: error.body ?? "\(error)").response
        } catch is CancellationError {
            return Problem(status: .serviceUnavailable, detail: "xmpptap stops").response
        } catch {
            return Problem(status: .internalServerError, detail: "\(error)").response
        }
    }
}
