internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import TapDiagnosis

/// Connects to one server, given by name or address.
struct Dialer: Sendable {
    /// The server, as typed.
    let endpoint: Endpoint
    /// Time limit of each connection attempt.
    let timeout: TimeAmount
    /// The socket address, if the host is an IP address; otherwise nil, and the name is resolved for each connection.
    private let address: SocketAddress?

    init(_ endpoint: Endpoint, timeout: TimeAmount) {
        self.endpoint = endpoint
        self.timeout = timeout
        address = try? SocketAddress(ipAddress: endpoint.host, port: endpoint.port)
    }

    /// Connects to the server; the future completes on `eventLoop` with a leg that does not read yet. If the host has
    /// several addresses, the first that answers is used.
    func connect(on eventLoop: any EventLoop) -> EventLoopFuture<any Channel> {
        let bootstrap = ClientBootstrap.leg(on: eventLoop, timeout: timeout)
        if let address { return bootstrap.connect(to: address) }
        let resolver = LocalName(endpoint.host).map { LocalResolver($0, on: eventLoop) }
        return bootstrap.resolver(resolver).connect(host: endpoint.host, port: endpoint.port)
    }

    /// Returns why a connection failed, as one line that names the server.
    func message(for error: any Error) -> String {
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

    /// Returns the fault for the diagnosis; with several addresses, the most specific one.
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

    /// Returns the most specific fault of several attempts: one caused by a peer's answer comes first.
    static func fault(among faults: [ConnectionFault]) -> ConnectionFault {
        let order: [ConnectionFault] = [.refused, .timeout, .unreachable, .nameNotFound]
        return order.first { faults.contains($0) } ?? faults.first ?? .unreachable
    }

    /// Returns why a connection to one address failed.
    static func reason(_ error: any Error, timeout: TimeAmount) -> String {
        switch error {
        case ChannelError.connectTimeout: return "no answer within \(timeout.nanoseconds / 1_000_000_000) s"
        case let error as IOError: return error.message
        default: return "\(error)"
        }
    }
}

extension IOError {
    /// The operating system's text for the error, and its number.
    var message: String {
        let text = String(cString: strerror(errnoCode))
        return "\(text.prefix(1).lowercased())\(text.dropFirst()) (errno \(errnoCode))"
    }
}
