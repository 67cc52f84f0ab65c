internal import TapCore
internal import TapSecurity

// TLS that cannot begin.
extension SessionDriver {
    /// A connection is over while TLS begins.
    func endedInHandshake(_ leg: Leg, _ end: LegEnd) {
        guard let securing else { return }
        // The one whose turn it is not can end the session in its own way.
        guard securing.leg == leg, securing.step != .identity else {
            self.securing = nil
            stage = .relaying
            session.ended(leg, end, at: now)
            return perform()
        }
        let fault = TLSFault(.endedInHandshake)
        let advice = leg == .client ? fault.adviceForClient : fault.adviceForServer
        failSecuring(code: fault.name, fault.words(peer: "the \(leg.name)"), advice: advice, leg: leg)
    }

    /// Ends a session whose TLS cannot begin; on the leg whose turn it is, if none is named.
    ///
    /// - Parameter alert: What a client is told that has begun with TLS and was not answered.
    func failSecuring(
        code: String,
        _ words: String,
        advice: String? = nil,
        leg: Leg? = nil,
        alert: Session.Alert = .internalError
    ) {
        guard let securing else { return }
        self.securing = nil
        stage = .relaying
        deferred.removeAll()
        session.tlsFailed(
            leg ?? securing.leg,
            directly: securing.isDirect && securing.step != .client,
            alert: alert,
            code: code,
            words,
            advice: advice,
            at: now
        )
        perform()
    }
}

extension TLSFault {
    /// The alert that tells a client what the server, or its TLS, has said.
    var alertForClient: Session.Alert {
        switch code {
        case .alertReceived(.unrecognizedName): .unrecognizedName
        case .alertReceived(.protocolVersion), .version: .protocolVersion
        case .alertReceived(.noApplicationProtocol), .noSharedProtocol: .noApplicationProtocol
        default: .internalError
        }
    }
}
