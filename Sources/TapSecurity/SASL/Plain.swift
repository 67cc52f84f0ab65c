public import TapCore

/// The client of a mechanism with one message, which the server answers with its success.
private struct SingleMessage {
    private enum State { case initial, sent, finished }

    private var state = State.initial

    /// Sends `message`, which is nil if the names or the password cannot be sent; then takes the success.
    mutating func step(_ incoming: [UInt8]?, of mechanism: String, _ message: () -> String?) -> SASLStep {
        let state = self.state
        self.state = .finished
        switch state {
        case .initial where incoming?.isEmpty ?? true:
            guard let message = message() else {
                let words = "the user name or the password cannot be sent with \(mechanism)"
                return .failed(.malformedRequest, text: words)
            }
            self.state = .sent
            return .send(Array(message.utf8))
        case .sent where incoming?.isEmpty ?? true: return .done(nil)
        case .initial, .sent, .finished:
            return .failed(.malformedRequest, text: "unexpected message from the server: \(mechanism) has none")
        }
    }
}

/// The client of SASL PLAIN (RFC 4616): one message with the names and the password.
public struct PlainClient: SASLExchange {
    private let names: SASLIdentity
    private let password: String
    private var exchange = SingleMessage()

    /// Takes what to send.
    public init(identity: SASLIdentity, password: String) {
        self.names = identity
        self.password = password
    }

    /// `PLAIN`.
    public var mechanism: String { "PLAIN" }

    /// The names that are sent.
    public var identity: SASLIdentity? { names }

    /// Sends the message, then takes the server's success.
    public mutating func step(_ incoming: [UInt8]?) -> SASLStep {
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

/// The client of SASL EXTERNAL (RFC 4422 appendix A, XEP-0178): who it is was shown in TLS; it names whom to act as.
public struct ExternalClient: SASLExchange {
    private let names: SASLIdentity
    private var exchange = SingleMessage()

    /// Sends the authorization identity, or nothing if there is none.
    public init(identity: SASLIdentity) { names = identity }

    /// `EXTERNAL`.
    public var mechanism: String { "EXTERNAL" }

    /// The names that were given.
    public var identity: SASLIdentity? { names }

    /// Sends the name, then takes the server's success.
    public mutating func step(_ incoming: [UInt8]?) -> SASLStep {
        let name = names.authorization ?? ""
        return exchange.step(incoming, of: mechanism) { name.utf8.contains(0) ? nil : name }
    }
}

/// The server of SASL PLAIN.
public struct PlainServer: SASLExchange {
    private enum State { case waiting, finished }

    private let verify: @Sendable (SASLIdentity, String) -> Bool
    private var state = State.waiting

    /// Who was proven to be there.
    public private(set) var identity: SASLIdentity?

    /// The password, once it has proven to be right.
    public private(set) var learned: LearnedSecret?

    /// - Parameter verify: Says whether the name has this password; both come prepared by SASLprep. Whether the one name
    ///   may act as the other is left to the caller, who finds both in ``identity``.
    public init(verify: @escaping @Sendable (SASLIdentity, String) -> Bool) {
        self.verify = verify
    }

    /// `PLAIN`.
    public var mechanism: String { "PLAIN" }

    /// To check the password may be to hash it.
    public var mayTakeLong: Bool { state == .waiting }

    /// Requests the message if there was no initial response, and checks it.
    public mutating func step(_ incoming: [UInt8]?) -> SASLStep {
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
