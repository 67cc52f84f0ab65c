import TapCore

extension SASLStep {
    /// The message to send, if the exchange continues.
    var message: [UInt8]? { if case .send(let bytes) = self { bytes } else { nil } }

    /// The error condition, if the exchange failed.
    var condition: SASLCondition? { if case .failed(let condition, _) = self { condition } else { nil } }

    /// Whether the exchange has succeeded.
    var isDone: Bool { if case .done = self { true } else { false } }
}
