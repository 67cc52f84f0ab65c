internal import TapCore
internal import TapDiagnosis
internal import TapRecord

/// The options for sessions that are made from packets or clients' logs instead of records.
struct Decoding {
    /// The function that returns advice on failed logins; nil omits the advice.
    let advice: Advice?
    /// The policy that says what the records hide.
    let redaction: RedactionPolicy
    /// The zone of times in clients' logs that do not name one.
    let zone: LocalZone

    /// Returns a source's options with the advice and the redaction policy set.
    func applied(to options: SessionOptions) -> SessionOptions {
        var options = options
        options.advice = advice
        options.redaction = redaction
        return options
    }
}
