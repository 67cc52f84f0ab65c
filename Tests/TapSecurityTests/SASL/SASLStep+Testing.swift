import TapCore

extension SASLStep {
    /// The message to send, where the exchange goes on.
    var message: [UInt8]? { if case .send(let bytes) = self { bytes } else { nil } }

    /// The reason, where the exchange has failed.
    var condition: SASLCondition? { if case .failed(let condition, _) = self { condition } else { nil } }

    /// Whether the exchange has succeeded.
    var isDone: Bool { if case .done = self { true } else { false } }
}
