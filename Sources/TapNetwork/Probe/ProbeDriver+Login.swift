internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

// From the offer to a session that is ready, or to why there is none.
extension ProbeDriver {
    func offered(_ features: StreamFeatures) {
        guard let connection else { return }
        let channel = connection.session.channel
        report.bindings = channel.bindings.map(\.type)
        report.noteOffer(features, took: elapsed())
        stepBegan = watch.now
        guard let password = plan.password else {
            if report.tls == nil {
                blameMissingTLS()
            } else if report.tls?.overlooked.isEmpty == true {
                report.outcome = .offered
                watch.leave()
            }
            return leave()
        }
        if report.tls?.overlooked.isEmpty == false {
            report.add(.login, .skipped, ["password not sent: the server's certificate is not trusted"])
            return leave()
        }
        let choice = LoginChoice.strongest(of: features, on: channel)
        guard report.tls != nil || isLoopback else {
            report.add(.login, .skipped, ["password not sent: no TLS"])
            blameMissingTLS()
            return leave()
        }
        guard let choice else {
            let words = "no supported mechanism offered: \(features.allMechanisms.joined(separator: ", "))"
            report.add(.login, .failed, [words])
            watch.blame(.noCommonMechanism, at: .mechanism, words, side: .server)
            return leave()
        }
        self.choice = choice
        connection.session.authenticate(choice, password: password, nonce: tools.nonce)
        connection.perform()
    }

    private func blameMissingTLS() {
        watch.blame(.tlsNotOffered, at: .startTLS, "the server does not offer TLS")
    }

    func authenticated() {
        noteSignatures()
        guard let choice else { return }
        report.noteLogin(choice, connection?.session.signatures, took: elapsed())
        stepBegan = watch.now
    }

    private func noteSignatures() {
        guard let signatures = connection?.session.signatures, choice?.mechanism.hasPrefix("SCRAM") == true else {
            return
        }
        report.mechanismSignature = signatures.mechanisms
        report.versionSignature = signatures.version
    }

    func bound(_ jid: JID, _ features: StreamFeatures) {
        report.outcome = .ready
        report.jid = jid.description
        report.timeToReady = watch.now.monotonic - began.monotonic
        report.add(.bind, .ok, [jid.description], took: elapsed(), ["jid": .string(jid.description)])
        ask(features)
    }

    func failed(_ fault: ClientFault) {
        // A question of a session that is ready does not undo it.
        guard report.outcome == .failed else {
            if report.outcome == .ready { giveUpQuestions(fault.reason) }
            return settle(by: .client)
        }
        noteSignatures()
        switch fault.step {
        case .stream, .open: fail(.stream, fault.reason)
        case .startTLS: fail(.startTLS, fault.reason)
        case .tls: fail(.tls, fault.reason)
        case .mechanisms: fail(.offer, fault.reason)
        case .login: failLogin(fault)
        case .bind, .session: fail(.bind, fault.reason)
        }
        settle(by: fault.code == .broken ? .server : .client)
    }

    private func failLogin(_ fault: ClientFault) {
        let signatures = connection?.session.signatures
        switch fault.code {
        case .altered:
            let isVersion = signatures?.version == .altered
            watch.blame(
                isVersion ? .tlsVersionAltered : .mechanismsAltered,
                at: .sasl,
                fault.reason,
                side: .network
            )
            report.add(.downgrade, .failed, [fault.reason])
        case .unproven: watch.blame(.serverNotProven, at: .sasl, fault.reason)
        case .given: watch.blame(.clientAborted, at: .sasl, fault.reason)
        case .refused, .broken, .silent: break
        }
        fail(.login, "\(choice.map { "\($0.words): " } ?? "")\(fault.reason)")
    }
}
