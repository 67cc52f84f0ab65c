internal import NIOCore
internal import TapRecord
internal import TapSecurity

/// Checks the domain's other service, which the probe did not use: whether TLS starts there, and with which
/// certificate. It stops after the handshake, and is not recorded.
///
/// Used on one event loop. Pending callbacks keep it alive.
final class QuickCheck: ClientOwner {
    struct Outcome {
        var address: String?
        /// The negotiated TLS parameters; nil if TLS failed.
        var parameters: TLSParameters?
        /// The failure, as a clause; nil if the handshake succeeded.
        var failure: String?
        var duration: Int64 = 0
    }

    private let plan: ProbePlan
    private let tools: ProbeDriver.Tools
    private let isDirect: Bool
    private let loop: any EventLoop
    private let done: (Outcome) -> Void
    private var outcome = Outcome()
    private var search: ServiceDiscovery?
    private weak var connection: ClientConnection?
    private var expiry: Scheduled<Void>?
    private var began = NIODeadline.now()
    private var isOver = false

    /// - Parameters:
    ///   - isDirect: Whether to check the service for direct TLS; otherwise the one for STARTTLS.
    ///   - done: Called once, with the result.
    init(
        _ plan: ProbePlan,
        _ tools: ProbeDriver.Tools,
        isDirect: Bool,
        on loop: any EventLoop,
        done: @escaping (Outcome) -> Void
    ) {
        self.plan = plan
        self.tools = tools
        self.isDirect = isDirect
        self.loop = loop
        self.done = done
    }

    func start(_ dialer: DomainDialer) {
        let search = ServiceDiscovery(dialer, domain: tools.domain, .mirroring(isTLS: isDirect), on: loop) { _ in
        } done: { [self] result in
            self.search = nil
            switch result {
            case .success(let channel): connected(channel)
            case .failure(let failure): finish(failure.message)
            }
        }
        self.search = search
        search.start()
    }

    private func connected(_ channel: any Channel) {
        began = .now()
        outcome.address = channel.remoteAddress?.endpoint?.description
        let security: ClientSession.Security = isDirect ? .direct : .startTLS(isRequired: true)
        let connection = tools.client(of: plan, security, owner: self)
        self.connection = connection
        expiry = loop.assumeIsolated().scheduleTask(in: plan.timeout) { [self] in finish("no answer") }
        do {
            try channel.pipeline.syncOperations.addHandler(connection)
            try channel.syncOptions?.setOption(.autoRead, value: true)
        } catch {
            finish("the connection was closed immediately")
        }
    }

    func handle(_ action: ClientSession.Action) {
        if case .failed(let fault) = action { finish(fault.reason) }
    }

    func tlsOpened(_ parameters: TLSParameters) -> Bool {
        outcome.parameters = parameters
        finish(nil)
        return false
    }

    func passes(_ direction: Direction, _ bytes: Span<UInt8>) {}
    func tlsBegins(directly: Bool) {}
    func tlsFailed(_ fault: TLSFault) { finish(fault.explanation(peer: "the server")) }
    func closed() { finish("the server closed the connection") }

    private func finish(_ failure: String?) {
        guard !isOver else { return }
        isOver = true
        expiry?.cancel()
        outcome.failure = failure
        outcome.duration = (NIODeadline.now() - began).nanoseconds
        connection?.close()
        done(outcome)
    }
}
