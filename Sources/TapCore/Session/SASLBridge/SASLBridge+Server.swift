internal import TapRecord
import XMPPCore

// The proxy's own login to the server.
extension SASLBridge {
    /// The client is authenticated: the proxy logs in for it.
    ///
    /// - Parameters:
    ///   - data: For the client's success.
    ///   - learned: What its login revealed.
    mutating func logIn(
        _ identity: SASLIdentity,
        _ login: Login,
        _ data: [UInt8]?,
        knowing learned: LearnedSecret?
    ) -> [Act] {
        guard let offer else { return refuse(.temporaryAuthFailure, nil, login) }
        let user = identity.authentication
        // PLAIN without TLS, or to an unverified server, only if the client revealed its password too.
        let mayShow = login.mechanism == "PLAIN" || server != nil && isServerVerified
        let means = MechanismChoice.Means(
            mechanisms: account(user, login).map { authenticator.means(of: $0, knowing: learned) } ?? [],
            mayShowPassword: mayShow,
            hasCertificate: authenticator.hasCertificate
        )
        guard let choice = offer.choice(isSASL2: login.isSASL2, server: server, by: means) else {
            let list = offer.profile(isSASL2: login.isSASL2).server
            return [.remark(.noMechanism(list))]
                + refuse(.temporaryAuthFailure, "xmpptap cannot log in to the server", login, isTold: true)
        }
        // With a certificate a server may allow any authorization identity, but the client proved one name only.
        if choice.mechanism == "EXTERNAL", let name = identity.authorization, JID(name) != account(user, login) {
            return refuse(.invalidAuthzid, "the certificate of xmpptap is for \(user) only", login)
        }
        let signed = LoginOffer(
            mechanisms: offer.profile(isSASL2: login.isSASL2).server,
            bindingTypes: offer.serverTypes,
            tlsVersion: server?.version
        )
        var exchange = authenticator.clientExchange(
            choice.mechanism,
            identity,
            domain: login.domain,
            binding: choice.binding,
            signed,
            knowing: learned
        )
        guard case .send(let message)? = exchange?.step(nil), let exchange else {
            return refuse(.temporaryAuthFailure, "xmpptap cannot log in by \(choice.mechanism)", login)
        }
        var login = login
        login.user = user
        state = .server(exchange, login, data: data, isProven: false)
        return [.remark(.ownLogin(choice, user: user)), .begin(choice.mechanism, message)]
    }

    /// A challenge from the server; nil if it is for the client.
    mutating func serverSays(_ message: SASLMessage.Text) -> [Act]? {
        if let acts = outOfTurn() { return acts }
        guard case .server(let exchange, let login, let data, let isProven) = state else { return nil }
        guard !isProven, let bytes = Self.bytes(message) else {
            return giveUp(login, "the server's challenge is not base64, or unexpected", isServerAtFault: true)
        }
        var step = SlowStep(exchange, bytes)
        guard !exchange.mayTakeLong else {
            state = .computing(step, login, .server(data: data))
            return [.compute]
        }
        step.perform()
        return serverStepped(step, login, data)
    }

    mutating func serverStepped(_ step: SlowStep, _ login: Login, _ data: [UInt8]?) -> [Act] {
        switch step.outcome {
        case .send(let response):
            state = .server(step.exchange, login, data: data, isProven: false)
            return [.respond(response)]
        case .done:
            // The server's signature was in a challenge, so its success has none.
            state = .server(step.exchange, login, data: data, isProven: true)
            return [.respond([])]
        case .failed(_, let text): return giveUp(login, text, isServerAtFault: step.exchange.isPeerAtFault)
        case nil: return giveUp(login, "internal error: the SASL step was not performed", isServerAtFault: false)
        }
    }

    /// The server reports success, or requires another task first (XEP-0388); nil if that is for the
    /// client.
    mutating func serverSucceeds(_ message: SASLMessage.Text, isOver: Bool = true) -> [Act]? {
        if let acts = outOfTurn() { return acts }
        guard case .server(var exchange, let login, let data, let isProven) = state else {
            guard owedFailures > 0 else { return nil }
            return distrust("the server accepted a login that was aborted", nil)
        }
        if !isProven {
            // A success instead of the server's first message would make the proxy hash a password here, as
            // often as the server likes, and proves nothing.
            guard !exchange.mayTakeLong else {
                return distrust("the server accepted the login without authenticating itself", login.user)
            }
            guard message != .malformed, case .done = exchange.step(Self.bytes(message)) else {
                return distrust("the server did not prove that it knows the password", login.user)
            }
        }
        state = isOver ? .idle : .passing
        return [isOver ? .succeed(data) : .proceed(data)]
    }

    /// The server reports a failure; nil if it is for the client, empty if nobody may learn of
    /// it.
    mutating func serverFails() -> [Act]? {
        if owedFailures > 0 {
            owedFailures -= 1
            return []
        }
        if let acts = outOfTurn() { return acts }
        guard case .server(_, let login, _, _) = state else {
            if case .passing = state { state = .idle }
            return nil
        }
        state = .idle
        failures += 1
        return [.fail, .remark(.ownLoginRefused(user: login.user ?? ""))]
    }

    private mutating func giveUp(_ login: Login, _ words: String, isServerAtFault: Bool) -> [Act] {
        state = .idle
        failures += 1
        owedFailures += 1
        return [
            .abort, .remark(.ownLoginFailed(words, user: login.user ?? "", isServerAtFault: isServerAtFault)),
            .refuse(.temporaryAuthFailure, "xmpptap could not log in to the server"),
        ]
    }

    /// The server answers a login that it has not received: the client would take it for the answer to its own login. Nil if
    /// the answer is due.
    private mutating func outOfTurn() -> [Act]? {
        switch state {
        case .asked(let login), .client(_, let login), .computing(_, let login, _):
            distrust("unsolicited SASL response from the server", login.user)
        case .idle where offer != nil: distrust("unsolicited SASL response from the server", nil)
        case .idle, .passing, .server: nil
        }
    }

    private mutating func distrust(_ words: String, _ user: String?) -> [Act] {
        state = .idle
        return [
            .remark(.ownLoginFailed(words, user: user ?? "", isServerAtFault: true)),
            .end(.notAuthorized, "The server did not authenticate itself.", isServerAtFault: true),
        ]
    }
}
