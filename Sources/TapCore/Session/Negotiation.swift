internal import TapRecord
import XMPPCore

/// The progress of a session's negotiation. Each case stores the state that only it needs; all transitions are in this
/// file.
///
/// Events that do not fit the current case are ignored, so an unexpected item of a peer changes nothing here.
enum Negotiation {
    /// The connection to the server is not established: the client's items wait.
    case awaitingServer(Login)
    /// Streams are being opened, and features are announced.
    case opening(Login)
    /// The initiator has requested TLS.
    case startingTLS(Login)
    /// Authentication is in progress.
    case authenticating(Login)
    /// Authentication has succeeded; the initiator must send a new stream header. `endedEpoch` is the epoch of the
    /// client's stream in which xmpptap answered the login; nil if the server answered it.
    case restarting(endedEpoch: Int?)
    /// The client is authenticated, and the features are known; resource binding or resumption follows.
    case binding
    /// The session is open, and stanzas are relayed.
    case open
    /// One side has closed its stream.
    case closing
    /// Nothing is decoded, because TLS is passed through or the bytes are not XMPP.
    case opaque(PassedTLS?, isConnected: Bool)
    /// The session is refused with a stream error when the client's header arrives.
    case refusing(StreamErrorCondition, String)
    /// The driver was requested to close both legs.
    case finished
    /// The last record was created.
    case closed

    /// The state that is needed until authentication has succeeded.
    struct Login {
        var tls: TLS
        /// The login that xmpptap performs itself; nil without `--accounts`.
        let bridged: BridgedLogin?
    }

    /// The progress of TLS that xmpptap terminates.
    enum TLS {
        /// TLS has not begun. It begins on both legs together if the ``AsymmetricTLS`` is nil, and on one leg only, or
        /// differently on each leg, if it is not.
        case clear(AsymmetricTLS?)
        /// A handshake is in progress.
        case handshake(AsymmetricTLS?)
        /// TLS is established, and the input is its plaintext.
        case inside
    }

    /// Creates the initial state.
    ///
    /// - Parameter isConnected: Whether the server is connected already, as in a recording.
    init(_ options: SessionOptions, isConnected: Bool) {
        let login = Login(tls: .clear(AsymmetricTLS(options)), bridged: options.authenticator.map(BridgedLogin.init))
        self = isConnected ? .opening(login) : .awaitingServer(login)
    }

    // MARK: State

    /// The state of the login; nil after authentication has succeeded.
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

    /// The login that xmpptap performs itself; nil after authentication has succeeded.
    var bridged: BridgedLogin? { login?.bridged }

    /// TLS that does not begin on both legs together; nil after it is established.
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

    /// Whether only closing and recording remain to be done.
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

    /// Whether a request for TLS may be answered: false before the server is connected, and after authentication has
    /// succeeded (RFC 6120 §5.3.1).
    var mayRequestTLS: Bool { login != nil && !isAwaitingServer }

    /// Returns whether the initiator may open a new stream: after success, or in advance while authentication is in
    /// progress.
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

    /// Handles the initiator's request for TLS; returns false if no answer is expected.
    mutating func requestTLS() -> Bool {
        guard mayRequestTLS, let login else { return false }
        self = .startingTLS(login)
        return true
    }

    /// Handles the server's refusal of TLS; returns false if TLS was not requested.
    mutating func declineTLS() -> Bool {
        guard case .startingTLS(let login) = self else { return false }
        self = .opening(login)
        return true
    }

    mutating func beginHandshake() {
        guard case .clear(let asymmetric) = login?.tls else { return }
        login?.tls = .handshake(asymmetric)
    }

    /// Restarts streams and the login, because TLS is established.
    mutating func enterTLS() {
        guard let login else { return }
        login.bridged?.reset()
        self = .opening(Login(tls: .inside, bridged: login.bridged))
    }

    mutating func beginAuthentication() {
        if let login { self = .authenticating(login) }
    }

    /// Returns to the state before the failed authentication, so that the initiator may try again.
    mutating func failAuthentication() {
        if let login { self = .opening(login) }
    }

    /// Handles successful authentication. With SASL2, the stream is not restarted (XEP-0388 §2.4).
    mutating func authenticate(isSASL2: Bool) {
        guard let login else { return }
        self = isSASL2 ? .binding : .restarting(endedEpoch: login.bridged?.endedEpoch)
    }

    /// Handles the arrival of stream features.
    mutating func featuresReceived() {
        if case .restarting = self { self = .binding }
    }

    /// Opens the session; returns false if it was open already, or can no longer open.
    mutating func open() -> Bool {
        switch self {
        case .awaitingServer, .opening, .startingTLS, .authenticating, .restarting, .binding: self = .open
        case .open, .closing, .opaque, .refusing, .finished, .closed: return false
        }
        return true
    }

    /// Returns to the opening of streams, because a login begins in a session that was assumed open.
    mutating func reopen() {
        if case .open = self { self = .opening(Login(tls: .clear(nil), bridged: nil)) }
    }

    mutating func closeStream() {
        if case .open = self { self = .closing }
    }

    /// Enters the state in which nothing is decoded.
    mutating func stopDecoding(_ tls: PassedTLS?) { self = .opaque(tls, isConnected: isConnected) }

    /// Refuses the session: the client's header will be answered with a stream error.
    mutating func refuse(_ condition: StreamErrorCondition, _ text: String) { self = .refusing(condition, text) }

    /// Marks the legs as closed; returns false if they were closed already.
    mutating func finish() -> Bool {
        guard !isFinished else { return false }
        self = .finished
        return true
    }

    mutating func close() { self = .closed }
}
