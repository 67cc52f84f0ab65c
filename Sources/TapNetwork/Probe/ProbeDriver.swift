internal import NIOCore
internal import NIOHTTP1
internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Runs one probe on one event loop: from the first lookup to the report.
///
/// Pending callbacks keep it alive; after the promise has been completed, nothing refers to it.
final class ProbeDriver: ClientOwner {
    /// Objects that the driver uses.
    struct Tools {
        let tls: TLSContext
        let reference: ServerReference
        let domain: Upstream.Domain
        let names: NameResolver
        let nonce: String
        let cryptography: any Cryptography
        let onStep: @Sendable (ProbeReport.Step) -> Void

        /// Creates a client of the account; the server assigns its resource.
        func client(
            of plan: ProbePlan,
            _ security: ClientSession.Security,
            outerTLS: TLSHandler? = nil,
            binds: Bool = true,
            owner: any ClientOwner
        ) -> ClientConnection {
            let session = ClientSession(
                account: plan.account,
                resource: nil,
                security: security,
                cryptography: cryptography,
                parser: StanzaParser()
            )
            var target = ServerLegTarget(reference: reference)
            // Send ALPN (XEP-0368 §3), by which a server can tell XMPP from other protocols on the same port.
            if security == .direct { target.protocols = ["xmpp-client"] }
            let tls = ClientConnection.TLS(context: tls, target: target, binds: binds)
            return ClientConnection(session, security, tls: tls, outerTLS: outerTLS, owner: owner)
        }
    }

    /// The requests of a probe once a resource is bound; each is sent after the answer to the previous one.
    private struct Questions {
        enum Question: String {
            case streamManagement, ping, disco, version
        }

        /// The request that has not been answered yet.
        var awaited: Question?
        /// Number of stanzas received since stream management was enabled.
        var received: UInt32 = 0
        /// The name in the server's disco identity (XEP-0030).
        var name = ""
        var features: Int?
    }

    /// Time limit for the server to close its stream.
    private static let streamEndTimeout = TimeAmount.seconds(1)

    private let plan: ProbePlan
    private let tools: Tools
    private let watch: ProbeWatch
    private let loop: any EventLoop
    private let promise: EventLoopPromise<ProbeReport>
    private var report: ProbeReport {
        didSet {
            guard reported < report.steps.count else { return }
            while reported < report.steps.count {
                tools.onStep(report.steps[reported])
                reported += 1
            }
            if connection != nil { arm() }
        }
    }
    private var reported = 0
    /// The connection, which owns this object until it is closed.
    private weak var connection: ClientConnection?
    /// Whether the server is on this machine.
    private var isLoopback = false
    private var search: ServiceDiscovery?
    private var lookups = ProbeLookups()
    private var expiry: Scheduled<Void>?
    private var choice: LoginChoice?
    private let began: Run.Instant
    /// Start of the current step.
    private var stepBegan: Run.Instant
    private var isSettled = false
    /// The state of the requests after resource binding.
    private var questions = Questions()

    init(_ plan: ProbePlan, _ tools: Tools, _ watch: ProbeWatch, on loop: any EventLoop) {
        self.plan = plan
        self.tools = tools
        self.watch = watch
        self.loop = loop
        promise = loop.makePromise(of: ProbeReport.self)
        report = ProbeReport(account: plan.account)
        began = watch.now
        stepBegan = began
        report.began = began.time
    }

    // MARK: Finding the server

    func begin() -> EventLoopFuture<ProbeReport> {
        switch plan.web {
        case .url(let server): connect(to: server)
        case .hostMeta(let base): findWebSocket(base)
        case nil: findStream()
        }
        return promise.futureResult
    }

    private func findStream() {
        if let via = plan.via {
            let dialer = Dialer(via, timeout: plan.timeout)
            dialer.connect(on: loop).assumeIsolated().whenComplete { [self] result in
                switch result {
                case .success(let channel): connected(channel, directly: plan.isDirect)
                case .failure(let error): unreachable(dialer.message(for: error), Dialer.fault(of: error))
                }
            }
        } else {
            find()
        }
    }

    private var dialer: DomainDialer {
        DomainDialer(domains: [tools.domain], names: tools.names, timeout: plan.timeout, own: OwnAddresses())
    }

    private func find() {
        let requirement: ServiceDiscovery.Requirement =
            plan.isDirect ? .mirroring(isTLS: true) : plan.usesTLS ? .any : .chosen(isTLS: false)
        let search = ServiceDiscovery(dialer, domain: tools.domain, requirement, on: loop) { [self] step in
            watch.made(step)
            report.addDiscovery(step, &lookups)
        } done: { [self] result in
            let isDirect = self.search?.beginsWithTLS == true
            self.search = nil
            switch result {
            case .success(let channel): connected(channel, directly: isDirect)
            case .failure(let failure): unreachable(failure.message, failure.fault)
            }
        }
        self.search = search
        search.start()
    }

    private func unreachable(_ text: String, _ fault: ConnectionFault) {
        let isAboutNames = !lookups.lines.isEmpty
        report.addLookups(.failed, &lookups)
        if !isAboutNames { report.add(.connection, .failed, [text], took: elapsed()) }
        watch.failed(text, fault)
        finish(by: .client)
    }

    // MARK: The connection

    private func connected(_ channel: any Channel, directly: Bool) {
        let address = channel.remoteAddress?.endpoint?.description ?? "the server"
        isLoopback = channel.remoteAddress?.isLoopback ?? false
        if !report.steps.contains(where: { $0.name == .connection && $0.outcome == .ok }) {
            report.add(.connection, .ok, [address], took: elapsed(), ["address": .string(address)])
        }
        watch.connected(address, since: plan.via == nil ? nil : began)
        report.isDirect = directly
        stepBegan = watch.now
        let security: ClientSession.Security =
            directly ? .direct : plan.usesTLS ? .startTLS(isRequired: false) : .clear
        let connection = tools.client(of: plan, security, binds: plan.bindsChannel, owner: self)
        self.connection = connection
        arm()
        do {
            if let version = plan.proxyHeader {
                channel.write(ByteBuffer(bytes: ProxyHeader(.local).bytes(version)), promise: nil)
            }
            try channel.pipeline.syncOperations.addHandler(connection)
            try channel.syncOptions?.setOption(.autoRead, value: true)
        } catch {
            fail(.stream, "the connection was closed immediately")
            finish(by: .server)
        }
    }

    func passes(_ direction: Direction, _ bytes: Span<UInt8>) { watch.passes(direction, bytes) }

    func tlsBegins(directly: Bool) {
        if !directly {
            let demand = report.clearFeatures?.startTLS == .required ? "offered and required" : "offered, not required"
            report.add(.startTLS, .ok, [demand], took: elapsed())
        }
        stepBegan = watch.now
        watch.tlsBegins(directly: directly)
    }

    func tlsOpened(_ parameters: TLSParameters) -> Bool {
        examine(parameters)
        return true
    }

    private func examine(_ parameters: TLSParameters) {
        watch.tlsOpened(parameters)
        report.tls = parameters
        var text = "\(parameters.version), \(parameters.suite)"
        if let name = parameters.applicationProtocol { text += ", ALPN \(name)" }
        if report.isDirect, report.webServer == nil { text += ", direct TLS" }
        report.add(.tls, .ok, [text], took: elapsed(), parameters.details)
        report.addCertificate(parameters, at: watch.now.time)
        if let fault = parameters.overlooked.first {
            let text = parameters.overlooked.map(\.explanation).joined(separator: "; ")
            watch.blame(
                LoginCause(certificateFault: fault.name),
                at: .tls,
                "the server's certificate is not trusted: \(text)"
            )
        }
        stepBegan = watch.now
    }

    func tlsFailed(_ fault: TLSFault) {
        fail(.tls, fault.explanation(peer: "the server"))
        watch.tlsFailed(fault)
    }

    func closed() { finish(by: .server) }

    // MARK: The session

    func handle(_ action: ClientSession.Action) {
        switch action {
        case .announced(let features):
            if report.tls == nil { report.clearFeatures = features }
            report.features = features
        case .offered(let features): offered(features)
        case .authenticated: authenticated()
        case .bound(let jid, let features): bound(jid, features)
        case .element(let element, _): receive(element)
        case .ended: finish(by: .client)
        case .failed(let fault): failed(fault)
        case .send, .beginTLS, .resumed, .registered: break
        }
    }

    // MARK: Ending

    /// Adds a failed step, unless another failure (apart from the certificate's) is in the report.
    private func fail(_ step: ProbeReport.Step.Name, _ text: String) {
        guard !report.steps.contains(where: { $0.outcome == .failed && $0.name != .certificate }) else { return }
        report.add(step, .failed, [text], took: elapsed())
    }

    /// Closes the stream.
    private func closeStream() {
        connection?.session.close()
        // All requests are answered: use a shorter time limit, because some servers do not close their stream.
        arm(within: min(plan.timeout, Self.streamEndTimeout))
        connection?.perform()
    }

    private func finish(by leg: Leg) {
        guard !isSettled else { return }
        isSettled = true
        expiry?.cancel()
        connection?.close()
        watch.end(by: leg)
        report.timeline = watch.steps
        report.diagnosis = watch.diagnosis
        let other = report.isDirect ? report.clearService : report.directService
        guard report.isOfferSeen, plan.checksAlternative, !plan.isDirect, case .announced = other else {
            return promise.succeed(report)
        }
        QuickCheck(plan, tools, isDirect: !report.isDirect, on: loop) { [self] sight in
            report.addAlternative(sight)
            promise.succeed(report)
        }
        .start(dialer)
    }

    /// Returns the nanoseconds since the current step began, and begins the next one.
    private func elapsed() -> Int64 {
        let now = watch.now
        defer { stepBegan = now }
        return now.monotonic - stepBegan.monotonic
    }

    /// Schedules the time limit of the current step. Received bytes do not extend it: a server could send bytes for
    /// ever without completing a step.
    private func arm(within time: TimeAmount? = nil) {
        expiry?.cancel()
        guard !isSettled else { return }
        expiry = loop.assumeIsolated().scheduleTask(in: time ?? plan.timeout) { [self] in
            guard !isSettled else { return }
            connection?.session.expired()
            connection?.perform()
            finish(by: .client)
        }
    }
}

// WebSockets.
extension ProbeDriver {
    /// Looks for the WebSocket of the domain (XEP-0156).
    private func findWebSocket(_ base: HTTPSAddress?) {
        do throws(EndpointError) {
            let base = if let base { base } else { try HTTPSAddress(for: plan.account.domain) }
            let options = WebFetch.Options(tls: tools.tls, domain: tools.reference, timeout: plan.timeout)
            HostMetaSearch.get(base, options, on: loop) { [self] found in
                report.hostMeta = found
                let server = found.servers.first
                let lines = found.lines + found.warnings
                let outcome: ProbeReport.Step.Outcome =
                    server == nil ? .failed : found.warnings.isEmpty && found.isComplete ? .ok : .note
                report.add(
                    .hostMeta,
                    outcome,
                    lines,
                    took: elapsed(),
                    server.map { ["websocket": .string($0.description)] } ?? [:]
                )
                guard let server else {
                    watch.blame(.hostMetaUnusable, at: .nameLookup, "host-meta names no WebSocket with TLS")
                    return finish(by: .client)
                }
                connect(to: server)
            }
        } catch {
            unreachable("\(error)", .unreachable)
        }
    }

    private func connect(to server: WebServer) {
        report.webServer = server
        report.isDirect = server.isSecure
        stepBegan = watch.now
        WebSocketDialer.connect(
            to: server,
            tls: tools.tls,
            // Browsers do not accept a certificate for the domain instead of the host.
            reference: try? ServerReference(domain: server.name),
            timeout: plan.timeout,
            cryptography: tools.cryptography,
            on: loop,
            onConnection: { [self] channel, tls in
                connected(webSocket: channel, tls)
                // A query may contain a token.
                let isTrusted = report.tls?.overlooked.isEmpty != false
                guard isTrusted || server.target?.contains("?") != true else {
                    let text = "not requested: the URL has a query, and the certificate is not trusted"
                    loop.assumeIsolated().execute { [self] in unreachable(text, .unreachable) }
                    return false
                }
                return true
            },
            { [self] result in
                switch result {
                case .success(let socket): opened(socket)
                case .failure(let failure): unreachable(failure)
                }
            }
        )
    }

    private func connected(webSocket channel: any Channel, _ tls: TLSHandler?) {
        let address = channel.remoteAddress?.endpoint?.description ?? "the server"
        isLoopback = channel.remoteAddress?.isLoopback ?? false
        report.add(.connection, .ok, [address], took: elapsed(), ["address": .string(address)])
        watch.connected(address, since: began)
        guard let tls, var parameters = tls.engine.parameters() else { return }
        watch.tlsBegins(directly: true)
        let faults = parameters.faults(allowing: tools.reference)
        report.isForDomainOnly = faults.count < parameters.overlooked.count
        parameters.overlooked = faults
        examine(parameters)
    }

    private func opened(_ socket: OpenWebSocket) {
        var text = "HTTP 101, subprotocol xmpp"
        if let fault = socket.subprotocolFault { text = "HTTP 101, but \(fault.explanation)" }
        if let software = socket.answer.headers.first(name: "server") { text += ", server \(software.prefix(100))" }
        var lines = [text]
        if report.isForDomainOnly, let host = report.webServer?.endpoint.host {
            lines.append("the certificate is for \(plan.account.domain), but not for \(host): browsers refuse it")
        }
        report.subprotocolFault = socket.subprotocolFault
        let isRight = socket.subprotocolFault == nil && !report.isForDomainOnly
        report.add(.webSocket, isRight ? .ok : .note, lines, took: elapsed())
        let connection = tools.client(
            of: plan,
            .clear,
            outerTLS: socket.tls,
            binds: plan.bindsChannel,
            owner: self
        )
        self.connection = connection
        arm()
        do {
            try socket.add(connection)
        } catch {
            fail(.stream, "the connection was closed immediately")
            finish(by: .server)
        }
    }

    private func unreachable(_ failure: WebSocketDialer.Failure) {
        if let fault = failure.tls {
            watch.tlsBegins(directly: true)
            watch.tlsFailed(fault)
            report.add(.tls, .failed, [failure.text], took: elapsed())
        } else {
            let hasConnection = report.steps.contains { $0.name == .connection }
            report.add(hasConnection ? .webSocket : .connection, .failed, [failure.text], took: elapsed())
            if hasConnection {
                watch.blame(.webSocketRefused, at: .connect, failure.text)
            } else {
                watch.failed(failure.text, failure.fault)
            }
        }
        finish(by: .server)
    }
}

// From the server's features to a bound resource, or to the reason why there is none.
extension ProbeDriver {
    private func offered(_ features: StreamFeatures) {
        guard let connection else { return }
        let channel = connection.session.channel
        report.bindings = channel.bindings.map(\.type)
        report.addOffer(features, took: elapsed())
        stepBegan = watch.now
        guard let password = plan.password else {
            if report.tls == nil {
                blameMissingTLS()
            } else if report.tls?.overlooked.isEmpty == true {
                report.outcome = .offered
                watch.leave()
            }
            return closeStream()
        }
        if report.tls?.overlooked.isEmpty == false {
            report.add(.login, .skipped, ["password not sent: the server's certificate is not trusted"])
            return closeStream()
        }
        let choice = LoginChoice.strongest(of: features, on: channel)
        guard report.tls != nil || isLoopback else {
            report.add(.login, .skipped, ["password not sent: no TLS"])
            blameMissingTLS()
            return closeStream()
        }
        guard let choice else {
            let text = "no supported mechanism offered: \(features.allMechanisms.joined(separator: ", "))"
            report.add(.login, .failed, [text])
            watch.blame(.noCommonMechanism, at: .mechanism, text, side: .server)
            return closeStream()
        }
        self.choice = choice
        connection.session.authenticate(choice, password: password, nonce: tools.nonce)
        connection.perform()
    }

    private func blameMissingTLS() {
        watch.blame(.tlsNotOffered, at: .startTLS, "the server does not offer TLS")
    }

    private func authenticated() {
        recordSignatures()
        guard let choice else { return }
        report.addLogin(choice, connection?.session.signatures, took: elapsed())
        stepBegan = watch.now
    }

    private func recordSignatures() {
        guard let signatures = connection?.session.signatures, choice?.mechanism.hasPrefix("SCRAM") == true else {
            return
        }
        report.mechanismSignature = signatures.mechanisms
        report.versionSignature = signatures.version
    }

    private func bound(_ jid: JID, _ features: StreamFeatures) {
        report.outcome = .ready
        report.jid = jid.description
        report.timeToReady = watch.now.monotonic - began.monotonic
        report.add(.bind, .ok, [jid.description], took: elapsed(), ["jid": .string(jid.description)])
        ask(features)
    }

    private func failed(_ fault: ClientFault) {
        // If the session is ready, a failed request does not change this outcome.
        guard report.outcome == .failed else {
            if report.outcome == .ready { giveUpQuestions(fault.reason) }
            return finish(by: .client)
        }
        recordSignatures()
        switch fault.step {
        case .stream, .open: fail(.stream, fault.reason)
        case .startTLS: fail(.startTLS, fault.reason)
        case .tls: fail(.tls, fault.reason)
        case .mechanisms: fail(.offer, fault.reason)
        case .login: failLogin(fault)
        case .bind, .session: fail(.bind, fault.reason)
        }
        finish(by: fault.code == .broken ? .server : .client)
    }

    private func failLogin(_ fault: ClientFault) {
        let signatures = connection?.session.signatures
        switch fault.code {
        case .altered:
            let isVersion = signatures?.version == .altered
            watch.blame(
                isVersion ? .tlsVersionAltered : .mechanismsAltered,
                at: .sasl,
                fault.reason,
                side: .network
            )
            report.add(.downgrade, .failed, [fault.reason])
        case .unproven: watch.blame(.serverNotProven, at: .sasl, fault.reason)
        case .unable: watch.blame(.clientAborted, at: .sasl, fault.reason)
        case .refused, .broken, .silent, .incomplete: break
        }
        fail(.login, "\(choice.map { "\($0.description): " } ?? "")\(fault.reason)")
    }

    // MARK: Requests after resource binding

    private func ask(_ features: StreamFeatures) {
        guard let version = features.streamManagement else {
            report.streamManagement = .notOffered
            report.add(.streamManagement, .note, ["not offered"])
            return next(.ping)
        }
        questions.awaited = .streamManagement
        connection?.send(XMLWriter.bytes { $0.element("enable", version, ["resume": "true"]) })
    }

    private func next(_ question: Questions.Question?) {
        guard let question else {
            questions.awaited = nil
            return closeStream()
        }
        questions.awaited = question
        _ = elapsed()
        let domain = plan.account.domain
        connection?.send(
            XMLWriter.bytes {
                $0.element("iq", ["type": "get", "id": question.rawValue, "to": domain]) {
                    switch question {
                    case .ping, .streamManagement: $0.element("ping", .ping)
                    case .disco: $0.element("query", .discoInfo)
                    case .version: $0.element("query", .version)
                    }
                }
            }
        )
    }

    /// Handles an element received after resource binding.
    private func receive(_ element: Element) {
        // If no request is pending, this client has closed its stream.
        guard let awaited = questions.awaited else { return }
        if element.namespace == .client { questions.received &+= 1 }
        if element.isNamed("r"), [.streamManagement, .streamManagement2].contains(element.namespace) {
            let count = "\(questions.received)"
            connection?.send(XMLWriter.bytes { $0.element("a", element.namespace, ["h": count]) })
            return
        }
        switch awaited {
        case .streamManagement: receiveManagement(element)
        case .ping: if let isResult = answer(element) { receivePing(isResult) }
        case .disco: if let isResult = answer(element) { receiveInfo(isResult ? element : nil) }
        case .version: if let isResult = answer(element) { receiveVersion(isResult ? element : nil) }
        }
    }

    /// Returns nil if the element is not the awaited answer; otherwise whether it is a result.
    private func answer(_ element: Element) -> Bool? {
        guard element.matches("iq", .client), element.attribute("id") == questions.awaited?.rawValue else { return nil }
        return element.attribute("type") == "result"
    }

    private func receiveManagement(_ element: Element) {
        guard [.streamManagement, .streamManagement2].contains(element.namespace) else { return }
        if element.isNamed("enabled") {
            questions.received = 0
            let isResumable = ["true", "1"].contains(element.attribute("resume") ?? "")
            let seconds = element.attribute("max").flatMap { Int($0) }
            report.streamManagement = .enabled(isResumable: isResumable, seconds: seconds)
            var text = isResumable ? "resumable" : "enabled, not resumable"
            if isResumable, let seconds { text += " for \(Self.span(seconds))" }
            var details: Attributes = ["resumable": .boolean(isResumable)]
            if let seconds { details["max"] = .integer(Int64(seconds)) }
            if let location = element.attribute("location") {
                text += ", preferred address \(location)"
                details["location"] = .string(location)
            }
            report.add(.streamManagement, isResumable ? .ok : .note, [text], took: elapsed(), details)
        } else {
            let condition = element.firstChild { $0.namespace == .stanzaErrors }?.name ?? "no reason"
            report.streamManagement = .refused(condition)
            report.add(.streamManagement, .note, ["offered, but refused: \(condition)"], took: elapsed())
        }
        next(.ping)
    }

    private func receivePing(_ isResult: Bool) {
        let duration = elapsed()
        // An error measures the round trip as well as a result.
        let text = isResult ? "answered" : "answered with an error: XEP-0199 is not supported"
        report.add(.ping, isResult ? .ok : .note, [text], took: duration, ["answered": .boolean(isResult)])
        next(.disco)
    }

    private func receiveInfo(_ element: Element?) {
        if let query = element?.child("query", .discoInfo) {
            let features = query.children("feature", .discoInfo).count
            let name = query.children("identity", .discoInfo).compactMap { $0.attribute("name") }.first
            questions.name = name ?? ""
            questions.features = features
        }
        next(.version)
    }

    private func receiveVersion(_ element: Element?) {
        let query = element?.child("query", .version)
        let parts = [query?.childText("name", .version), query?.childText("version", .version)].compactMap(\.self)
        // The text comes from the server: limit its length.
        recordServer(String(parts.joined(separator: " ").prefix(100)))
        next(nil)
    }

    private func recordServer(_ software: String) {
        let name = software.isEmpty ? questions.name : software
        let features = questions.features.map { "\($0) features (XEP-0030)" } ?? ""
        let text = [name, features].filter { !$0.isEmpty }.joined(separator: ", ")
        guard !text.isEmpty else { return }
        report.add(
            .server,
            .ok,
            [text],
            took: elapsed(),
            software.isEmpty ? [:] : ["software": .string(software)]
        )
    }

    /// Adds the pending request to the report when the session ends before all requests are answered.
    private func giveUpQuestions(_ reason: String) {
        switch questions.awaited {
        case .streamManagement: report.add(.streamManagement, .note, [reason], took: elapsed())
        case .ping: report.add(.ping, .note, [reason], took: elapsed())
        case .disco, .version: recordServer("")
        case nil: break
        }
    }

    private static func span(_ seconds: Int) -> String {
        seconds >= 120 && seconds.isMultiple(of: 60) ? "\(seconds / 60) min" : "\(seconds) s"
    }
}
