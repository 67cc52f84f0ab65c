/// A server of a domain from an SRV record (RFC 2782).
struct ServiceRecord: Sendable, Hashable {
    /// Which of a domain's two services for clients it belongs to.
    enum Service: String, Sendable, CaseIterable {
        /// A stream in clear, which can turn to TLS (RFC 6120 §3.2.1).
        case clear = "_xmpp-client._tcp"
        /// TLS from the first byte on (XEP-0368).
        case tls = "_xmpps-client._tcp"
    }

    var service: Service
    /// Lower ones are tried first.
    var priority: UInt16
    /// Among those of one priority: how much of the load is its share.
    var weight: UInt16
    var port: UInt16
    /// The host's name without the last dot; empty if the record declares the service unavailable (`.`).
    var target: String

    /// Returns the substitute for missing SRV records: the domain's own address with the standard port (RFC 6120
    /// §3.2.2), starting in clear.
    static func fallback(of domain: String) -> ServiceRecord {
        ServiceRecord(service: .clear, priority: 0, weight: 0, port: ServiceResolver.standardPort, target: domain)
    }

    /// The record says that the service is decidedly not available.
    var isRefusal: Bool { target.isEmpty }
}

extension ServiceRecord: CustomStringConvertible {
    /// `xmpp1.example.org:5222 (5 10)`, in brackets priority and weight.
    var description: String { "\(isRefusal ? "." : target):\(port) (\(priority) \(weight))" }
}

extension Array<ServiceRecord> {
    /// The order in which to try them: by priority, and within one by lot, weighted as RFC 2782 says. The records of both
    /// services are one set (XEP-0368 §2).
    func arranged(using generator: inout some RandomNumberGenerator) -> [ServiceRecord] {
        var order: [ServiceRecord] = []
        order.reserveCapacity(count)
        for priority in Set(map(\.priority)).sorted() {
            // Those of weight 0 stand first, so that they have a chance, if a small one.
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
