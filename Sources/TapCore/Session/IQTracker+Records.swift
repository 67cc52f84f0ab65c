internal import TapRecord
import XMPPCore

// Observes relayed requests and answers, and records them.
extension IQTracker {
    /// The error in the answer to a request.
    struct Failure {
        /// The defined condition (RFC 6120 §8.3.3).
        var condition: String?
        /// The condition, or the numeric code of an error before RFC 3920.
        var code: String?
        var text: Prose?
    }

    /// Records a request, and waits for its answer; returns false if the answer does not arrive on this stream.
    mutating func observeRequest(
        _ event: StreamEvent,
        _ direction: Direction,
        _ purpose: Purpose,
        _ record: consuming Record,
        _ context: inout SessionContext
    ) -> Bool {
        guard expectsAnswers(on: context.info.kind) else {
            context.emit(consume record)
            return false
        }
        store(event.head, context.directions.bytes(direction), direction, record, purpose, context.info)
        context.emit(consume record)
        return true
    }

    /// Records a result, and returns the request that it answers.
    mutating func observeResult(
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: inout SessionContext
    ) -> Request? {
        let request = answer(event.head, context.directions.bytes(direction), direction, context.info)
        var record = context.makeRecord(event, direction, .stanza, level: .info, answering: request)
        Self.describe(request, in: &record, context)
        context.emit(consume record)
        return request
    }

    /// Records an error, and returns the request that it answers, if any.
    mutating func observeError(
        _ event: StreamEvent,
        _ direction: Direction,
        _ context: inout SessionContext
    ) -> (request: Request, failure: Failure)? {
        let request =
            event.head.kind == .iq
            ? answer(event.head, context.directions.bytes(direction), direction, context.info) : nil
        let error = context.parse(direction)?.firstChild { $0.isNamed("error") }
        var failure = Failure()
        failure.condition = error?.firstChild { $0.namespace == .stanzaErrors && !$0.isNamed("text") }?.name
        failure.code = failure.condition ?? error?.attribute("code")
        var record = context.makeRecord(event, direction, .stanza, level: .warn, answering: request)
        if case .legacyAuthentication = request?.purpose { record.level = .error }
        record.condition = failure.code
        record.code = "stanza-error"
        let text = context.hiddenPaths(event).isEmpty ? error?.childText("text", .stanzaErrors) : nil
        failure.text = text.map { Prose(context.tools.redactor.disclose(text: $0)) }
        record.message = failure.text
        Self.describe(request, in: &record, context)
        context.emit(consume record)
        return request.map { ($0, failure) }
    }

    /// Returns the round-trip time in nanoseconds if the item answers an iq request; nil otherwise. The request stays
    /// pending until its answer is recorded.
    func roundTrip(_ event: StreamEvent, _ direction: Direction, _ context: borrowing SessionContext) -> Int64? {
        guard event.head.kind == .iq, let type = event.head.type, isPending(direction.opposite) else { return nil }
        let bytes = context.directions.bytes(direction)
        guard bytes.slice(type.range).equals("result") || bytes.slice(type.range).equals("error") else { return nil }
        var copy = self
        let request = copy.answer(event.head, bytes, direction, context.info)
        return request.map { context.now.monotonic - $0.monotonic }
    }

    private static func describe(
        _ request: Request?,
        in record: inout Record,
        _ context: borrowing SessionContext
    ) {
        guard let request else { return }
        record.answers = request.sequence
        record.roundTrip = context.now.monotonic - request.monotonic
    }
}
