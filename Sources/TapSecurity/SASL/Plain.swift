package import TapCore

/// The client side of a mechanism with a single message, to which the server responds with success.
private struct SingleMessage {
    private enum State { case initial, sent, finished }

    private var state = State.initial

    /// Sends `message`, which is nil if the names or the password cannot be sent, then handles the success.
    mutating func step(_ incoming: [UInt8]?, of mechanism: String, _ message: () -> String?) -> SASLStep {
        let state = self.state
        self.state = .finished
        switch state {
        case .initial where incoming?.isEmpty ?? true:
            guard let message = message() else {
                let message = "the user name or the password cannot be sent with \(mechanism)"
                return .failed(.malformedRequest, text: message)
            }
            self.state = .sent
            return .send(Array(message.utf8))
        case .sent where incoming?.isEmpty ?? true: return .done(nil)
        case .initial, .sent, .finished:
            return .failed(.malformedRequest, text: "unexpected message from the server: \(mechanism) has none")
        }
    }
}

/// The client side of SASL PLAIN (RFC 4616): one message with names and password.
package struct PlainClient: SASLExchange {
    private let names: SASLIdentity
    private let password: String
    private var exchange = SingleMessage()

    /// Creates the client side of an exchange.
    package init(identity: SASLIdentity, password: String) {
        self.names = identity
        self.password = password
    }

    /// `PLAIN`.
    package var mechanism: String { "PLAIN" }

    /// The names to send.
    package var identity: SASLIdentity? { names }

    /// Sends the message, then handles the server's success.
    package mutating func step(_ incoming: [UInt8]?) -> SASLStep {
        let (names, password) = (names, password)
        return exchange.step(incoming, of: mechanism) {
            let fields = [names.authorization ?? "", names.authentication, password]
            guard !fields.contains(where: { $0.utf8.contains(0) }), !names.authentication.isEmpty,
                let name = SASLprep.prepare(names.authentication), let word = SASLprep.prepare(password),
                !name.isEmpty, !word.isEmpty
            else { return nil }
            return "\(fields[0])\0\(name)\0\(word)"
        }
    }
}

/// The client side of SASL EXTERNAL (RFC 4422 appendix A, XEP-0178): TLS authenticates the client, the message contains
/// only the authorization identity.
package struct ExternalClient: SASLExchange {
    private let names: SASLIdentity
    private var exchange = SingleMessage()

    /// Creates an exchange that sends the authorization identity, or an empty message if there is none.
    package init(identity: SASLIdentity) { names = identity }

    /// `EXTERNAL`.
    package var mechanism: String { "EXTERNAL" }

    /// The names of the login.
    package var identity: SASLIdentity? { names }

    /// Sends the authorization identity, then handles the server's success.
    package mutating func step(_ incoming: [UInt8]?) -> SASLStep {
        let name = names.authorization ?? ""
        return exchange.step(incoming, of: mechanism) { name.utf8.contains(0) ? nil : name }
    }
}

/// The server side of SASL PLAIN.
package struct PlainServer: SASLExchange {
    private enum State { case waiting, finished }

    private let verify: @Sendable (SASLIdentity, String) -> Bool
    private var state = State.waiting

    /// The authenticated names; nil until then.
    package private(set) var identity: SASLIdentity?

    /// The password, once it is verified.
    package private(set) var learned: LearnedSecret?

    /// - Parameter verify: Returns whether a user name has this password; both are prepared by SASLprep. The caller
    ///   decides whether the user may act as the authorization identity in ``identity``.
    package init(verify: @escaping @Sendable (SASLIdentity, String) -> Bool) {
        self.verify = verify
    }

    /// `PLAIN`.
    package var mechanism: String { "PLAIN" }

    /// Whether the next step verifies a password, which may include hashing it.
    package var mayTakeLong: Bool { state == .waiting }

    /// Sends an empty challenge if the client sent no initial response, then verifies the message.
    package mutating func step(_ incoming: [UInt8]?) -> SASLStep {
        guard state == .waiting else {
            return .failed(.malformedRequest, text: "the exchange is over")
        }
        guard let incoming else { return .send([]) }
        state = .finished
        let fields = incoming.split(separator: 0, omittingEmptySubsequences: false)
        guard fields.count == 3 else {
            return .failed(.malformedRequest, text: "PLAIN has two NUL bytes, this message \(fields.count - 1)")
        }
        let texts = fields.map { String(validating: $0, as: UTF8.self) }
        guard let authorization = texts[0], let name = texts[1].flatMap(SASLprep.prepare), !name.isEmpty,
            let password = texts[2].flatMap(SASLprep.prepare), !password.isEmpty
        else {
            return .failed(.malformedRequest, text: "a field of the message is empty or not allowed in PLAIN")
        }
        let names = SASLIdentity(
            authentication: name,
            authorization: authorization.isEmpty ? nil : authorization
        )
        guard self.verify(names, password) else {
            return .failed(.notAuthorized, text: "wrong user name or password")
        }
        self.identity = names
        learned = .password(password)
        return .done(nil)
    }
}
