internal import Glibc
internal import NIOCore
internal import TapCore
internal import TapDiagnosis
internal import TapRecord

/// Parameters for connecting to the targets that clients name; shared by all sessions of a listener.
///
/// An open proxy would be abused: a target must belong to the listed servers. These are the host and port of the
/// upstream, or for domains the domain itself, the targets of its SRV records, and the addresses of these hosts.
struct TargetDialer: Sendable {
    /// The listed servers.
    let upstream: Upstream
    /// The resolver for servers and addresses.
    let names: NameResolver
    /// Time limit of each connection attempt.
    let timeout: TimeAmount
    /// The addresses on which this proxy listens.
    let own: OwnAddresses
    /// Whether other targets are relayed without decoding, instead of being refused.
    let relaysOthers: Bool

    /// The name to use for the server if the client names no domain.
    var upstreamName: String {
        switch upstream {
        case .endpoint(let endpoint): endpoint.host
        case .domains(let domains): domains.first?.name ?? "localhost"
        }
    }
}

/// An established connection to the target that a client named.
struct ReachedTarget: Sendable {
    /// The target, as the client named it.
    let request: Record.Beginning.Request
    /// The connection; it does not read yet.
    let channel: any Channel
    /// The steps of connecting, in order.
    let steps: [DiscoveryStep]
    /// Whether the target does not belong to the listed servers, so that the session is relayed without decoding.
    let isBlind: Bool
    /// The name to use for the server if the client names no domain.
    let upstreamName: String
}

/// The reason why a target that a client named was not reached.
struct TargetFailure: Error, Hashable {
    /// The kind of failure; the raw value is the code of the record.
    enum Code: String {
        /// The target does not belong to the listed servers.
        case notListed = "target-not-listed"
        /// The target is xmpptap itself.
        case loop = "target-loop"
        /// xmpptap never connects to this address.
        case notAllowed = "target-not-allowed"
        /// No connection could be established.
        case unreachable = "target-unreachable"
    }

    let code: Code
    /// The answer to the client.
    let outcome: ProxyOutcome
    /// The reason, as a human-readable clause.
    let reason: String
}

/// Checks one target and connects to it.
///
/// Names are looked up on NIO's thread pool; everything else, including the callback, runs on the session's event loop.
final class TargetSearch {
    /// A host that a target may have.
    fileprivate struct Listed {
        let host: String
        /// The only port; nil allows all ports.
        var port: Int?
        /// The domain in ASCII, for the policy on its addresses.
        let domain: String
        /// Whether the host is the target of an SRV record.
        let isFromRecord: Bool
        /// Whether the user has given the host as a server, so that all of its addresses are allowed.
        var isGiven = false
    }

    /// Maximum number of listed hosts that are looked up to compare their addresses with the target's.
    private static let maximumHosts = 32

    private let dialer: TargetDialer
    private let target: Endpoint
    /// The target's addresses, if they are known without a look-up.
    private let known: [SocketAddress]
    /// Whether the client named an IP address.
    private let isAddress: Bool
    private let isLocalClient: Bool
    private let eventLoop: any EventLoop
    private let done: (Result<(channel: any Channel, steps: [DiscoveryStep], isBlind: Bool), TargetFailure>) -> Void
    private var steps: [DiscoveryStep] = []
    private var failures: [(reason: String, outcome: ProxyOutcome)] = []
    private var isOver = false

    /// - Parameters:
    ///   - isLocalClient: Whether the client is on this machine. Only such clients may reach unlisted targets on this
    ///     machine.
    ///   - done: Called once, unless the search is cancelled.
    init(
        _ dialer: TargetDialer,
        target: Endpoint,
        isLocalClient: Bool,
        on eventLoop: any EventLoop,
        done: @escaping (Result<(channel: any Channel, steps: [DiscoveryStep], isBlind: Bool), TargetFailure>) -> Void
    ) {
        self.dialer = dialer
        self.target = target
        self.isLocalClient = isLocalClient
        self.eventLoop = eventLoop
        self.done = done
        let address = try? SocketAddress(ipAddress: target.host, port: target.port)
        known = address.map { [$0] } ?? LocalName(target.host)?.addresses(port: target.port) ?? []
        isAddress = address != nil
    }

    /// Cancels the search; a connection that is being established is closed.
    func cancel() { isOver = true }

    func start() {
        if known.contains(where: dialer.own.accept) { return fail(.loop, .notAllowed, "xmpptap itself listens there") }
        switch dialer.upstream {
        case .endpoint(let endpoint): check([Listed(endpoint)])
        case .domains(let domains): check(domains)
        }
    }

    // MARK: Listed servers

    private func check(_ domains: [Upstream.Domain]) {
        if !isAddress, let domain = domains.first(where: { $0.matches(target.host) }) {
            // The server that the user gave for this domain.
            if let server = domain.server { return find(server, Listed(server)) }
            let listed = Listed(host: domain.ascii, port: nil, domain: domain.ascii, isFromRecord: false)
            return find(Endpoint(host: domain.ascii, port: target.port), listed)
        }
        var listed = domains.map { domain in
            domain.server.map(Listed.init)
                ?? Listed(host: domain.ascii, port: nil, domain: domain.ascii, isFromRecord: false)
        }
        let searched = domains.filter { $0.server == nil && dialer.names.resolver.asksForRecords(of: $0.ascii) }
        let questions = searched.flatMap { domain in
            ServiceRecord.Service.allCases.map { NameResolver.RecordQuestion(service: $0, domain: domain.ascii) }
        }
        guard !questions.isEmpty else { return check(listed) }
        let answers = questions.map { dialer.names.records.ask($0, on: eventLoop) }
        EventLoopFuture.whenAllSucceed(answers, on: eventLoop).assumeIsolated().whenComplete { [self] result in
            guard !isOver else { return }
            for (question, answer) in zip(questions, (try? result.get()) ?? []) {
                steps.append(
                    .records(
                        question.service,
                        of: question.domain,
                        dialer.names.resolver.peers,
                        answer.answer,
                        duration: answer.duration
                    )
                )
                switch answer.answer {
                case .success(let records):
                    for record in records where !record.isRefusal {
                        listed.append(
                            Listed(host: record.target, port: nil, domain: question.domain, isFromRecord: true)
                        )
                    }
                case .failure(let fault): failures.append((fault.message, .failed))
                }
            }
            check(listed)
        }
    }

    private func check(_ listed: [Listed]) {
        let listed = listed.filter { $0.port == nil || $0.port == target.port }
        if !isAddress, let match = listed.first(where: { Self.isSame($0.host, target.host) }) {
            return find(target, match)
        }
        guard !known.isEmpty else { return handleOther() }
        let candidates = Array(listed.prefix(Self.maximumHosts))
        let answers = candidates.map { dialer.names.addresses.ask(question($0.host, $0), on: eventLoop) }
        EventLoopFuture.whenAllSucceed(answers, on: eventLoop).assumeIsolated().whenComplete { [self] result in
            guard !isOver else { return }
            for (candidate, answer) in zip(candidates, (try? result.get()) ?? []) {
                switch answer.answer {
                case .success(let found):
                    let listed = candidate.addresses(found).map(\.packedAddress)
                    let matches = known.filter { listed.contains($0.packedAddress) }
                    if !matches.isEmpty { return connect(matches, isBlind: false) }
                case .failure(let fault): failures.append((fault.message, .failed))
                }
            }
            handleOther()
        }
    }

    private static func isSame(_ host: String, _ other: String) -> Bool {
        func plain(_ name: String) -> Substring {
            let name = name.lowercased()
            return name.hasSuffix(".") ? name.dropLast() : name[...]
        }
        return plain(host) == plain(other)
    }

    /// Handles a target that does not belong to the listed servers.
    private func handleOther() {
        guard dialer.relaysOthers else {
            // Without an answer of the name server it is unknown whether the target is listed.
            if let failure = failures.first { return fail(.unreachable, failure.outcome, failure.reason) }
            return fail(.notListed, .notAllowed, "it does not belong to the listed servers")
        }
        failures = []
        // The policy on SRV records refuses loopback addresses, unless the domain is local.
        let domain = isLocalClient ? "localhost" : "unlisted"
        find(target, Listed(host: target.host, port: nil, domain: domain, isFromRecord: true), isBlind: true)
    }

    // MARK: Connecting

    private func question(_ host: String, _ listed: Listed) -> NameResolver.AddressQuestion {
        // One question for all ports, so that concurrent clients share the look-up.
        let server = ServiceRecord(service: .clear, priority: 0, weight: 0, port: 0, target: host)
        return NameResolver.AddressQuestion(server: server, domain: listed.domain, isFromRecord: listed.isFromRecord)
    }

    /// Looks up the addresses of a host, and connects to it.
    private func find(_ host: Endpoint, _ listed: Listed, isBlind: Bool = false) {
        dialer.names.addresses.ask(question(host.host, listed), on: eventLoop).assumeIsolated().whenComplete {
            [self] result in
            guard !isOver else { return }
            switch result {
            case .failure(let error): fail(.unreachable, .failed, "\(error)")
            case .success((.failure(let fault), let duration)):
                steps.append(DiscoveryStep(.addresses, .failed, host.host, fault.message, duration: duration))
                fail(.unreachable, .failed, fault.message)
            case .success((.success(let found), let duration)):
                guard !found.usable.isEmpty || !found.refused.isEmpty else {
                    return fail(.unreachable, .hostUnreachable, "no such name")
                }
                let all = (found.usable + found.refused.map(\.0)).compactMap(\.ipAddress).joined(separator: ", ")
                steps.append(
                    DiscoveryStep(.addresses, .ok, host.host, all, duration: duration, isDetail: true)
                )
                let addresses = listed.addresses(found)
                guard !addresses.isEmpty else {
                    let reason = found.refused.first.map { "\($0.0.ipAddress ?? "?") is \($0.1)" } ?? ""
                    return fail(.notAllowed, .notAllowed, reason)
                }
                connect(addresses.map { $0.with(port: host.port) }, isBlind: isBlind)
            }
        }
    }

    private func connect(_ addresses: [SocketAddress], isBlind: Bool) {
        let usable = addresses.filter { !dialer.own.accept($0) }
        guard !usable.isEmpty else { return fail(.loop, .notAllowed, "xmpptap itself listens there") }
        failures = []
        AddressRace(usable, on: eventLoop, timeout: dialer.timeout) { [self] attempt in
            let subject = attempt.address.endpoint?.description ?? "\(target)"
            guard let error = attempt.error else {
                return steps.append(
                    DiscoveryStep(.connection, .ok, subject, "connected", duration: attempt.duration)
                )
            }
            let message = Dialer.reason(error, timeout: dialer.timeout)
            steps.append(DiscoveryStep(.connection, .failed, subject, message, duration: attempt.duration))
            failures.append(("\(subject): \(message)", ProxyOutcome(error)))
        } done: { [self] channel in
            guard !isOver else {
                channel?.close(promise: nil)
                return
            }
            guard let channel else {
                let outcomes = failures.map(\.outcome)
                let order: [ProxyOutcome] = [.connectionRefused, .timeout, .hostUnreachable, .networkUnreachable]
                let outcome = order.first(where: outcomes.contains) ?? .failed
                return fail(.unreachable, outcome, failures.map(\.reason).joined(separator: "; "))
            }
            isOver = true
            dialer.own.add(channel)
            done(.success((channel, steps, isBlind)))
        }
        .start()
    }

    private func fail(_ code: TargetFailure.Code, _ outcome: ProxyOutcome, _ reason: String) {
        guard !isOver else { return }
        isOver = true
        done(.failure(TargetFailure(code: code, outcome: outcome, reason: reason)))
    }
}

extension TargetSearch.Listed {
    /// Creates the host of a server that the user has given.
    fileprivate init(_ server: Endpoint) {
        self.init(host: server.host, port: server.port, domain: server.host, isFromRecord: false, isGiven: true)
    }

    /// Returns the addresses that may be connected to.
    fileprivate func addresses(_ found: NameResolver.Addresses) -> [SocketAddress] {
        isGiven ? found.usable + found.refused.map(\.0) : found.usable
    }
}

extension Endpoint {
    /// Creates the endpoint of a target; nil if its address is invalid.
    init?(_ target: NamedTarget) {
        switch target.host {
        case .name(let name): self.init(host: name, port: target.port)
        case .address(let bytes):
            guard let text = (try? SocketAddress(packedIPAddress: ByteBuffer(bytes: bytes), port: 0))?.ipAddress else {
                return nil
            }
            self.init(host: text, port: target.port)
        }
    }
}

extension NamedTarget {
    /// Creates the target that is an IP address.
    init(_ address: SocketAddress) {
        self.init(host: .address(address.packedAddress), port: address.port ?? 0)
    }
}

extension ProxyOutcome {
    /// Creates the outcome of a failed connection attempt.
    fileprivate init(_ error: any Error) {
        switch error {
        case ChannelError.connectTimeout: self = .timeout
        case let error as IOError:
            switch error.errnoCode {
            case ECONNREFUSED: self = .connectionRefused
            case ENETUNREACH: self = .networkUnreachable
            case EHOSTUNREACH: self = .hostUnreachable
            case ETIMEDOUT: self = .timeout
            default: self = .failed
            }
        default: self = .failed
        }
    }
}
