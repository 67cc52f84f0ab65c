package import NIOCore
package import TapReplay
internal import TapSecurity
package import XMPPCore

/// Replays a recording against a live server, as one copy or as several at the same time.
package struct ReplayRun: Sendable {
    /// An account in the recording, and its counterpart at the live server.
    package struct Account: Sendable {
        /// The account's bare JID in the recording.
        package let recorded: JID
        /// The account's bare JID at the live server.
        package let live: JID
        /// The live account's password, in clear text.
        package let password: String

        package init(recorded: JID, live: JID, password: String) {
            self.recorded = recorded
            self.live = live
            self.password = password
        }
    }

    /// The result of one copy.
    package struct Outcome: Sendable {
        /// The reason why the copy was not replayed to its end; nil if it was.
        package var failure: Failure?
        /// The differences, in the order of the recording.
        package var divergences: [Divergence]
        /// Number of further differences that ``divergences`` omits, by class, because there are too many.
        package var omitted: [Divergence.Class: Int]
        /// The optional elements that only one of two equal stanzas had, and how often.
        package var optionalElements: [OptionalElement: Int]
        /// Statistics of the replay.
        package var progress: Replayer.Progress
        /// The recorded values and the live values that correspond to them.
        package var bindings: ValueBindings
    }

    /// The reason why a replay did not reach its end.
    package struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        /// The kind of failure.
        package enum Code: Sendable, Hashable {
            /// The server could not be reached.
            case unreachable
            /// The server's certificate is not trusted.
            case untrusted
            /// The server did not answer in time.
            case silent
            /// The server sent only a part of an answer in time.
            case incomplete
            /// The server refused the user name or the password.
            case notAuthorized
            /// Another failure of a login, or of the preparation.
            case other
            /// The replay was cancelled.
            case interrupted
        }

        /// The kind of failure.
        package let code: Code
        /// The account whose login failed; nil for other failures.
        package let account: JID?
        /// The reason, as a clause.
        package let reason: String

        init(code: Code, account: JID? = nil, reason: String) {
            (self.code, self.account, self.reason) = (code, account, reason)
        }

        /// One line for users.
        package var description: String { "\(account.map { "\($0): " } ?? "")\(reason)" }
    }

    private let script: ReplayScript
    private let server: LiveServer
    private let rules: NoiseRules
    private let options: ReplayOptions
    private let seed: UInt64

    /// - Parameters:
    ///   - script: The script to replay.
    ///   - server: The live server.
    ///   - rules: The permitted differences.
    ///   - options: The options of the replay.
    ///   - seed: The seed of generated values; the same seed generates the same values.
    package init(
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

    /// Replays copies at the same time.
    ///
    /// - Parameters:
    ///   - copies: The accounts of each copy.
    ///   - ramp: The time over which the starts of the copies are spread.
    ///   - group: The event loops; one of them is used.
    ///   - onProgress: Called repeatedly on an event loop with the progress of the first copy, and the number of completed
    ///     copies.
    /// - Returns: The result of each copy, in order. If the task is cancelled, the clients close their streams.
    package func outcomes(
        of copies: [[Account]],
        ramp: TimeAmount = .zero,
        on group: any EventLoopGroup,
        onProgress: @escaping @Sendable (Replayer.Progress, _ over: Int) -> Void = { _, _ in }
    ) async throws -> [Outcome] {
        let loop = group.next()
        let drivers = NIOLoopBoundBox<[ReplayDriver]>.makeBoxSendingValue([], eventLoop: loop)
        let outcomes = loop.flatSubmit {
            let parser = StanzaParser()
            var options = options
            options.writeSize = LiveClient.writeSize
            let sendings = script.sendings(options, rules: rules, sharesTemplates: copies.count > 1)
            let logins = LoginQueue()
            let activity = ServerActivity(within: options.wait)
            let lag = LoopLag(on: loop) { lag in for driver in drivers.value { driver.excuse(lag) } }
            let count = NIOLoopBoundBox(0, eventLoop: loop)
            let first = NIOLoopBoundBox(Replayer.Progress(), eventLoop: loop)
            let step = copies.count > 1 ? ramp.nanoseconds / Int64(copies.count) : 0
            let outcomes = copies.enumerated().map { index, accounts in
                var generator = ReplayGenerator(seed: seed &+ UInt64(index))
                let replayer = Replayer(
                    script,
                    accounts: accounts.map { ($0.recorded, $0.live) },
                    copy: copies.count > 1 ? index + 1 : nil,
                    rules: rules,
                    options: options,
                    sendings: sendings,
                    using: &generator
                )
                let driver = ReplayDriver(
                    replayer,
                    accounts,
                    server,
                    logins,
                    activity,
                    parser,
                    on: loop,
                    onProgress: index > 0
                        ? nil
                        : { progress in
                            first.value = progress
                            onProgress(progress, count.value)
                        }
                )
                drivers.value.append(driver)
                let outcome = driver.run(after: .nanoseconds(Int64(index) * step))
                outcome.assumeIsolated().whenComplete { _ in
                    count.value += 1
                    onProgress(first.value, count.value)
                }
                return outcome
            }
            let all = EventLoopFuture.whenAllSucceed(outcomes, on: loop)
            all.assumeIsolated().whenComplete { _ in lag.stop() }
            return all
        }
        return try await withTaskCancellationHandler {
            try await outcomes.get()
        } onCancel: {
            loop.execute { for driver in drivers.value { driver.interrupt() } }
        }
    }
}

/// The time at which the server last sent an expected item to any copy of a replay. Used on one event loop only.
private final class ServerActivity {
    private let time: Int64
    var last = Int64.min

    /// - Parameter time: Nanoseconds for which activity counts as recent.
    init(within time: Int64) { self.time = time }

    func isRecent(_ now: Int64) -> Bool { last > .min && now - last < time }
}

/// Performs the actions of one replayer on one event loop; kept alive by its clients and its timer until the end.
private final class ReplayDriver {
    private var replayer: Replayer
    private let accounts: [JID: ReplayRun.Account]
    private let server: LiveServer
    private let logins: LoginQueue
    private let activity: ServerActivity
    private let parser: StanzaParser
    private let loop: any EventLoop
    private let promise: EventLoopPromise<ReplayRun.Outcome>
    private let onProgress: ((Replayer.Progress) -> Void)?
    private var clients: [Int: LiveClient] = [:]
    /// Indices of the clients that are logging in.
    private var opening: Set<Int> = []
    /// Futures of dropped connections that may still have data to send.
    private var closing: [EventLoopFuture<Void>] = []
    private var timer: Scheduled<Void>?
    private var timerDeadline: Int64?
    /// Latest time at which the replayer must be called.
    private var deadline = Int64.max
    private var isPerforming = false
    private var isOver = false

    init(
        _ replayer: Replayer,
        _ accounts: [ReplayRun.Account],
        _ server: LiveServer,
        _ logins: LoginQueue,
        _ activity: ServerActivity,
        _ parser: StanzaParser,
        on loop: any EventLoop,
        onProgress: ((Replayer.Progress) -> Void)?
    ) {
        self.replayer = replayer
        self.accounts = Dictionary(accounts.map { ($0.recorded, $0) }) { first, _ in first }
        self.server = server
        self.logins = logins
        self.activity = activity
        self.parser = parser
        self.loop = loop
        self.onProgress = onProgress
        promise = loop.makePromise()
    }

    func run(after delay: TimeAmount) -> EventLoopFuture<ReplayRun.Outcome> {
        loop.assumeIsolated().scheduleTask(in: delay) { [self] in perform { $0.tick(at: Self.now) } }
        return promise.futureResult
    }

    private static var now: Int64 { Int64(clamping: NIODeadline.now().uptimeNanoseconds) }

    /// Extends all waits by the delay of the event loop; see ``LoopLag``.
    func excuse(_ lag: Int64) { if !isOver { replayer.excuse(lag, at: Self.now) } }

    /// Passes an event to the replayer, and performs its actions.
    private func perform(_ body: (inout Replayer) -> Void) {
        guard !isOver else { return }
        let matched = replayer.progress.matched
        replayer.othersServed = activity.last
        reportIncomplete()
        body(&replayer)
        if replayer.progress.matched > matched { activity.last = Self.now }
        guard !isPerforming else { return }
        isPerforming = true
        while !isOver, let action = replayer.next(at: Self.now) { perform(action) }
        isPerforming = false
        guard !isOver else { return }
        onProgress?(replayer.progress)
        deadline = replayer.nextDeadline ?? .max
        arm()
    }

    /// Reports items that are still arriving to the replayer, before its wait ends.
    private func reportIncomplete() {
        guard Self.now >= deadline else { return }
        for (index, client) in clients {
            let (count, time) = client.incomplete
            replayer.reportIncomplete(count, client: index, at: time)
        }
    }

    private func perform(_ action: Replayer.Action) {
        switch action {
        case .connect(let client, let resuming): connect(client, resuming)
        case .send(let index, let bytes):
            guard let client = clients[index] else { return }
            client.send(bytes)
            if !client.isWritable { replayer.handle(.stalled, client: index, at: Self.now) }
        case .close(let client): clients[client]?.close()
        case .drop(let client): if let client = clients.removeValue(forKey: client) { closing.append(client.drop()) }
        case .finish: finish(replayer.failure.map { .init(code: .other, reason: $0) })
        }
    }

    private func connect(_ index: Int, _ resuming: (id: String, handled: UInt32)?) {
        let recorded = replayer.script.clients[index]
        guard let account = accounts[recorded.account] else {
            return finish(.init(code: .other, reason: "no account for \(recorded.account)"))
        }
        let live = LiveAccount(
            jid: account.live,
            password: password(of: account, for: recorded),
            resource: recorded.resource,
            language: recorded.language,
            resumption: resuming.map { .init(id: $0.id, handled: $0.handled) }
        )
        let client = LiveClient(live, at: server, parser: parser, on: loop) { [self] event in
            handle(event, index, account)
        }
        client.isServerAtWork = { [activity] in activity.isRecent(Self.now) }
        client.onWritable = { [self] in
            perform { $0.handle(.writable, client: index, at: Self.now) }
        }
        clients[index] = client
        logins.begin { [self] in
            guard !isOver, clients[index] === client else { return false }
            guard !logins.allLoginsFailed else {
                let reason = "not tried: \(LoginQueue.limit) logins had failed, and none had succeeded"
                finish(.init(code: .other, account: account.live, reason: reason))
                return false
            }
            opening.insert(index)
            client.connect()
            return true
        }
    }

    /// Returns the password for a login. If the recorded login was refused as not authorized, this is a wrong password,
    /// because the recorded one is not known.
    private func password(of account: ReplayRun.Account, for client: ReplayScript.Client) -> String {
        let isWrong = client.refusal.map { $0 == "not-authorized" || $0 == "temporary-auth-failure" } ?? false
        return isWrong ? "\(account.password)-wrong" : account.password
    }

    /// Ends the login of a client.
    ///
    /// - Returns: Whether the client was logging in.
    private func endLogin(_ client: Int, well: Bool) -> Bool {
        guard opening.remove(client) != nil else { return false }
        if well { activity.last = Self.now }
        // Start the next login only after this event has been handled.
        loop.assumeIsolated().execute { [logins] in logins.ended(well: well) }
        return true
    }

    private func handle(_ event: LiveClient.Event, _ client: Int, _ account: ReplayRun.Account) {
        let now = Self.now
        switch event {
        case .bound(let jid, let features):
            _ = endLogin(client, well: true)
            if let offer = clients[client]?.serverOffer {
                perform { $0.handle(.offered(offer), client: client, at: now) }
            }
            perform { $0.handle(.bound(jid, features: features.element), client: client, at: now) }
        case .resumed:
            _ = endLogin(client, well: true)
            perform { $0.handle(.resumed, client: client, at: now) }
        case .received(let bytes, let element):
            perform { $0.handle(.received(bytes, element), client: client, at: now) }
        case .ended(let end):
            clients[client] = nil
            if replayer.script.clients[client].refusal != nil, case .failed(let fault) = end,
                case .refused(let condition?) = fault.code
            {
                guard endLogin(client, well: true) else { return }
                return perform { $0.handle(.refused(condition), client: client, at: now) }
            }
            guard !endLogin(client, well: false) else { return finish(Self.failure(end, account.live)) }
            var reason: String?
            if case .failed(let fault) = end { reason = fault.reason }
            perform { $0.handle(.ended(reason), client: client, at: now) }
        }
    }

    private static func failure(_ end: LiveEnd, _ account: JID) -> ReplayRun.Failure {
        switch end {
        case .unreachable(let reason): .init(code: .unreachable, reason: reason)
        case .untrusted(let reason): .init(code: .untrusted, account: account, reason: "login failed at tls: \(reason)")
        case .closed:
            .init(code: .other, account: account, reason: "the server closed the stream during the login")
        case .failed(let fault):
            .init(
                code: code(of: fault),
                account: account,
                reason: "login failed at \(fault.step.rawValue): \(fault.reason)"
            )
        }
    }

    private static func code(of fault: ClientFault) -> ReplayRun.Failure.Code {
        switch fault.code {
        case .refused("not-authorized"): .notAuthorized
        case .silent: .silent
        case .incomplete: .incomplete
        case .refused, .altered, .unproven, .unable, .broken: .other
        }
    }

    /// Ends the replay before its end.
    func interrupt() {
        guard !isOver else { return }
        replayer.stop()
        finish(.init(code: .interrupted, reason: "interrupted"))
    }

    /// Schedules the timer for ``deadline``; it is moved only after it fired, or to an earlier time.
    private func arm() {
        guard deadline < .max else { return }
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
        guard !isOver else { return }
        isOver = true
        let played = replayer.progress.sent + replayer.progress.matched
        let failure = failure.map { failure in
            guard played > 0 || failure.code == .interrupted else { return failure }
            let reason = "\(failure.reason) after \(played) of \(replayer.progress.total) stanzas"
            return .init(code: failure.code, account: failure.account, reason: reason)
        }
        timer?.cancel()
        let ended = Array(clients.values)
        clients = [:]
        // A session that is not closed may stay alive on the server, and receive stanzas of the next replay.
        for client in ended { client.close() }
        let outcome = ReplayRun.Outcome(
            failure: failure,
            divergences: replayer.divergences,
            omitted: replayer.omitted,
            optionalElements: replayer.optionalElements,
            progress: replayer.progress,
            bindings: replayer.bindings
        )
        // The process may exit after the outcome, so wait until all data for a slow server is written.
        let written = EventLoopFuture.andAllComplete(closing + ended.map { $0.written() }, on: loop)
        written.assumeIsolated().whenComplete { [promise] _ in promise.succeed(outcome) }
    }
}
