internal import NIOCore
internal import NIOHTTP1
internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity

/// Reads the first bytes of a connection to a web listener: a ClientHello is answered by TLS, HTTP follows.
final class WebEntry: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private enum Stage {
        case reading
        /// The certificate for the client is being found.
        case finding
        case handshake(TLSHandler, ShownCertificate)
        case over
    }

    private let front: WebFront
    private var stage = Stage.reading
    private var reader = ClientHelloReader()
    private var early = ByteBuffer()
    private var timer: Scheduled<Void>?
    private var context: ChannelHandlerContext?

    init(_ front: WebFront) { self.front = front }

    /// Adds the handler to a channel that was accepted.
    static func add(to channel: any Channel, _ front: WebFront) throws {
        try channel.becomeLeg()
        try channel.pipeline.syncOperations.addHandler(WebEntry(front))
    }

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        guard !front.loop.isStopping, front.loop.context.admission.admitUnknown() else {
            stage = .over
            return context.close(promise: nil)
        }
        if let time = front.handshakeTime {
            timer = front.loop.eventLoop.assumeIsolated().scheduleTask(in: time) { [self] in
                refuse("web-timeout", "no request in time")
            }
        }
        try? context.channel.syncOptions?.setOption(.autoRead, value: true)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var buffer = unwrapInboundIn(data)
        switch stage {
        case .over, .handshake: context.fireChannelRead(data)
        case .finding: early.writeBuffer(&buffer)
        case .reading:
            early.writeBuffer(&buffer)
            guard early.getInteger(at: early.readerIndex, as: UInt8.self) == 0x16 else {
                guard front.interception == nil || context.channel.remoteAddress?.isLoopback != false else {
                    return refuse("web-clear", "HTTP without TLS is accepted from this machine only")
                }
                return begin(context, tls: nil)
            }
            read(context)
        }
    }

    private func read(_ context: ChannelHandlerContext) {
        guard let interception = front.interception else {
            return refuse("tls-off", "a ClientHello, but the listener has no TLS: it needs --tls intercept")
        }
        reader = ClientHelloReader()
        switch reader.append(early.readableBytesUInt8Span) {
        case .needMore: return
        case .notTLS: refuse("malformed-client-hello", "not TLS, although it begins like a TLS record")
        case .malformed(let reason): refuse("malformed-client-hello", "malformed ClientHello: \(reason)")
        case .hello(let hello):
            let name = hello.serverName
            // The server is not verified yet, so a client must not choose the name of a certificate.
            guard name.map(front.access.isOwn) ?? true else {
                return refuse(
                    "web-refused",
                    "the server name \"\(LineBuffer.escaped(name ?? ""))\" (SNI) is not served; name it by --allow-host"
                )
            }
            stage = .finding
            interception.certificate(
                for: name ?? front.server.name,
                isNamed: name != nil,
                like: nil,
                at: front.loop.context.clock.now().time,
                on: front.loop.eventLoop
            ).assumeIsolated().whenComplete { [self] result in
                switch result {
                case .success(let shown): secure(shown, interception)
                case .failure(let error):
                    refuse("no-certificate", Prose((error as? IdentityFailure)?.message ?? "\(error)"))
                }
            }
        }
    }

    private func secure(_ shown: ShownCertificate, _ interception: Interception) {
        guard let context, case .finding = stage else { return }
        do {
            var offer = ClientLegOffer(identity: shown.identity)
            offer.protocols = .chosen(["http/1.1"])
            let handler = TLSHandler(try TLSEngine(interception.clientLeg, for: offer))
            try context.pipeline.syncOperations.addHandler(handler, position: .first)
            stage = .handshake(handler, shown)
            let first = early
            early = ByteBuffer()
            handler.start(early: first)
        } catch {
            refuse("tls-failed", "\(error)")
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch (stage, event) {
        case (.handshake(let handler, _), TLSHandler.Event.opened): begin(context, tls: handler)
        case (.handshake(let handler, let shown), TLSHandler.Event.failed(let fault)):
            refuse("tls-failed", explanation(fault, handler, shown))
        case (.over, _): context.fireUserInboundEventTriggered(event)
        case (_, ChannelEvent.inputClosed): refuse(nil, "")
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard isWaiting else { return context.fireErrorCaught(error) }
        refuse(nil, "")
    }

    func channelInactive(context: ChannelHandlerContext) {
        guard isWaiting else { return context.fireChannelInactive() }
        stopWaiting()
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    /// Continues with HTTP.
    private func begin(_ context: ChannelHandlerContext, tls: TLSHandler?) {
        stopWaiting()
        do {
            let handler = WebHandler(front, tls: tls)
            try handler.addHTTP(to: context.channel)
            handler.begin()
        } catch {
            return context.close(promise: nil)
        }
        if early.readableBytes > 0 { context.fireChannelRead(NIOAny(early)) }
        early = ByteBuffer()
        context.fireChannelReadComplete()
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }

    private var isWaiting: Bool { if case .over = stage { false } else { true } }

    private func stopWaiting() {
        guard isWaiting else { return }
        stage = .over
        timer?.cancel()
        timer = nil
        front.loop.context.admission.leaveUnknown()
    }

    /// Returns the reason why TLS with the client failed, with the certificate that it refused and the remedy.
    private func explanation(_ fault: TLSFault, _ handler: TLSHandler, _ shown: ShownCertificate) -> Prose {
        let reason = fault.explanation(peer: "the client")
        guard fault.isRefusedCertificate || fault.code == .endedInHandshake, handler.engine.hasShownIdentity else {
            return Prose(reason)
        }
        var trust = shown.authority.flatMap { front.interception?.trust($0) }
        trust?.isUnconfirmed = fault.alertReceived != .unknownCA
        let advice = trust.flatMap { front.loop.context.options.advice?(.trustAuthority($0)) }.map { "; \($0)" } ?? ""
        return Prose("\(reason); xmpptap presented the \(shown.identity.certificate.summary)\(advice)")
    }

    /// Closes the connection, and records the reason, if there is one.
    private func refuse(_ code: String?, _ reason: Prose) {
        guard isWaiting, let context else { return }
        stopWaiting()
        if let code, !front.loop.isStopping {
            front.record(code, .warn, "refused a client: \(reason)", context.channel)
        }
        context.close(promise: nil)
    }
}
