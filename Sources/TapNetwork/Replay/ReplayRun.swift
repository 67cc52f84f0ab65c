public import NIOCore
public import TapReplay
internal import TapSecurity
public import XMPPCore

/// Plays a recording against a live server, once or in several copies at the same time.
public struct ReplayRun: Sendable {
    /// An account that is played.
    public struct Account: Sendable {
        /// Its bare JID in the recording.
        public let recorded: JID
        /// Its bare JID at the server.
        public let live: JID
        /// Its password, in clear.
        public let password: String

        /// Puts the parts together.
        public init(recorded: JID, live: JID, password: String) {
            self.recorded = recorded
            self.live = live
            self.password = password
        }
    }

    /// What came of one copy.
    public struct Outcome: Sendable {
        /// Why it could not be played to the end; nil if it was.
        public var failure: Failure?
        /// What differed, in the order in which it was found.
        public var divergences: [Divergence]
        /// Figures.
        public var progress: Replayer.Progress
        /// Which recorded value was which live value.
        public var bindings: ValueBindings
    }

    /// Why a replay could not be played.
    public struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// Whether the server could not be reached; otherwise a login failed.
        public let isOfNetwork: Bool
        /// One line for people.
        public let description: String
    }

    private let script: ReplayScript
    private let server: LiveServer
    private let rules: NoiseRules
    private let options: ReplayOptions
    private let seed: UInt64

    /// - Parameters:
    ///   - script: What to play.
    ///   - server: Against which server.
    ///   - rules: What may differ.
    ///   - options: How to play it.
    ///   - seed: Of what is made up; the same seed makes up the same.
    public init(
        _ script: ReplayScript,
        server: LiveServer,
        rules: NoiseRules,
        options: ReplayOptions,
        seed: UInt64
    ) {
        self.script = script
        self.server = server
        self.rules = rules
        self.options = options
        self.seed = seed
    }

    /// Plays copies at the same time.
    ///
    /// - Parameters:
    ///   - copies: The accounts of each.
    ///   - ramp: The time over which their beginnings are spread.
    ///   - tell: Called now and then with the figures of the first copy, on an event loop.
    /// - Returns: What came of each copy, in their order.
    public func outcomes(
        of copies: [[Account]],
        ramp: TimeAmount = .zero,
        on group: any EventLoopGroup,
        tell: @escaping @Sendable (Replayer.Progress) -> Void = { _ in }
    ) async throws -> [Outcome] {
        let loop = group.next()
        return try await loop.flatSubmit {
            let parser = StanzaParser()
            let step = copies.count > 1 ? ramp.nanoseconds / Int64(copies.count) : 0
            let outcomes = copies.enumerated().map { index, accounts in
                var generator = ReplayGenerator(seed: seed &+ UInt64(index))
                let replayer = Replayer(
                    script,
                    accounts: accounts.map { ($0.recorded, $0.live) },
                    rules: rules,
                    options: options,
                    using: &generator
                )
                let driver = ReplayDriver(replayer, accounts, server, parser, on: loop, tell: index == 0 ? tell : nil)
                return driver.run(after: .nanoseconds(Int64(index) * step))
            }
            return EventLoopFuture.whenAllSucceed(outcomes, on: loop)
        }.get()
    }
}

/// Performs what one replayer wants, on one event loop; held by its clients and its timer until it is over.
private final class ReplayDriver {
    private var replayer: Replayer
    private let accounts: [JID: ReplayRun.Account]
    private let server: LiveServer
    private let parser: StanzaParser
    private let loop: any EventLoop
    private let promise: EventLoopPromise<ReplayRun.Outcome>
    private let tell: (@Sendable (Replayer.Progress) -> Void)?
    private var clients: [Int: LiveClient] = [:]
    /// Clients that are logging in.
    private var opening: Set<Int> = []
    private var timer: Scheduled<Void>?
    private var timerDeadline: Int64?
    private var isPerforming = false
    /// A connection takes no more at the moment.
    private var isStalled = false
    private var isOver = false

    init(
        _ replayer: Replayer,
        _ accounts: [ReplayRun.Account],
        _ server: LiveServer,
        _ parser: StanzaParser,
        on loop: any EventLoop,
        tell: (@Sendable (Replayer.Progress) -> Void)?
    ) {
        self.replayer = replayer
        self.accounts = Dictionary(accounts.map { ($0.recorded, $0) }) { first, _ in first }
        self.server = server
        self.parser = parser
        self.loop = loop
        self.tell = tell
        promise = loop.makePromise()
    }

    func run(after delay: TimeAmount) -> EventLoopFuture<ReplayRun.Outcome> {
        loop.assumeIsolated().scheduleTask(in: delay) { [self] in perform { $0.tick(at: Self.now) } }
        return promise.futureResult
    }

    private static var now: Int64 { Int64(clamping: NIODeadline.now().uptimeNanoseconds) }

    /// Tells the replayer something, and does what it wants then.
    private func perform(_ body: (inout Replayer) -> Void) {
        guard !isOver else { return }
        body(&replayer)
        guard !isPerforming else { return }
        isPerforming = true
        while !isOver, !isStalled, let action = replayer.next() { perform(action) }
        isPerforming = false
        guard !isOver else { return }
        tell?(replayer.progress)
        arm()
    }

    private func perform(_ action: Replayer.Action) {
        switch action {
        case .connect(let client, let resuming): connect(client, resuming)
        case .send(let client, let bytes):
            guard let client = clients[client] else { return }
            client.send(bytes)
            isStalled = !client.isWritable
        case .close(let client): clients[client]?.close()
        case .drop(let client): clients.removeValue(forKey: client)?.drop()
        case .finish: finish(nil)
        }
    }

    private func connect(_ index: Int, _ resuming: (id: String, handled: UInt32)?) {
        let recorded = replayer.script.clients[index]
        guard let account = accounts[recorded.account] else {
            return finish(.init(isOfNetwork: false, description: "no account for \(recorded.account)"))
        }
        let live = LiveAccount(
            jid: account.live,
            password: account.password,
            resource: recorded.resource,
            language: recorded.language,
            resumption: resuming.map { .init(id: $0.id, handled: $0.handled) }
        )
        let client = LiveClient(live, at: server, parser: parser, on: loop) { [self] event in
            happened(event, index, account)
        }
        client.onWritable = { [self] in
            isStalled = false
            perform { $0.tick(at: Self.now) }
        }
        clients[index] = client
        opening.insert(index)
        client.connect()
    }

    private func happened(_ event: LiveClient.Event, _ client: Int, _ account: ReplayRun.Account) {
        let now = Self.now
        switch event {
        case .bound(let jid, _):
            opening.remove(client)
            perform { $0.handle(.bound(jid), client: client, at: now) }
        case .resumed:
            opening.remove(client)
            perform { $0.handle(.resumed, client: client, at: now) }
        case .received(let bytes, let element):
            perform { $0.handle(.received(bytes, element), client: client, at: now) }
        case .ended(let end):
            isStalled = false
            clients[client] = nil
            guard opening.remove(client) == nil else { return finish(Self.failure(end, account.live)) }
            var reason: String?
            if case .failed(let fault) = end { reason = fault.reason }
            perform { $0.handle(.ended(reason), client: client, at: now) }
        }
    }

    private static func failure(_ end: LiveEnd, _ account: JID) -> ReplayRun.Failure {
        switch end {
        case .unreachable(let words): .init(isOfNetwork: true, description: words)
        case .closed:
            .init(isOfNetwork: false, description: "\(account): the server closed the stream during the login")
        case .failed(let fault):
            .init(
                isOfNetwork: false,
                description: "\(account): login failed at \(fault.step.rawValue): \(fault.reason)"
            )
        }
    }

    /// The timer is only moved when it fires, or to an earlier time.
    private func arm() {
        guard let deadline = replayer.nextDeadline else { return }
        if let timerDeadline, timerDeadline <= deadline { return }
        timer?.cancel()
        timerDeadline = deadline
        let delay = TimeAmount.nanoseconds(max(0, deadline - Self.now))
        timer = loop.assumeIsolated().scheduleTask(in: delay) { [self] in
            timerDeadline = nil
            perform { $0.tick(at: Self.now) }
        }
    }

    private func finish(_ failure: ReplayRun.Failure?) {
        isOver = true
        timer?.cancel()
        for client in clients.values { failure == nil ? client.close() : client.drop() }
        clients = [:]
        promise.succeed(
            ReplayRun.Outcome(
                failure: failure,
                divergences: replayer.divergences,
                progress: replayer.progress,
                bindings: replayer.bindings
            )
        )
    }
}
