internal import NIOCore
package import TapCore
internal import TapSecurity

/// Looks up the servers of a domain as a client would, without connecting to them.
package enum DomainReport {
    /// The steps, as in a session's timeline; `fault` is the reason if no usable address was found.
    package typealias Outcome = (steps: [DiscoveryStep], fault: String?)

    /// Looks up a domain; blocks.
    ///
    /// - Parameters:
    ///   - domain: The domain to look up.
    ///   - resolver: The name server to use; nil uses those of this machine.
    /// - Returns: `fault` is nil if there is a usable address.
    package static func lookUp(
        _ domain: Upstream.Domain,
        resolver endpoint: Endpoint?
    ) -> Outcome {
        var server: SocketAddress?
        if let endpoint {
            server = endpoint.resolved
            guard server != nil else { return ([], "cannot resolve the DNS server \(endpoint)") }
        }
        return lookUp(domain, ServiceResolver(server: server))
    }

    static func lookUp(_ domain: Upstream.Domain, _ resolver: ServiceResolver) -> Outcome {
        var steps: [DiscoveryStep] = []
        var choice = ServiceChoice.fallback
        if resolver.asksForRecords(of: domain.ascii) {
            let answers = ServiceRecord.Service.allCases.map { service in
                let answer = Result { () throws(LookupFault) in try resolver.records(service, of: domain.ascii) }
                steps.append(.records(service, of: domain.ascii, resolver.peers, answer, duration: nil))
                return answer
            }
            var generator = SystemRandomNumberGenerator()
            choice = ServiceChoice(clear: answers[0], tls: answers[1], using: &generator)
        }
        let (servers, isFromRecord): ([ServiceRecord], Bool)
        switch choice {
        case .servers(let found): (servers, isFromRecord) = (found, true)
        case .fallback: (servers, isFromRecord) = ([.fallback(of: domain.ascii, for: resolver.peers)], false)
        case .refused: return (steps, "its SRV record says that it has no service for \(resolver.peers)")
        case .failed(let fault): return (steps, fault.message)
        }
        var hasAddress = false
        for server in servers {
            let place = "\(server.target):\(server.port)"
            do throws(LookupFault) {
                let found = try resolver.addresses(of: server, domain: domain.ascii, isFromRecord: isFromRecord)
                let texts =
                    found.usable.compactMap(\.ipAddress) + found.refused.map { "\($0.0.ipAddress ?? "?"): \($0.1)" }
                hasAddress = hasAddress || !found.usable.isEmpty
                steps.append(
                    DiscoveryStep(
                        .addresses,
                        found.usable.isEmpty ? .none : .ok,
                        place,
                        texts.isEmpty ? "no such name" : texts.joined(separator: ", ")
                    )
                )
            } catch {
                steps.append(DiscoveryStep(.addresses, .failed, place, error.message))
            }
        }
        return (steps, hasAddress ? nil : "no server of the domain has a usable address")
    }
}

extension Endpoint {
    /// The socket address, looked up if the host is a name; nil if it cannot be resolved. Blocks.
    var resolved: SocketAddress? {
        (try? SocketAddress(ipAddress: host, port: port)) ?? SystemNames.resolve(self).first
    }
}

extension DiscoveryStep {
    /// Creates the step for the answer to an SRV query.
    static func records(
        _ service: ServiceRecord.Service,
        of domain: String,
        _ peers: ServerReference.Service,
        _ answer: Result<[ServiceRecord], LookupFault>,
        duration: Int64?
    ) -> DiscoveryStep {
        let (outcome, finding): (Outcome, String) =
            switch answer {
            case .failure(let fault): (.failed, fault.message)
            case .success(let records) where records.isEmpty: (.none, "no such records")
            case .success(let records) where records.allSatisfy(\.isRefusal):
                (.refused, "the domain has no such service")
            case .success(let records): (.ok, records.map(\.description).joined(separator: ", "))
            }
        return DiscoveryStep(.records, outcome, "\(service.labels(for: peers)).\(domain)", finding, duration: duration)
    }
}
