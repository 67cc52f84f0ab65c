internal import TapDiagnosis
internal import TapRecord
import XMPPCore

/// An effect of a TLS component on another part of the session. ``Session/perform(_:)`` performs the effects in order.
enum TLSEffect {
    // The negotiation.

    /// Stores that TLS was requested, of the server or of xmpptap.
    case requestTLS
    /// Stores that the server declined TLS.
    case declineTLS
    /// Stores that the handshake on a leg begins.
    case beginHandshake
    /// Restarts the login inside TLS, which is established.
    case enterTLS
    /// Discards the facts that were received in clear, because these could have been forged.
    case forgetClear
    /// From now on, forbids a request for another domain in the session.
    case choose(domain: String)
    /// Stores the channel bindings of a leg, for logins that xmpptap performs.
    case secured(Leg, SecuredLeg?)
    /// Begins TLS after the stored consent, when all other work is done.
    case awaitConsent
    /// Opens the stream inside TLS for ``AsymmetricTLS``, because TLS is established on the server leg only.
    case openInside
    /// Ends ``AsymmetricTLS`` without TLS: both legs continue in clear.
    case relayInClear

    // Steps of the login, and its observer.

    case begin(LoginStep.Name, leg: Leg? = nil, awaits: Leg, Attributes = [:])
    case finish(LoginStep.Name, leg: Leg? = nil, LoginStep.Outcome, Attributes = [:])
    case cancel(LoginStep.Name)
    case observe(LoginObserver.Event)
    case blame(LoginCause, TLSFailure)

    // The directions.

    case hold(Direction)
    case release(Direction)
    /// Releases the client's items, unless the client must wait for the features that a login by xmpptap requires.
    case releaseClient
    /// Replaces the buffered items of a direction; nil removes them.
    case buffer([UInt8]?, Direction)
    /// Restarts decoding: later bytes are the plaintext of TLS.
    case enterStream(Direction)
    /// Expects a new stream in both directions.
    case expectRestart
    /// Forwards TLS without decoding from now on.
    case passThrough

    // Items and bytes.

    /// Handles a stream header, stream end or features element that is not forwarded.
    case handle(StreamEvent, Direction, StreamFeatures? = nil)
    /// Handles the bytes of a leg that arrived during the negotiation.
    case receive([UInt8], Direction)
    case pass([UInt8], Direction)
    /// Sends items of xmpptap to a peer. If `opensStream` is set, a new stream header for the client precedes them.
    case say([SessionContext.SentItem], to: Leg, opensStream: Bool = false)
    case request(TLSCommand)

    // Records.

    case record(TLSReport)
    case warn(code: String, Prose, Direction)

    // End of a leg or of the session.

    /// Handles the end of a leg.
    case ended(Leg, LegEnd)
    case refuse(Refusal)
    /// Closes the session with a stream error.
    case close(StreamErrorCondition, String)
    case end(CloseMode)
    /// Ends the session without sending anything to the peers.
    case stop

    /// The last item for the client of a session that is closed.
    enum CloseMode {
        case nothing
        /// A stream error; `opensStream` if a stream header must precede it inside TLS.
        case error(StreamErrorCondition, String, opensStream: Bool = false)
        /// The `<failure/>` of STARTTLS, which ends the client's stream (RFC 6120 §5.4.2.2).
        case failure
        case alert(HandshakeAlert)
    }
}

/// A record about TLS on a leg.
struct TLSReport {
    var kind = Record.Kind.note
    var level: Level
    var leg: Leg
    var code: String
    var message: Prose
    var remedy: Remedy?
    /// The parameters of TLS, or the properties of a certificate.
    var details: Attributes?
}

extension TLSReport {
    /// The report of a handshake that has succeeded on a leg.
    init(opened agreement: TLSAgreement, on leg: Leg) {
        let overlooked = agreement.overlooked
        self.init(
            kind: .tls,
            level: overlooked == nil ? .info : .warn,
            leg: leg,
            code: Record.Code.tlsOpened,
            message: Prose(overlooked.map { "\(agreement.summary); NOT VERIFIED: \($0)" } ?? agreement.summary),
            details: agreement.details
        )
    }
}

extension TLSReport {
    /// The report of the certificate of a server that connects to another server.
    init(_ peer: PeerCertificate) {
        switch peer {
        case .missing:
            self.init(
                level: .warn,
                leg: .client,
                code: "peer-certificate-missing",
                message: "the initiating server shows no certificate: it cannot authenticate with SASL EXTERNAL"
            )
        case .verified(let summary, let details, let isForClients):
            let limit = isForClients ? "" : ", but only for TLS servers (no clientAuth), which some servers refuse"
            self.init(
                level: isForClients ? .info : .warn,
                leg: .client,
                code: "peer-certificate",
                message: Prose("the certificate of the initiating server is valid\(limit): \(summary)"),
                details: details
            )
        case .refused(let code, let explanation, let summary, let details, _):
            self.init(
                level: .warn,
                leg: .client,
                code: code,
                message: Prose("the certificate of the initiating server is not trusted: \(explanation); \(summary)"),
                details: details
            )
        }
    }
}

extension TLSReport {
    /// The report of the certificate that a server gets on behalf of another one.
    init(_ choice: IdentityChoice) {
        switch choice {
        case .shown(let summary, _):
            self.init(
                level: .info,
                leg: .server,
                code: "peer-identity",
                message: Prose("xmpptap shows the server the \(summary)")
            )
        case .withheld(let reason, let remedy):
            self.init(
                level: remedy == nil ? .info : .warn,
                leg: .server,
                code: "peer-identity-none",
                message: Prose("xmpptap shows the server no certificate: \(reason)"),
                remedy: remedy
            )
        }
    }
}

extension SessionContext {
    mutating func record(_ report: TLSReport) {
        var record = makeRecord(report.kind, report.level, part: .tls)
        record.leg = report.leg
        record.code = report.code
        record.message = advised(report.message, report.remedy)
        record.tls = report.details
        emit(consume record)
    }

    /// Performs an effect that no component performs.
    mutating func perform(_ effect: TLSEffect) {
        switch effect {
        case .requestTLS: _ = negotiation.requestTLS()
        case .declineTLS: _ = negotiation.declineTLS()
        case .beginHandshake: negotiation.beginHandshake()
        case .enterTLS: negotiation.enterTLS()
        case .forgetClear: forgetClear()
        case .choose(let domain): chosenDomain = domain
        case .relayInClear:
            release(.recv)
            negotiation.asymmetric = nil
            release(.send)

        case .begin(let step, let leg, let side, let details):
            beginStep(step, key: leg?.name.description, awaits: side, details: details)
        case .finish(let step, let leg, let outcome, let details):
            finishStep(step, key: leg?.name.description, outcome, details: details)
        case .cancel(let step): timeline.cancel(step)
        case .observe(let event):
            login?.observe(event)
            if case .secured = event { askAboutBindings() }
        case .secured(let leg, let secured):
            negotiation.bridged?.secure(leg, secured, isServerVerified: !info.isUnverified)
        case .blame(let cause, let failure):
            blame(
                cause,
                at: .tls,
                failure.explanation,
                side: failure.side,
                condition: failure.code,
                remedy: failure.remedy
            )

        case .hold(let direction): hold(direction)
        case .release(let direction): release(direction)
        case .releaseClient:
            if info.version == nil || negotiation.bridged?.awaitFeatures(&self) != true { release(.send) }
        case .buffer(let items, let direction): directions[direction].setBuffered(items)
        case .enterStream(let direction): directions[direction].enterTLS()
        case .expectRestart: for direction in Direction.allCases { directions[direction].mayRestart = true }
        case .passThrough: beginTLS(directly: false)

        case .pass(let bytes, let direction): outlet.pass(bytes, direction)
        case .say(let items, let leg, let opensStream):
            answer((opensStream ? header() : []) + items, to: leg)
        case .request(let command): outlet.request(.tls(command))

        case .record(let report): record(report)
        case .warn(let code, let message, let direction):
            report(code: code, message, direction: direction, part: .tls)

        case .ended(let leg, let end): ended(leg, end)
        case .refuse(let refusal): refuse(refusal)
        case .close(let condition, let text): refuse(condition, text)
        case .end(let farewell): end(farewell)
        case .stop: finish(reset: false)
        // Session performs these.
        case .awaitConsent, .openInside, .handle, .receive: assertionFailure("an effect on a component")
        }
    }

    private mutating func end(_ farewell: TLSEffect.CloseMode) {
        switch farewell {
        case .nothing: break
        case .error(let condition, let text, let opensStream):
            sendStreamError(condition, text, to: .client, opensStream: opensStream)
        case .failure: sendTLSFailure()
        case .alert(let alert): return self.alert(alert)
        }
        finishLegs()
    }
}
