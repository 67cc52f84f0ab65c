import Testing

@testable import xmpptap

/// The line that a call is refused with.
func refusal<Value>(
    _ call: () throws -> Value,
    sourceLocation: SourceLocation = #_sourceLocation
) -> String {
    do {
        let value = try call()
        Issue.record("not refused: \(value)", sourceLocation: sourceLocation)
        return ""
    } catch let failure as Failure {
        #expect(failure.status == .usage, sourceLocation: sourceLocation)
        return failure.message
    } catch {
        Issue.record("another error: \(error)", sourceLocation: sourceLocation)
        return ""
    }
}
