internal import NIOCore
internal import TapCore
internal import TapDiagnosis
internal import TapRecord
internal import TapSecurity
internal import XMPPCore

/// Runs one probe on one event loop: from the first question to a report.
///
/// Whatever calls it back holds it; with the promise kept it lets go of all.
final class ProbeDriver: ClientOwner {
    /// What it works with.
    struct Tools {
        let tls: TLSContext
        let reference: ServerReference
        let domain: Upstream.Domain
        let names: NameResolver
        let nonce: String
        let cryptography: any Cryptography
        let tell: @Sendable (ProbeReport.Step) -> Void

        /// A session of the account that binds no resource of its own choice.
        func session(of account: JID, _ security: ClientSession.Security) -> ClientSession {
            ClientSession(
                account: account,
                resource: nil,
                security: security,
                cryptography: cryptography,
                parser: StanzaParser()
            )
        }

        /// Whom the server has to be.
        func target(isDirect: Bool) -> ServerLegTarget {
            var target = ServerLegTarget(reference: reference)
            // XEP-0368 §3: with it a server can tell XMPP from what else it serves on this port.
            if isDirect { target.protocols = ["xmpp-client"] }
            return target
        }
    }

    /// How long the server may take to end its stream.
    private static let streamEndTimeout = TimeAmount.seconds(1)

    let plan: ProbePlan
    let tools: Tools
    let watch: ProbeWatch
    private let loop: any EventLoop
    private let promise: EventLoopPromise<ProbeReport>
    var report: ProbeReport {
        didSet {
            guard told < report.steps.count else { return }
            while told < report.steps.count {
                tools.tell(report.steps[told])
                told += 1
            }
            if connection != nil { arm() }
        }
    }
    /// Steps that were told.
    private var told = 0
    /// Which holds this one until it is over.
    private(set) weak var connection: ClientConnection?
    /// The other end is this machine.
    private(set) var isLoopback = false
    private var search: ServiceDiscovery?
    private var lookups = ProbeLookups()
    private var expiry: Scheduled<Void>?
    var choice: LoginChoice?
    let began: Run.Instant
    /// When the step that is under way began.
    var stepBegan: Run.Instant
    private var isSettled = false
    /// What is asked of a session that is ready.
    var questions = ProbeQuestions()

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
        if let via = plan.via {
            let dialer = Dialer(via, timeout: plan.timeout)
            dialer.connect(on: loop).assumeIsolated().whenComplete { [self] result in
                switch result {
                case .success(let channel): connected(channel, directly: plan.isDirect)
                case .failure(let error): unreachable(dialer.words(for: error), Dialer.fault(of: error))
                }
            }
        } else {
            find()
        }
        return promise.futureResult
    }

    private var dialer: DomainDialer {
        DomainDialer(domains: [tools.domain], names: tools.names, timeout: plan.timeout, own: OwnAddresses())
    }

    private func find() {
        let wish: ServiceDiscovery.Wish = plan.isDirect ? .mirroring(isTLS: true) : .any
        let search = ServiceDiscovery(dialer, domain: tools.domain, wish, on: loop) { [self] step in
            watch.made(step)
            report.note(step, &lookups)
        } done: { [self] result in
            let isDirect = self.search?.beginsWithTLS == true
            self.search = nil
            switch result {
            case .success(let channel): connected(channel, directly: isDirect)
            case .failure(let failure): unreachable(failure.words, failure.fault)
            }
        }
        self.search = search
        search.start()
    }

    private func unreachable(_ words: String, _ fault: ConnectionFault) {
        let isAboutNames = !lookups.lines.isEmpty
        report.note(.failed, &lookups)
        if !isAboutNames { report.add(.connection, .failed, [words], took: elapsed()) }
        watch.failed(words, fault)
        settle(by: .client)
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
        let security: ClientSession.Security = directly ? .direct : .startTLS(isRequired: false)
        let session = tools.session(of: plan.account, security)
        let target = tools.target(isDirect: directly)
        let tls = ClientConnection.TLS(context: tools.tls, target: target, binds: plan.bindsChannel)
        let connection = ClientConnection(session, security, tls: tls, owner: self)
        self.connection = connection
        arm()
        do {
            try channel.pipeline.syncOperations.addHandler(connection)
            try channel.syncOptions?.setOption(.autoRead, value: true)
        } catch {
            fail(.stream, "the connection was closed immediately")
            settle(by: .server)
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
        watch.tlsOpened(parameters)
        report.tls = parameters
        var words = "\(parameters.version), \(parameters.suite)"
        if let name = parameters.applicationProtocol { words += ", ALPN \(name)" }
        if report.isDirect { words += ", direct TLS" }
        report.add(.tls, .ok, [words], took: elapsed(), parameters.details)
        report.noteCertificate(parameters, at: watch.now.time)
        if let fault = parameters.overlooked.first {
            let words = parameters.overlooked.map(\.words).joined(separator: "; ")
            watch.blame(
                LoginCause(certificateFault: fault.name),
                at: .tls,
                "the server's certificate is not trusted: \(words)"
            )
        }
        stepBegan = watch.now
        return true
    }

    func tlsFailed(_ fault: TLSFault) {
        fail(.tls, fault.words(peer: "the server"))
        watch.tlsFailed(fault)
    }

    func closed() { settle(by: .server) }

    // MARK: The session

    func happened(_ action: ClientSession.Action) {
        switch action {
        case .announced(let features):
            if report.tls == nil { report.clearFeatures = features }
            report.features = features
        case .offered(let features): offered(features)
        case .authenticated: authenticated()
        case .bound(let jid, let features): bound(jid, features)
        case .element(let element): take(element)
        case .ended: settle(by: .client)
        case .failed(let fault): failed(fault)
        case .send, .beginTLS: break
        }
    }

    // MARK: Ending

    /// Notes a step that failed, unless its failure is noted.
    func fail(_ step: ProbeReport.Step.Name, _ words: String) {
        guard !report.steps.contains(where: { $0.outcome == .failed && $0.name != .certificate }) else { return }
        report.add(step, .failed, [words], took: elapsed())
    }

    /// Ends the stream in order.
    func leave() {
        connection?.session.close()
        // What is asked has been answered: a server that does not end its stream is not waited for as long.
        arm(within: min(plan.timeout, Self.streamEndTimeout))
        connection?.perform()
    }

    func settle(by leg: Leg) {
        guard !isSettled else { return }
        isSettled = true
        expiry?.cancel()
        connection?.close()
        watch.end(by: leg)
        report.timeline = watch.steps
        report.diagnosis = watch.diagnosis
        let other = report.isDirect ? report.clearService : report.directService
        guard report.isOfferSeen, !plan.isDirect, case .announced = other else { return promise.succeed(report) }
        QuickCheck(plan, tools, isDirect: !report.isDirect, on: loop) { [self] sight in
            report.note(sight)
            promise.succeed(report)
        }
        .start(dialer)
    }

    /// Nanoseconds since the step that is under way began; the next begins here.
    func elapsed() -> Int64 {
        let now = watch.now
        defer { stepBegan = now }
        return now.monotonic - stepBegan.monotonic
    }

    /// Waits no longer than this for the next step: bytes that bring none can come for ever.
    private func arm(within time: TimeAmount? = nil) {
        expiry?.cancel()
        guard !isSettled else { return }
        expiry = loop.assumeIsolated().scheduleTask(in: time ?? plan.timeout) { [self] in
            guard !isSettled else { return }
            connection?.session.expired()
            connection?.perform()
            settle(by: .client)
        }
    }
}
