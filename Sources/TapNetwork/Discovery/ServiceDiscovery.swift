internal import NIOCore
internal import Synchronization
internal import TapCore
internal import TapDiagnosis
internal import TapSecurity

/// Parameters for finding and connecting to the servers of domains; shared by all sessions of a listener.
struct DomainDialer: Sendable {
    /// The domains whose servers may be used.
    let domains: [Upstream.Domain]
    /// The resolver for servers and addresses.
    let names: NameResolver
    /// Time limit of each connection attempt.
    let timeout: TimeAmount
    /// The addresses on which this proxy listens.
    let own: OwnAddresses

    /// Returns the domain that the client named; nil if it is not allowed. Without a name, returns the only domain, or
    /// nil if there are several.
    func domain(named name: String?) -> Upstream.Domain? {
        guard let name else { return domains.count == 1 ? domains[0] : nil }
        return domains.first { $0.matches(name) }
    }
}

/// Finds the server of one session's domain and connects to it; reports each step.
///
/// Names are looked up on NIO's thread pool; everything else, including all callbacks, runs on the session's event
/// loop.
final class ServiceDiscovery {
    /// The reason why no server was reached, as a line for users.
    struct Failure: Error {
        let message: String
        let fault: ConnectionFault
    }

    /// Maximum number of servers that are tried.
    private static let maximumServers = 16

    /// The kinds of servers that are accepted.
    enum Requirement {
        /// A server that starts as the client did: with direct TLS or without.
        case mirroring(isTLS: Bool)
        /// A server that starts this way, regardless of the client.
        case chosen(isTLS: Bool)
        case any

        /// Whether a server without an SRV record is expected to use direct TLS.
        var isTLS: Bool {
            switch self {
            case .mirroring(let isTLS), .chosen(let isTLS): isTLS
            case .any: false
            }
        }

        /// Returns why a server is skipped, as a human-readable clause; nil if the server is usable.
        func objection(to service: ServiceRecord.Service) -> String? {
            switch (self, service) {
            case (.mirroring(true), .clear): "the client uses direct TLS, this server does not"
            case (.mirroring(false), .tls): "the client does not use direct TLS, this server does"
            case (.chosen(true), .clear): "direct TLS is required, this server does not use it"
            case (.chosen(false), .tls): "TLS is off on the server leg, this server uses direct TLS"
            default: nil
            }
        }
    }

    /// Whether the server that was found uses direct TLS.
    private(set) var beginsWithTLS = false

    private let dialer: DomainDialer
    private let domain: Upstream.Domain
    /// The kinds of servers that are accepted.
    private let requirement: Requirement
    private let eventLoop: any EventLoop
    private let onStep: (DiscoveryStep) -> Void
    private let done: (Result<any Channel, Failure>) -> Void
    private var servers: ArraySlice<ServiceRecord> = []
    private var isFromRecord = true
    private var failures: [String] = []
    private var faults: [ConnectionFault] = []
    private var isCancelled = false

    /// - Parameter wish: The kinds of servers that are accepted.
    init(
        _ dialer: DomainDialer,
        domain: Upstream.Domain,
        _ requirement: Requirement,
        on eventLoop: any EventLoop,
        onStep: @escaping (DiscoveryStep) -> Void,
        done: @escaping (Result<any Channel, Failure>) -> Void
    ) {
        self.dialer = dialer
        self.domain = domain
        self.requirement = requirement
        self.eventLoop = eventLoop
        self.onStep = onStep
        self.done = done
    }

    func start() {
        if let server = domain.server { return connect(to: server) }
        guard dialer.names.resolver.asksForRecords(of: domain.ascii) else { return fallBack() }
        let answers = ServiceRecord.Service.allCases.map {
            dialer.names.records.ask(NameResolver.RecordQuestion(service: $0, domain: domain.ascii), on: eventLoop)
        }
        EventLoopFuture.whenAllSucceed(answers, on: eventLoop).assumeIsolated().whenComplete { [self] result in
            switch result {
            case .success(let answers) where answers.count == 2: choose(clear: answers[0], tls: answers[1])
            case .success, .failure: fail("DNS look-up failed")
            }
        }
    }

    /// Cancels the search; a connection that is being established is closed.
    func cancel() { isCancelled = true }

    /// Connects to the server that was configured for the domain. Whether it uses direct TLS is decided by ``wish``.
    private func connect(to server: Endpoint) {
        let began = NIODeadline.now()
        let single = Dialer(server, timeout: dialer.timeout)
        single.connect(on: eventLoop).assumeIsolated().whenComplete { [self] result in
            let duration = (NIODeadline.now() - began).nanoseconds
            switch result {
            case .failure(let error):
                guard !isCancelled else { return }
                isCancelled = true
                let message = single.message(for: error)
                onStep(DiscoveryStep(.connection, .failed, "\(server)", message, duration: duration))
                done(.failure(Failure(message: message, fault: Dialer.fault(of: error))))
            case .success(let channel):
                guard !isCancelled else { return channel.close(promise: nil) }
                let subject = channel.remoteAddress?.endpoint?.description ?? "\(server)"
                onStep(DiscoveryStep(.connection, .ok, subject, "connected", duration: duration))
                beginsWithTLS = requirement.isTLS
                done(.success(channel))
            }
        }
    }

    // MARK: Names

    private var peers: ServerReference.Service { dialer.names.resolver.peers }

    private typealias RecordAnswer = (answer: Result<[ServiceRecord], LookupFault>, duration: Int64)

    private func choose(clear: RecordAnswer, tls: RecordAnswer) {
        guard !isCancelled else { return }
        for (service, answer) in zip(ServiceRecord.Service.allCases, [clear, tls]) {
            onStep(.records(service, of: domain.ascii, peers, answer.answer, duration: answer.duration))
        }
        var generator = SystemRandomNumberGenerator()
        switch ServiceChoice(clear: clear.answer, tls: tls.answer, using: &generator) {
        case .servers(let servers):
            self.servers = servers.prefix(Self.maximumServers)
            next()
        case .refused: fail("its SRV record says that it has no service for \(peers)", .notOffered)
        case .fallback: fallBack()
        case .failed(let fault): fail(fault.message, .lookupFailed)
        }
    }

    /// Used without SRV records: tries the domain's own address with the usual port (RFC 6120 §3.2.2), without
    /// direct TLS.
    private func fallBack() {
        isFromRecord = false
        servers = [.fallback(of: domain.ascii, for: peers)]
        next()
    }

    // MARK: Servers

    private func next() {
        guard !isCancelled else { return }
        guard let server = servers.popFirst() else {
            let message = failures.isEmpty ? "no server found" : failures.joined(separator: "; ")
            return fail(message, Dialer.fault(among: faults))
        }
        let place = "\(server.target):\(server.port)"
        if let why = requirement.objection(to: server.service) {
            onStep(DiscoveryStep(.connection, .skipped, place, why, isDetail: true))
            failures.append("\(place): \(why)")
            return next()
        }
        let question = NameResolver.AddressQuestion(server: server, domain: domain.ascii, isFromRecord: isFromRecord)
        dialer.names.addresses.ask(question, on: eventLoop).assumeIsolated().whenComplete { [self] answer in
            guard !isCancelled else { return }
            switch answer {
            case .success((.success(let found), let duration)): connect(place, server, found, duration)
            case .success((.failure(let fault), let duration)):
                onStep(DiscoveryStep(.addresses, .failed, server.target, fault.message, duration: duration))
                failures.append("\(place): \(fault.message)")
                faults.append(.lookupFailed)
                next()
            case .failure(let error): fail("\(error)")
            }
        }
    }

    private func connect(_ place: String, _ server: ServiceRecord, _ found: NameResolver.Addresses, _ duration: Int64) {
        let all = found.usable + found.refused.map(\.0)
        onStep(
            DiscoveryStep(
                .addresses,
                all.isEmpty ? .none : .ok,
                server.target,
                all.isEmpty ? "no such name" : all.compactMap(\.ipAddress).joined(separator: ", "),
                duration: duration,
                isDetail: !all.isEmpty
            )
        )
        if !found.associations.isEmpty {
            let list = found.associations.map { "\($0.usage) \($0.selector) \($0.matching)" }.joined(separator: ", ")
            let finding = "\(list): servers that check DANE refuse the certificate that xmpptap shows"
            onStep(DiscoveryStep(.associations, .ok, "_\(server.port)._tcp.\(server.target)", finding))
        }
        if all.isEmpty {
            failures.append("\(place): no such name")
            faults.append(.nameNotFound)
        }
        for (address, why) in found.refused { refuse(address, why) }
        let usable = found.usable.filter { address in
            guard dialer.own.accept(address) else { return true }
            refuse(address, "this proxy itself listens there")
            return false
        }
        AddressRace(usable, on: eventLoop, timeout: dialer.timeout) { [self] attempt in
            guard !isCancelled else { return }
            let subject = attempt.address.endpoint?.description ?? place
            guard let error = attempt.error else {
                return onStep(DiscoveryStep(.connection, .ok, subject, "connected", duration: attempt.duration))
            }
            let message = Dialer.reason(error, timeout: dialer.timeout)
            onStep(DiscoveryStep(.connection, .failed, subject, message, duration: attempt.duration))
            failures.append("\(subject): \(message)")
            faults.append(Dialer.fault(of: error))
        } done: { [self] channel in
            guard let channel else { return next() }
            guard !isCancelled else { return channel.close(promise: nil) }
            beginsWithTLS = server.service == .tls
            done(.success(channel))
        }
        .start()
    }

    private func refuse(_ address: SocketAddress, _ why: String) {
        let subject = address.endpoint?.description ?? "?"
        onStep(DiscoveryStep(.connection, .refused, subject, why))
        failures.append("\(subject): \(why)")
    }

    private func fail(_ reason: String, _ fault: ConnectionFault = .unreachable) {
        guard !isCancelled else { return }
        isCancelled = true
        done(.failure(Failure(message: "no server of \(domain.name) can be reached: \(reason)", fault: fault)))
    }
}

/// The addresses on which the proxy listens, and from which it connects: it must not connect to itself.
final class OwnAddresses: Sendable {
    private let addresses = Mutex<[SocketAddress]>([])
    /// The own ends of open connections to targets.
    private let outgoing = Mutex<Set<Endpoint>>([])

    func set(_ addresses: [SocketAddress]) { self.addresses.withLock { $0 = addresses } }

    /// Returns whether a connection to `target` would reach this proxy itself.
    func accept(_ target: SocketAddress) -> Bool { addresses.withLock { $0.contains { $0.accepts(target) } } }

    /// Adds a connection to a target until it is closed.
    func add(_ channel: any Channel) {
        guard let own = channel.localAddress?.endpoint else { return }
        outgoing.withLock { _ = $0.insert(own) }
        channel.closeFuture.whenComplete { [self] _ in outgoing.withLock { _ = $0.remove(own) } }
    }

    /// Returns whether a connection from `peer` was made by this proxy itself.
    func contains(_ peer: SocketAddress?) -> Bool {
        guard let endpoint = peer?.endpoint else { return false }
        return outgoing.withLock { $0.contains(endpoint) }
    }
}
