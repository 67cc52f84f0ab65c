public import TapCore

/// The client of SASL EXTERNAL (RFC 4422 appendix A, XEP-0178): who it is was shown in TLS; it names whom to act as.
public struct ExternalClient: SASLExchange {
    private enum State { case initial, sent, finished }

    private let names: SASLIdentity
    private var state = State.initial

    /// Sends the authorization identity, or nothing if there is none.
    public init(identity: SASLIdentity) { names = identity }

    /// `EXTERNAL`.
    public var mechanism: String { "EXTERNAL" }

    /// The names that were given.
    public var identity: SASLIdentity? { names }

    /// Sends the name, then takes the server's success.
    public mutating func step(_ incoming: [UInt8]?) -> SASLStep {
        switch state {
        case .initial where incoming?.isEmpty ?? true:
            let name = names.authorization ?? ""
            guard !name.utf8.contains(0) else { break }
            state = .sent
            return .send(Array(name.utf8))
        case .sent where incoming?.isEmpty ?? true:
            state = .finished
            return .done(nil)
        case .initial, .sent, .finished: break
        }
        state = .finished
        return .failed(.malformedRequest, text: "unexpected message from the server: EXTERNAL has none")
    }
}
