internal import TapCore
internal import TapRecord

/// What name servers have said so far.
struct ProbeLookups {
    var lines: [String] = []
    var duration: Int64 = 0
    var details: Attributes = [:]
}

// The way to the server.
extension ProbeReport {
    /// A step on the way has been made.
    mutating func note(_ step: DiscoveryStep, _ lookups: inout ProbeLookups) {
        switch step.step {
        case .records:
            let service = Self.service(step)
            let name = String(step.subject.prefix { $0 != "." })
            if step.subject.hasPrefix(ServiceRecord.Service.tls.rawValue) {
                directService = service
            } else {
                clearService = service
            }
            lookups.lines.append("\(name): \(step.finding)")
            lookups.details[name] = .string(step.finding)
            lookups.duration = max(lookups.duration, step.duration ?? 0)
        case .addresses:
            lookups.lines.append("\(step.subject): \(step.finding)")
            lookups.duration += step.duration ?? 0
        case .connection where step.outcome == .ok:
            note(.ok, &lookups)
            add(.connection, .ok, [step.subject], took: step.duration, ["address": .string(step.subject)])
        case .connection:
            note(.ok, &lookups)
            add(.connection, .note, ["\(step.subject): \(step.finding)"], took: step.duration)
        }
    }

    /// The look-ups make one step.
    mutating func note(_ outcome: Step.Outcome, _ lookups: inout ProbeLookups) {
        guard !lookups.lines.isEmpty else { return }
        add(.names, outcome, lookups.lines, took: lookups.duration, lookups.details)
        lookups.lines = []
    }

    private static func service(_ step: DiscoveryStep) -> Service {
        switch step.outcome {
        case .ok: .announced(step.finding)
        case .refused: .refused
        case .none: .none
        case .failed, .skipped: .unknown
        }
    }
}
