/// What OpenSSL told by its callbacks about one connection. An object of its own, so that a callback inside a call never
/// touches what that call is changing.
final class TLSObservations {
    /// Alerts that are kept each way.
    private static let limit = 8

    /// What is wrong with the peer's certificate, also where that was let pass.
    var faults: [CertificateFault] = []
    /// See ``TLSEngine/keepMessages()``.
    var messages: [TLSMessage] = []
    private(set) var alertsReceived: [TLSAlert] = []
    private(set) var alertsSent: [TLSAlert] = []
    private(set) var fatalAlertReceived: TLSAlert?
    private(set) var fatalAlertSent: TLSAlert?

    func noteAlert(_ alert: TLSAlert, isFatal: Bool, isReceived: Bool) {
        if isReceived {
            if alertsReceived.count < Self.limit { alertsReceived.append(alert) }
            if isFatal { fatalAlertReceived = alert }
        } else {
            if alertsSent.count < Self.limit { alertsSent.append(alert) }
            if isFatal { fatalAlertSent = alert }
        }
    }
}
