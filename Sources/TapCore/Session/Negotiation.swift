internal import TapRecord
import XMPPCore

/// How far a session has come. Each case holds what belongs to it alone; every change of case is made in this file.
///
/// An event that does not fit the case is ignored: what a peer says out of turn changes nothing here.
enum Negotiation {
    /// The connection to the server is not up yet: what the client sends waits.
    case awaitingServer(Login)
    /// Streams are being opened, features announced.
    case opening(Login)
    /// The initiator has asked for TLS.
    case startingTLS(Login)
    /// Authentication is under way.
    case authenticating(Login)
    /// Authentication has succeeded; the initiator owes a new stream header. `endedEpoch` is the client's stream in which
    /// xmpptap ended its login; nil where the server did.
    case restarting(endedEpoch: Int?)
    /// Authenticated, features known; resource binding or resumption comes next.
    case binding
    /// Stanzas flow.
    case open
    /// One side has closed its stream.
    case closing
    /// Nothing is decoded: TLS passed through, or no XMPP.
    case opaque(PassedTLS?, isConnected: Bool)
    /// The session is answered with a stream error as soon as the client's header has come.
    case refusing(StreamErrorCondition, String)
    /// The driver has been asked to close both legs.
    case finished
    /// The last record has been made.
    case closed

    /// What counts until authentication has succeeded.
    struct Login {
        var tls: TLS
        /// The login that xmpptap performs itself; nil without `--accounts`.
        let bridged: BridgedLogin?
    }

    /// How far TLS has come that xmpptap terminates.
    enum TLS {
        /// It has not begun; on one leg alone as ``AsymmetricTLS`` says, on both together where that is nil.
        case clear(AsymmetricTLS?)
        /// A handshake is under way.
        case handshake(AsymmetricTLS?)
        /// What comes is what TLS carried.
        case inside
    }

    /// - Parameter isConnected: There is no connection to wait for, as in a recording.
    init(_ options: SessionOptions, isConnected: Bool) {
        let login = Login(tls: .clear(AsymmetricTLS(options)), bridged: options.authenticator.map(BridgedLogin.init))
        self = isConnected ? .opening(login) : .awaitingServer(login)
    }

    // MARK: What is known

    /// Nil once authentication has succeeded.
    private var login: Login? {
        get {
            switch self {
            case .awaitingServer(let login), .opening(let login), .startingTLS(let login), .authenticating(let login):
                login
            case .restarting, .binding, .open, .closing, .opaque, .refusing, .finished, .closed: nil
            }
        }
        set {
            guard let newValue else { return }
            switch self {
            case .awaitingServer: self = .awaitingServer(newValue)
            case .opening: self = .opening(newValue)
            case .startingTLS: self = .startingTLS(newValue)
            case .authenticating: self = .authenticating(newValue)
            case .restarting, .binding, .open, .closing, .opaque, .refusing, .finished, .closed: break
            }
        }
    }

    /// The login that xmpptap performs itself, until authentication has succeeded.
    var bridged: BridgedLogin? { login?.bridged }

    /// TLS that does not begin on both legs together, until it has begun.
    var asymmetric: AsymmetricTLS? {
        get {
            switch login?.tls {
            case .clear(let asymmetric), .handshake(let asymmetric): asymmetric
            case .inside, nil: nil
            }
        }
        set {
            switch login?.tls {
            case .clear: login?.tls = .clear(newValue)
            case .handshake: login?.tls = .handshake(newValue)
            case .inside, nil: break
            }
        }
    }

    var passedTLS: PassedTLS? { if case .opaque(let tls, _) = self { tls } else { nil } }

    var isOpening: Bool { if case .opening = self { true } else { false } }
    var isStartingTLS: Bool { if case .startingTLS = self { true } else { false } }
    var isBinding: Bool { if case .binding = self { true } else { false } }
    var isRefusing: Bool { if case .refusing = self { true } else { false } }
    var isClosed: Bool { if case .closed = self { true } else { false } }

    /// Whether nothing is done any more but to close and to record.
    var isFinished: Bool {
        switch self {
        case .finished, .closed: true
        case .awaitingServer, .opening, .startingTLS, .authenticating, .restarting, .binding, .open, .closing, .opaque,
            .refusing:
            false
        }
    }

    /// Whether there is a server to talk to.
    var isConnected: Bool {
        switch self {
        case .awaitingServer, .refusing, .opaque(_, isConnected: false): false
        case .opening, .startingTLS, .authenticating, .restarting, .binding, .open, .closing, .opaque, .finished,
            .closed:
            true
        }
    }

    /// Whether the client's items wait for the connection to the server.
    var isAwaitingServer: Bool { if case .awaitingServer = self { true } else { false } }

    /// Whether TLS may still begin on the legs, and authentication has not succeeded.
    var isClear: Bool { if case .clear = login?.tls { true } else { false } }

    /// Whether the client has asked for TLS, and the server has not answered.
    var isConsentAwaited: Bool { isStartingTLS && isClear }

    /// Whether the initiator may open a new stream: after success, or ahead of it while authentication is under way.
    func mayRestart(_ direction: Direction, sendEpoch: Int, recvEpoch: Int) -> Bool {
        switch self {
        case .restarting, .authenticating: true
        case .binding: direction == .recv || sendEpoch <= recvEpoch
        case .awaitingServer, .opening, .startingTLS, .open, .closing, .opaque, .refusing, .finished, .closed: false
        }
    }

    // MARK: What happens

    mutating func connected() {
        switch self {
        case .awaitingServer(let login): self = .opening(login)
        case .opaque(let tls, _): self = .opaque(tls, isConnected: true)
        case .opening, .startingTLS, .authenticating, .restarting, .binding, .open, .closing, .refusing, .finished,
            .closed:
            break
        }
    }

    /// The initiator asks for TLS; false where there is nothing to wait for, since authentication has succeeded (RFC 6120
    /// §5.3.1).
    mutating func requestTLS() -> Bool {
        switch self {
        case .opening(let login), .startingTLS(let login), .authenticating(let login): self = .startingTLS(login)
        case .awaitingServer, .restarting, .binding, .open, .closing, .opaque, .refusing, .finished, .closed:
            return false
        }
        return true
    }

    /// The server declines TLS; false where nobody has asked for it.
    mutating func declineTLS() -> Bool {
        guard case .startingTLS(let login) = self else { return false }
        self = .opening(login)
        return true
    }

    mutating func beginHandshake() {
        guard case .clear(let asymmetric) = login?.tls else { return }
        login?.tls = .handshake(asymmetric)
    }

    /// TLS is up: streams begin anew in it, and with them the login.
    mutating func enterTLS() {
        guard let login else { return }
        login.bridged?.bridge.reset()
        self = .opening(Login(tls: .inside, bridged: login.bridged))
    }

    mutating func beginAuthentication() {
        if let login { self = .authenticating(login) }
    }

    /// It has failed: the initiator may try again.
    mutating func failAuthentication() {
        if let login { self = .opening(login) }
    }

    /// It has succeeded. SASL2 has no restart (XEP-0388 §2.4).
    mutating func authenticate(isSASL2: Bool) {
        guard let login else { return }
        self = isSASL2 ? .binding : .restarting(endedEpoch: login.bridged?.endedEpoch)
    }

    /// Features of the stream have come.
    mutating func takeFeatures() {
        if case .restarting = self { self = .binding }
    }

    /// Stanzas flow from now on; false where they did, or never will.
    mutating func open() -> Bool {
        switch self {
        case .awaitingServer, .opening, .startingTLS, .authenticating, .restarting, .binding: self = .open
        case .open, .closing, .opaque, .refusing, .finished, .closed: return false
        }
        return true
    }

    /// Stanzas were taken to flow, and a login comes.
    mutating func reopen() {
        if case .open = self { self = .opening(Login(tls: .clear(nil), bridged: nil)) }
    }

    mutating func closeStream() {
        if case .open = self { self = .closing }
    }

    /// Nothing is decoded from now on.
    mutating func turnOpaque(_ tls: PassedTLS?) { self = .opaque(tls, isConnected: isConnected) }

    /// The client's header is awaited, to answer it with a stream error.
    mutating func refuse(_ condition: StreamErrorCondition, _ text: String) { self = .refusing(condition, text) }

    /// The legs are closed; false where they were.
    mutating func finish() -> Bool {
        guard !isFinished else { return false }
        self = .finished
        return true
    }

    mutating func close() { self = .closed }
}

/// A login that xmpptap performs itself, with what the session keeps for it.
///
/// A class, so that an open session keeps nothing of it.
final class BridgedLogin {
    var bridge: SASLBridge
    /// A step of the login is done elsewhere: the namespace in which it is answered.
    var computing: String?
    /// The client waits for the features, which say what it may use.
    var awaitsFeatures = false
    /// The client's stream in which its login was ended here.
    var endedEpoch: Int?
    /// What the client of SASL2 asks for beside its login, as it goes on to the server.
    var inline: [UInt8] = []
    /// The names of its parts that are not relayed, until that is logged.
    var refusedInline: [String] = []
    /// Reads the login that xmpptap makes to the server.
    var ownLogin = SASLDecoder()

    init(_ authenticator: any Authenticator) { bridge = SASLBridge(authenticator) }
}
