internal import TapRecord
import XMPPCore

/// The progress of a session's negotiation. Each case holds the state that belongs to it alone; all transitions are in
/// this file.
///
/// An event that does not fit the case is ignored: unexpected items of a peer change nothing here.
enum Negotiation {
    /// The connection to the server is not established: the client's items wait.
    case awaitingServer(Login)
    /// Streams are being opened, features announced.
    case opening(Login)
    /// The initiator has requested TLS.
    case startingTLS(Login)
    /// Authentication is in progress.
    case authenticating(Login)
    /// Authentication has succeeded; the initiator must send a new stream header. `endedEpoch` is the client's stream
    /// in which xmpptap ended its login; nil if the server ended it.
    case restarting(endedEpoch: Int?)
    /// Authenticated, features known; resource binding or resumption follows.
    case binding
    /// Stanzas flow.
    case open
    /// One side has closed its stream.
    case closing
    /// Nothing is decoded: TLS passed through, or not XMPP.
    case opaque(PassedTLS?, isConnected: Bool)
    /// The session is refused with a stream error when the client's header arrives.
    case refusing(StreamErrorCondition, String)
    /// The driver has been told to close both legs.
    case finished
    /// The last record has been made.
    case closed

    /// State until authentication has succeeded.
    struct Login {
        var tls: TLS
        /// The login that xmpptap performs itself; nil without `--accounts`.
        let bridged: BridgedLogin?
    }

    /// The progress of TLS that xmpptap terminates.
    enum TLS {
        /// It has not begun; on one leg only if there is an ``AsymmetricTLS``, else on both together.
        case clear(AsymmetricTLS?)
        /// A handshake is in progress.
        case handshake(AsymmetricTLS?)
        /// Input is the plaintext of TLS.
        case inside
    }

    /// - Parameter isConnected: The server is connected already, as in a recording.
    init(_ options: SessionOptions, isConnected: Bool) {
        let login = Login(tls: .clear(AsymmetricTLS(options)), bridged: options.authenticator.map(BridgedLogin.init))
        self = isConnected ? .opening(login) : .awaitingServer(login)
    }

    // MARK: State

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

    /// Whether only closing and recording remain.
    var isFinished: Bool {
        switch self {
        case .finished, .closed: true
        case .awaitingServer, .opening, .startingTLS, .authenticating, .restarting, .binding, .open, .closing, .opaque,
            .refusing:
            false
        }
    }

    /// Whether a server is connected.
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

    /// Whether the client has requested TLS, and the server has not answered.
    var isConsentAwaited: Bool { isStartingTLS && isClear }

    /// Whether a request for TLS is answered: false before the connection to the server, and once authentication has
    /// succeeded (RFC 6120 §5.3.1).
    var mayRequestTLS: Bool { login != nil && !isAwaitingServer }

    /// Whether the initiator may open a new stream: after success, or in advance while authentication is in progress.
    func mayRestart(_ direction: Direction, sendEpoch: Int, recvEpoch: Int) -> Bool {
        switch self {
        case .restarting, .authenticating: true
        case .binding: direction == .recv || sendEpoch <= recvEpoch
        case .awaitingServer, .opening, .startingTLS, .open, .closing, .opaque, .refusing, .finished, .closed: false
        }
    }

    // MARK: Events

    mutating func connected() {
        switch self {
        case .awaitingServer(let login): self = .opening(login)
        case .opaque(let tls, _): self = .opaque(tls, isConnected: true)
        case .opening, .startingTLS, .authenticating, .restarting, .binding, .open, .closing, .refusing, .finished,
            .closed:
            break
        }
    }

    /// The initiator requests TLS; returns false if no answer is expected.
    mutating func requestTLS() -> Bool {
        guard mayRequestTLS, let login else { return false }
        self = .startingTLS(login)
        return true
    }

    /// The server declines TLS; returns false if it was not requested.
    mutating func declineTLS() -> Bool {
        guard case .startingTLS(let login) = self else { return false }
        self = .opening(login)
        return true
    }

    mutating func beginHandshake() {
        guard case .clear(let asymmetric) = login?.tls else { return }
        login?.tls = .handshake(asymmetric)
    }

    /// TLS is established: streams and the login restart inside it.
    mutating func enterTLS() {
        guard let login else { return }
        login.bridged?.reset()
        self = .opening(Login(tls: .inside, bridged: login.bridged))
    }

    mutating func beginAuthentication() {
        if let login { self = .authenticating(login) }
    }

    /// Authentication has failed: the initiator may try again.
    mutating func failAuthentication() {
        if let login { self = .opening(login) }
    }

    /// Authentication has succeeded. SASL2 has no restart (XEP-0388 §2.4).
    mutating func authenticate(isSASL2: Bool) {
        guard let login else { return }
        self = isSASL2 ? .binding : .restarting(endedEpoch: login.bridged?.endedEpoch)
    }

    /// Stream features have arrived.
    mutating func featuresReceived() {
        if case .restarting = self { self = .binding }
    }

    /// The session becomes open; returns false if it was open, or never will be.
    mutating func open() -> Bool {
        switch self {
        case .awaitingServer, .opening, .startingTLS, .authenticating, .restarting, .binding: self = .open
        case .open, .closing, .opaque, .refusing, .finished, .closed: return false
        }
        return true
    }

    /// The session was assumed open, but a login begins.
    mutating func reopen() {
        if case .open = self { self = .opening(Login(tls: .clear(nil), bridged: nil)) }
    }

    mutating func closeStream() {
        if case .open = self { self = .closing }
    }

    /// Decoding has stopped.
    mutating func stopDecoding(_ tls: PassedTLS?) { self = .opaque(tls, isConnected: isConnected) }

    /// Waits for the client's header, to answer it with a stream error.
    mutating func refuse(_ condition: StreamErrorCondition, _ text: String) { self = .refusing(condition, text) }

    /// Marks the legs as closed; returns false if they were.
    mutating func finish() -> Bool {
        guard !isFinished else { return false }
        self = .finished
        return true
    }

    mutating func close() { self = .closed }
}
