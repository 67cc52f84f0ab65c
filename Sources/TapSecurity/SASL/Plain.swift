public import TapCore

/// The client of SASL PLAIN (RFC 4616): one message with the names and the password.
public struct PlainClient: SASLExchange {
    private enum State { case initial, sent, finished }

    private let names: SASLIdentity
    private let password: String
    private var state = State.initial

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
        switch state {
        case .initial where incoming?.isEmpty ?? true:
            let fields = [self.names.authorization ?? "", self.names.authentication, self.password]
            guard !fields.contains(where: { $0.utf8.contains(0) }), !names.authentication.isEmpty,
                let name = SASLprep.prepare(names.authentication), let word = SASLprep.prepare(password),
                !name.isEmpty, !word.isEmpty
            else {
                state = .finished
                return .failed(.malformedRequest, text: "the user name or the password cannot be sent with PLAIN")
            }
            state = .sent
            return .send(Array("\(fields[0])\0\(name)\0\(word)".utf8))
        case .sent where incoming?.isEmpty ?? true:
            state = .finished
            return .done(nil)
        case .initial, .sent, .finished:
            state = .finished
            return .failed(.malformedRequest, text: "unexpected message from the server: PLAIN has none")
        }
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
