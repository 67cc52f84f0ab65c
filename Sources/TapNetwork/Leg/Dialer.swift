internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import TapDiagnosis

/// Connects to one server, given by name or address.
struct Dialer: Sendable {
    /// The server, as typed.
    let endpoint: Endpoint
    /// How long a connection may take.
    let timeout: TimeAmount
    /// The address, if the endpoint has one; otherwise the name is resolved for each connection.
    private let address: SocketAddress?

    init(_ endpoint: Endpoint, timeout: TimeAmount) {
        self.endpoint = endpoint
        self.timeout = timeout
        address = try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port)
    }

    /// A connection that is up, as a leg that does not read yet; on `eventLoop`. Of several addresses the first to
    /// answer counts.
    func connect(on eventLoop: any EventLoop) -> EventLoopFuture<any Channel> {
        let bootstrap = ClientBootstrap.leg(on: eventLoop, timeout: timeout)
        if let address { return bootstrap.connect(to: address) }
        let resolver = LocalName(endpoint.host).map { LocalResolver($0, on: eventLoop) }
        return bootstrap.resolver(resolver).connect(host: endpoint.host, port: endpoint.port)
    }

    /// Why a connection could not be made, in one line that names the server.
    func words(for error: any Error) -> String {
        guard let error = error as? NIOConnectionError else {
            return "cannot connect to \(endpoint): \(Self.reason(error, timeout: timeout))"
        }
        return "cannot connect to \(endpoint): \(reason(error))"
    }

    private func reason(_ error: NIOConnectionError) -> String {
        guard !error.connectionErrors.isEmpty else {
            guard error.dnsAError == nil, error.dnsAAAAError == nil else {
                return "cannot resolve \"\(endpoint.host)\""
            }
            return Self.reason(ChannelError.connectTimeout(timeout), timeout: timeout)
        }
        return error.connectionErrors
            .map { "\($0.target.ipAddress ?? "?"): \(Self.reason($0.error, timeout: timeout))" }
            .sorted()
            .joined(separator: ", ")
    }

    /// The error for the diagnosis: with several addresses the most specific one.
    static func fault(of error: any Error) -> ConnectionFault {
        switch error {
        case let error as NIOConnectionError:
            guard error.connectionErrors.isEmpty else {
                return fault(among: error.connectionErrors.map { fault(of: $0.error) })
            }
            return error.dnsAError == nil && error.dnsAAAAError == nil ? .timeout : .nameNotFound
        case ChannelError.connectTimeout: return .timeout
        case let error as IOError where error.errnoCode == ECONNREFUSED: return .refused
        case let error as IOError where error.errnoCode == ETIMEDOUT: return .timeout
        default: return .unreachable
        }
    }

    /// The most telling fault of several attempts: a peer that answered comes first.
    static func fault(among faults: [ConnectionFault]) -> ConnectionFault {
        let order: [ConnectionFault] = [.refused, .timeout, .unreachable, .nameNotFound]
        return order.first { faults.contains($0) } ?? faults.first ?? .unreachable
    }

    /// Why a connection to one address could not be made.
    static func reason(_ error: any Error, timeout: TimeAmount) -> String {
        switch error {
        case ChannelError.connectTimeout: return "no answer within \(timeout.nanoseconds / 1_000_000_000) s"
        case let error as IOError: return error.words
        default: return "\(error)"
        }
    }
}

extension IOError {
    /// The operating system's words and number.
    var words: String {
        let words = String(cString: strerror(errnoCode))
        return "\(words.prefix(1).lowercased())\(words.dropFirst()) (errno \(errnoCode))"
    }
}
