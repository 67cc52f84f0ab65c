internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import TapNetwork
internal import TapRecord

/// An error response (RFC 9457), sent as `application/problem+json`.
struct Problem: Error {
    /// The stable, machine-readable code.
    let code: ControlProblem
    /// The human-readable description.
    let detail: String
    /// Advice for users of the API.
    var advice: String?
    /// The allowed methods for the `Allow` header.
    var allowed: String?
    /// Writes additional fields of the response.
    var more: @Sendable (inout LineBuffer) -> Void = { _ in }

    init(
        _ code: ControlProblem,
        _ detail: String,
        advice: String? = nil,
        allowed: String? = nil,
        more: @escaping @Sendable (inout LineBuffer) -> Void = { _ in }
    ) {
        self.code = code
        self.detail = detail
        self.advice = advice
        self.allowed = allowed
        self.more = more
    }

    /// Creates the problem of a malformed request.
    static func bad(_ detail: String) -> Problem { Problem(.malformedRequest, detail) }
    /// Creates the problem of a well-formed request with an invalid value.
    static func refused(_ detail: String) -> Problem { Problem(.invalidValue, detail) }

    static let tooManyConnections = Problem(
        .tooManyConnections,
        "more than \(HTTPListener.maximumConnections) connections at once",
        advice: "close some"
    )

    static let wrongHost = Problem(
        .wrongHost,
        "this port answers requests for localhost and for IP addresses only",
        advice: "use such an address in the URL"
    )

    private var status: HTTPResponse.Status {
        switch code {
        case .malformedRequest: .badRequest
        case .noSuchResource, .noSuchSession, .notHeld: .notFound
        case .methodNotAllowed: .methodNotAllowed
        case .wrongHost: .misdirectedRequest
        case .forbidden: .forbidden
        case .bodyTimeout: .requestTimeout
        case .sessionEnded, .notReady, .notDecoded, .noLog, .noRules: .conflict
        case .bodyTooLarge: .contentTooLarge
        case .invalidValue, .invalidFilter, .invalidStanza, .notRequest, .editRefused, .invalidRules:
            .unprocessableContent
        case .internalError: .internalServerError
        case .tooManyConnections, .tooManyWaiting, .stopping: .serviceUnavailable
        case .noBoundary, .noAnswer: .gatewayTimeout
        }
    }

    var response: Response {
        var line = LineBuffer()
        line.openObject()
        line.field("title", status.reasonPhrase)
        line.field("status", status.code)
        line.field("code", code.rawValue)
        line.field("detail", detail)
        if let advice { line.field("advice", advice) }
        more(&line)
        line.closeObject()
        line.endLine()
        var headers: HTTPFields = [.contentType: "application/problem+json"]
        if let allowed { headers[.allow] = allowed }
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(bytes: line.bytes)))
    }

    /// Returns the response of `body`, or one for the error that it throws.
    static func answering(_ body: () async throws -> Response) async -> Response {
        do {
            return try await body()
        } catch let problem as Problem {
            return problem.response
        } catch let error as SessionDirectory.NoSuchSession {
            return Problem(
                .noSuchSession,
                "no session \(error.number)",
                advice: "it has ended or never existed; GET /sessions lists the sessions"
            ).response
        } catch is CancellationError {
            return Problem(.stopping, "xmpptap stops").response
        } catch {
            return Problem(.internalError, "\(error)").response
        }
    }
}
