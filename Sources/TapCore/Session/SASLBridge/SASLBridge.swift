internal import TapRecord
import XMPPCore

/// One session's login, performed by xmpptap: first as a server for the client, then as a client for the server.
///
/// The client is authenticated completely first, but gets its success only after the server has sent xmpptap a success.
/// Inputs are the messages of the streams, and outputs are ``Action``s; neither XML nor time is handled here.
struct SASLBridge {
    /// An action for the caller to perform, in order.
    enum Action: Equatable {
        /// Relay the client's element, because xmpptap does not perform this login.
        case passOn
        case challenge([UInt8])
        /// Send a failure to the client.
        case refuse(SASLCondition, String?)
        /// Begin xmpptap's own login to the server, with this mechanism and message.
        case begin(String, [UInt8])
        /// Begin the client's login at the server on its behalf, with the message that it has sent to xmpptap.
        case beginForClient(String, [UInt8])
        /// Answer the server's challenge in xmpptap's own login.
        case respond([UInt8])
        /// Abort xmpptap's own login.
        case abort
        /// Send the client a success with this data, because the server has sent a success.
        case succeed([UInt8]?)
        /// Tell the client that the server requires a further task before the success (XEP-0388 §2.6), with this data.
        case proceed([UInt8]?)
        /// Relay the server's failure to the client.
        case fail
        /// Close the session.
        case end(StreamErrorCondition, String, isServerAtFault: Bool)
        /// Compute the step ``SASLBridge/work`` on another thread.
        case compute
        case remark(Remark)
    }

    /// Events to log.
    enum Remark: Equatable {
        /// The account is not in the accounts file; `isBound` if the login uses channel binding.
        case unknownAccount(user: String, isBound: Bool)
        /// The client uses a mechanism that was not offered.
        case foreignMechanism(String)
        /// xmpptap's own login begins.
        case ownLogin(MechanismChoice, user: String)
        case ownLoginRefused(user: String)
        /// xmpptap aborted its own login; `isServerAtFault` if the server violated the mechanism or did not prove that
        /// it knows the password.
        case ownLoginFailed(String, user: String, isServerAtFault: Bool)
        case noMechanism([String])
        /// The account has stored keys only for mechanisms other than the client's.
        case noKeys(of: String, has: [String], user: String)
        case clientRefused(String, user: String?)
    }

    /// A login that a client has begun.
    struct Login {
        var mechanism: String
        var isSASL2: Bool
        var domain: String
        var user: String?
    }

    enum State {
        case idle
        /// xmpptap waits for the client's first message, which contains the user name.
        case asked(Login)
        case client(any SASLExchange, Login)
        /// xmpptap logs in to the server; `data` is for the client's success.
        case server(any SASLExchange, Login, data: [UInt8]?, isProven: Bool)
        /// Another thread computes a step of the client's login or of xmpptap's login.
        case computing(SlowStep, Login, Side)
        /// xmpptap does not perform the pending login.
        case passing
    }

    /// The login to which a step belongs.
    enum Side {
        case client
        /// xmpptap's own login; `data` is for the client's success.
        case server(data: [UInt8]?)
    }

    /// The number of failures after which xmpptap closes the session (RFC 6120 §6.4.5).
    private static let maximumFailures = 5

    let authenticator: any Authenticator
    /// The TLS connections of the two legs; nil without TLS.
    var client: SecuredLeg?
    var server: SecuredLeg?
    /// Whether the server's certificate is verified.
    var isServerVerified = true
    /// The last offer to the client; nil if xmpptap does not perform the login.
    var offer: BridgedOffer?
    private var state = State.idle
    private var failures = 0
    /// The number of failures that the server will still send, as answers to aborted logins.
    private var owedFailures = 0

    init(_ authenticator: any Authenticator) { self.authenticator = authenticator }

    /// Whether xmpptap performs the pending login, or the next one.
    var performsLogin: Bool {
        if case .passing = state { return false }
        return offer != nil
    }

    /// Whether xmpptap's own login is in progress.
    var isLoggingIn: Bool {
        switch state {
        case .server, .computing(_, _, .server): true
        case .idle, .asked, .client, .computing, .passing: false
        }
    }

    /// The step that the caller must compute; nil if there is none.
    var work: SlowStep? {
        if case .computing(let work, _, _) = state { return work }
        return nil
    }

    /// Discards the offer made before TLS.
    mutating func reset() {
        offer = nil
        state = .idle
        owedFailures = 0
    }

    // MARK: The client

    /// Begins a login that the client has requested.
    ///
    /// - Parameter user: The client's user name, if its first message contains it.
    mutating func begin(
        _ mechanism: String,
        isSASL2: Bool,
        _ message: SASLMessage.Text,
        user: String?,
        domain: String?
    ) -> [Action] {
        if work != nil { return [Self.impatience] }
        state = .passing
        guard let offer, let domain else { return [.passOn] }
        guard offer.profile(isSASL2: isSASL2).client.contains(mechanism) else {
            return [.remark(.foreignMechanism(mechanism)), .passOn]
        }
        let login = Login(mechanism: mechanism, isSASL2: isSASL2, domain: domain, user: user)
        guard case .none = message else { return first(message, login, passing: [.passOn]) }
        // If the client sent no initial response, request it with an empty challenge.
        state = .asked(login)
        return [.challenge([])]
    }

    /// Handles the client's first message. The user name in it decides whether xmpptap performs the login.
    private mutating func first(_ message: SASLMessage.Text, _ login: Login, passing: [Action]) -> [Action] {
        guard let bytes = Self.bytes(message) else { return refuse(.incorrectEncoding, "not base64", login) }
        if let user = login.user {
            guard let account = account(user, login), let mechanisms = authenticator.mechanisms(of: account) else {
                let isBound = login.mechanism.hasSuffix(BridgedOffer.plus)
                let remark = Action.remark(.unknownAccount(user: user, isBound: isBound))
                guard isBound else {
                    state = .passing
                    return [remark] + passing
                }
                return [remark] + refuse(.notAuthorized, nil, login, isReported: true)
            }
            guard mechanisms.contains(BridgedOffer.base(of: login.mechanism)) else {
                let remark = Action.remark(.noKeys(of: login.mechanism, has: mechanisms, user: user))
                return [remark] + refuse(.invalidMechanism, nil, login, isReported: true)
            }
        }
        guard let offer else { return passing }
        let leg = LoginLeg(
            offer: LoginOffer(
                mechanisms: offer.profile(isSASL2: login.isSASL2).client,
                bindingTypes: offer.clientTypes,
                tlsVersion: client?.version
            ),
            bindings: client?.bindings ?? []
        )
        guard let exchange = authenticator.serverExchange(login.mechanism, domain: login.domain, leg) else {
            return refuse(.temporaryAuthFailure, "xmpptap does not support \(login.mechanism)", login)
        }
        return step(exchange, login, bytes)
    }

    /// Handles the client's response to a challenge.
    ///
    /// - Parameter user: The client's user name, if its messages contain it.
    mutating func receiveFromClient(_ message: SASLMessage.Text, user: String?) -> [Action] {
        switch state {
        case .asked(var login):
            login.user = user
            let bytes = Self.bytes(message) ?? []
            return first(message == .none ? .empty : message, login, passing: [.beginForClient(login.mechanism, bytes)])
        case .client(let exchange, let login):
            guard let bytes = Self.bytes(message) else {
                return refuse(.incorrectEncoding, "not base64", login)
            }
            return step(exchange, login, bytes)
        case .idle where offer != nil: return [.refuse(.malformedRequest, "unsolicited response")]
        case .computing: return [Self.impatience]
        case .idle, .passing, .server: return [.passOn]
        }
    }

    mutating func clientAborts() -> [Action] {
        switch state {
        case .asked, .client:
            state = .idle
            return [.refuse(.aborted, nil)]
        case .computing: return [Self.impatience]
        case .idle, .passing, .server: return [.passOn]
        }
    }

    /// Returns the JID of a user name; nil if the name is not valid.
    func account(_ user: String, _ login: Login) -> JID? { try? JID(local: user, domain: login.domain) }

    private mutating func step(_ exchange: any SASLExchange, _ login: Login, _ message: [UInt8]) -> [Action] {
        var step = SlowStep(exchange, message)
        guard !exchange.mayTakeLong else {
            state = .computing(step, login, .client)
            return [.compute]
        }
        step.perform()
        return finish(step, login)
    }

    /// Continues with a step that another thread has computed; returns no actions if the login was aborted meanwhile.
    mutating func computed(_ step: SlowStep) -> [Action] {
        guard case .computing(_, let login, let side) = state else { return [] }
        switch side {
        case .client: return finish(step, login)
        case .server(let data): return serverStepped(step, login, data)
        }
    }

    private mutating func finish(_ step: SlowStep, _ login: Login) -> [Action] {
        switch step.outcome {
        case .send(let challenge):
            state = .client(step.exchange, login)
            return [.challenge(challenge)]
        case .done(let data):
            guard let identity = step.exchange.identity else { return refuse(.notAuthorized, nil, login) }
            return logIn(identity, login, data, knowing: step.exchange.learned)
        case .failed(let condition, let text): return refuse(condition, text, login)
        case nil: return refuse(.temporaryAuthFailure, nil, login)
        }
    }

    /// The action if the client sends a message before the answer to its last one. In cut-through mode, that message
    /// cannot be held.
    private static let impatience = Action.end(
        .policyViolation,
        "The client must wait for the answer to its login.",
        isServerAtFault: false
    )

    /// Refuses the client's login, and closes the session after too many failures.
    ///
    /// - Parameter isReported: Whether the reason is logged already.
    mutating func refuse(
        _ condition: SASLCondition,
        _ text: String?,
        _ login: Login,
        isReported: Bool = false
    ) -> [Action] {
        state = .idle
        failures += 1
        var actions: [Action] = [.refuse(condition, text)]
        if !isReported { actions.append(.remark(.clientRefused(text ?? condition.description, user: login.user))) }
        guard failures >= Self.maximumFailures else { return actions }
        return actions + [.end(.policyViolation, "\(failures) logins have failed.", isServerAtFault: false)]
    }

    /// Returns the bytes of a message, empty if the message is missing; nil if it is malformed.
    static func bytes(_ message: SASLMessage.Text) -> [UInt8]? {
        switch message {
        case .none, .empty: []
        case .bytes(let bytes): bytes
        case .placeholder, .malformed: nil
        }
    }
}

// xmpptap's own login to the server.
extension SASLBridge {
    /// Begins xmpptap's own login, because the client is authenticated.
    ///
    /// - Parameters:
    ///   - data: The data for the client's success.
    ///   - learned: The secret that the client's login revealed.
    private mutating func logIn(
        _ identity: SASLIdentity,
        _ login: Login,
        _ data: [UInt8]?,
        knowing learned: LearnedSecret?
    ) -> [Action] {
        guard let offer else { return refuse(.temporaryAuthFailure, nil, login) }
        let user = identity.authentication
        // Without TLS, or to an unverified server, xmpptap sends PLAIN only if the client revealed its password too.
        let mayShow = login.mechanism == "PLAIN" || server != nil && isServerVerified
        let means = MechanismChoice.Means(
            mechanisms: account(user, login).map { authenticator.means(of: $0, knowing: learned) } ?? [],
            mayShowPassword: mayShow,
            hasCertificate: authenticator.hasCertificate
        )
        guard let choice = offer.choice(isSASL2: login.isSASL2, server: server, by: means) else {
            let list = offer.profile(isSASL2: login.isSASL2).server
            return [.remark(.noMechanism(list))]
                + refuse(.temporaryAuthFailure, "xmpptap cannot log in to the server", login, isReported: true)
        }
        // With a certificate, a server may allow any authorization identity, but the client has proved only one name.
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

    /// Handles a challenge from the server; returns nil if the challenge is for the client.
    mutating func receiveFromServer(_ message: SASLMessage.Text) -> [Action]? {
        if let actions = rejectUnsolicited() { return actions }
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

    private mutating func serverStepped(_ step: SlowStep, _ login: Login, _ data: [UInt8]?) -> [Action] {
        switch step.outcome {
        case .send(let response):
            state = .server(step.exchange, login, data: data, isProven: false)
            return [.respond(response)]
        case .done:
            // The server sent its signature in a challenge, so its success contains none.
            state = .server(step.exchange, login, data: data, isProven: true)
            return [.respond([])]
        case .failed(_, let text): return giveUp(login, text, isServerAtFault: step.exchange.isPeerAtFault)
        case nil: return giveUp(login, "internal error: the SASL step was not performed", isServerAtFault: false)
        }
    }

    /// Handles the server's success, or its request for a further task (XEP-0388); returns nil if the message is for
    /// the client.
    mutating func serverSucceeds(_ message: SASLMessage.Text, isOver: Bool = true) -> [Action]? {
        if let actions = rejectUnsolicited() { return actions }
        guard case .server(var exchange, let login, let data, let isProven) = state else {
            guard owedFailures > 0 else { return nil }
            return rejectServer("the server accepted a login that was aborted", nil)
        }
        if !isProven {
            // If the server sends a success before its first challenge, it has proved nothing, and processing the data
            // here would hash a password, as often as the server repeats it.
            guard !exchange.mayTakeLong else {
                return rejectServer("the server accepted the login without authenticating itself", login.user)
            }
            guard message != .malformed, case .done = exchange.step(Self.bytes(message)) else {
                return rejectServer("the server did not prove that it knows the password", login.user)
            }
        }
        state = isOver ? .idle : .passing
        return [isOver ? .succeed(data) : .proceed(data)]
    }

    /// Handles the server's failure; returns nil if it is for the client, and no actions if it answers an aborted
    /// login.
    mutating func serverFails() -> [Action]? {
        if owedFailures > 0 {
            owedFailures -= 1
            return []
        }
        if let actions = rejectUnsolicited() { return actions }
        guard case .server(_, let login, _, _) = state else {
            if case .passing = state { state = .idle }
            return nil
        }
        state = .idle
        failures += 1
        return [.fail, .remark(.ownLoginRefused(user: login.user ?? ""))]
    }

    private mutating func giveUp(_ login: Login, _ explanation: String, isServerAtFault: Bool) -> [Action] {
        state = .idle
        failures += 1
        owedFailures += 1
        return [
            .abort, .remark(.ownLoginFailed(explanation, user: login.user ?? "", isServerAtFault: isServerAtFault)),
            .refuse(.temporaryAuthFailure, "xmpptap could not log in to the server"),
        ]
    }

    /// Closes the session if the server answers a login that it has not received, because the client would take that
    /// for the answer to its own login. Returns nil if the server's message is expected.
    private mutating func rejectUnsolicited() -> [Action]? {
        switch state {
        case .asked(let login), .client(_, let login), .computing(_, let login, _):
            rejectServer("unsolicited SASL response from the server", login.user)
        case .idle where offer != nil: rejectServer("unsolicited SASL response from the server", nil)
        case .idle, .passing, .server: nil
        }
    }

    private mutating func rejectServer(_ explanation: String, _ user: String?) -> [Action] {
        state = .idle
        return [
            .remark(.ownLoginFailed(explanation, user: user ?? "", isServerAtFault: true)),
            .end(.notAuthorized, "The server did not authenticate itself.", isServerAtFault: true),
        ]
    }
}

/// A step of a login that hashes a password many times, computed on a thread that does not delay other sessions.
package struct SlowStep: Sendable {
    /// The exchange, with its state after ``perform()``.
    private(set) var exchange: any SASLExchange
    private let message: [UInt8]
    /// The result; nil before ``perform()``.
    private(set) var outcome: SASLStep?

    init(_ exchange: any SASLExchange, _ message: [UInt8]) {
        self.exchange = exchange
        self.message = message
    }

    /// Performs the step on any thread, for up to some hundred milliseconds. A second call does nothing.
    package mutating func perform() {
        if outcome == nil { outcome = exchange.step(message) }
    }
}
