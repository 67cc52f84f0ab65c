internal import TapSecurity

/// A server of a domain from an SRV record (RFC 2782).
struct ServiceRecord: Sendable, Hashable {
    /// The two services for clients, or for servers of other domains.
    enum Service: Sendable, CaseIterable {
        /// A stream that starts without TLS and can use STARTTLS (RFC 6120 §3.2.1).
        case clear
        /// Direct TLS (XEP-0368).
        case tls

        /// Returns the labels in front of the domain in the name of the SRV records.
        func labels(for peers: ServerReference.Service) -> String {
            switch (self, peers) {
            case (.clear, .clients): "_xmpp-client._tcp"
            case (.tls, .clients): "_xmpps-client._tcp"
            case (.clear, .servers): "_xmpp-server._tcp"
            case (.tls, .servers): "_xmpps-server._tcp"
            }
        }
    }

    var service: Service
    /// The priority; servers with lower values are tried first.
    var priority: UInt16
    /// The weight: the server's share of the load, relative to servers of the same priority.
    var weight: UInt16
    var port: UInt16
    /// The host's name without the last dot; empty if the record declares the service unavailable (`.`).
    var target: String

    /// Returns the substitute for missing SRV records: the domain's own address with the standard port (RFC 6120
    /// §3.2.2), without direct TLS.
    static func fallback(of domain: String, for peers: ServerReference.Service) -> ServiceRecord {
        let port = UInt16(Endpoint.usualPort(for: peers))
        return ServiceRecord(service: .clear, priority: 0, weight: 0, port: port, target: domain)
    }

    /// Whether the record declares that the service is not available.
    var isRefusal: Bool { target.isEmpty }
}

extension ServiceRecord: CustomStringConvertible {
    /// Text such as `xmpp1.example.org:5222 (5 10)`, with priority and weight in parentheses.
    var description: String { "\(isRefusal ? "." : target):\(port) (\(priority) \(weight))" }
}

extension Array<ServiceRecord> {
    /// Returns the records in the order in which to try them: by priority; within one priority in random order,
    /// weighted as in RFC 2782. The records of both services are one set (XEP-0368 §2).
    func arranged(using generator: inout some RandomNumberGenerator) -> [ServiceRecord] {
        var order: [ServiceRecord] = []
        order.reserveCapacity(count)
        for priority in Set(map(\.priority)).sorted() {
            // Records of weight 0 come first, so that they have a small chance of being chosen (RFC 2782).
            let group = filter { $0.priority == priority }
            var rest = group.filter { $0.weight == 0 } + group.filter { $0.weight != 0 }
            while rest.count > 1 {
                let total = rest.reduce(0) { $0 + Int($1.weight) }
                let lot = Int.random(in: 0...total, using: &generator)
                var sum = 0
                let chosen = rest.firstIndex { record in
                    sum += Int(record.weight)
                    return sum >= lot
                }
                order.append(rest.remove(at: chosen ?? 0))
            }
            order += rest
        }
        return order
    }
}
