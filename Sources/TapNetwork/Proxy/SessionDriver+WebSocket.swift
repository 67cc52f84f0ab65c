internal import NIOCore
internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

// Sessions over WebSocket. Their connections are opened by ``WebHandler``, which hands them over after the handshakes.
extension SessionDriver {
    private struct SessionOver: Error, CustomStringConvertible {
        var description: String { "the session has ended" }
    }

    /// Begins the session of a client that has requested a WebSocket; returns the refusal if it must not begin.
    func beginWebSocket() -> RelayLoop.Refusal? {
        loop.add(self)
        if let refusal = loop.refusal { return refusal }
        guard !loop.isStopping else {
            return RelayLoop.Refusal(condition: .systemShutdown, text: "xmpptap is stopping.")
        }
        if let refusal = loop.context.admission.admit(accepted.remote?.ipAddress) { return refusal }
        isAdmitted = true
        perform()
        return nil
    }

    /// Continues with two connections on which only frames follow.
    func openWebSocket(
        _ clientChannel: any Channel,
        _ clientTLS: TLSHandler?,
        _ serverChannel: any Channel,
        _ serverTLS: TLSHandler?,
        _ upgrade: WebSocketUpgrade
    ) throws {
        guard stage == .connecting else { throw SessionOver() }
        try clientChannel.syncOptions?.setOption(.autoRead, value: false)
        try serverChannel.syncOptions?.setOption(.autoRead, value: false)
        try client.join(clientChannel, self, tls: clientTLS)
        session.handle(.upgraded(upgrade), at: now)
        connected(serverChannel, tls: serverTLS)
    }

    /// Ends the session because the handshake failed. The client gets an HTTP answer.
    ///
    /// - Parameters:
    ///   - fault: The reason why the server was not reached; nil if it was.
    ///   - tls: The failure of TLS with the server, if that is the reason.
    func failWebSocket(_ reason: String, _ fault: ConnectionFault?, _ tls: TLSFault? = nil) {
        guard stage == .connecting else { return }
        stage = .relaying
        loop.context.metrics.connectionFailed()
        let failure =
            tls.map { upgradeFailure($0) } ?? fault.map { UpgradeFailure(reason, $0) } ?? UpgradeFailure(reason)
        handle(.upgradeFailed(failure))
    }
}
