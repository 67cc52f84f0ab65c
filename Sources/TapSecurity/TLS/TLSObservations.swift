/// The results of OpenSSL's callbacks for one connection. A separate object, so that a callback inside a call never
/// touches what that call is changing.
final class TLSObservations {
    /// Alerts that are kept each way.
    private static let limit = 8

    /// The faults of the peer's certificate, also if they were ignored.
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
