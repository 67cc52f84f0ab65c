internal import TapCore
internal import TapDiagnosis
internal import TapRecord

/// How sessions are made of what was not recorded as records: of packets, and of clients' logs.
struct Decoding {
    /// The words for what to try, of logins that failed; nil leaves them out.
    let advice: Advice?
    /// What the records hide.
    let redaction: RedactionPolicy
    /// The zone of times in clients' logs that name none.
    let zone: LocalZone

    /// A source's options, with these.
    func applied(to options: SessionOptions) -> SessionOptions {
        var options = options
        options.advice = advice
        options.redaction = redaction
        return options
    }
}
