internal import TapCore
internal import TapNetwork
internal import XMPPCore

/// The value of `--limit NAME=VALUE`: one resource limit.
struct LimitFlag: Equatable {
    /// The limits. The raw value is the name as typed and as shown in errors.
    enum Name: String, CaseIterable {
        case item, tag, depth, attributes, name, namespaces
        case loginItem = "login-item"
        case waiting
        case connections
        case connectionsPerAddress = "connections-per-address"
        case login, idle
        case authorities

        var unit: Unit {
            switch self {
            case .item, .tag, .name, .loginItem, .waiting: .bytes
            case .depth, .attributes, .namespaces, .connections, .connectionsPerAddress, .authorities: .count
            case .login, .idle: .seconds
            }
        }
    }

    enum Unit {
        case bytes, count, seconds

        /// The largest accepted value: offsets into an item, and timers, must be able to represent it.
        var largest: UInt64 { self == .bytes ? 1 << 30 : 1_000_000_000 }
    }

    let name: Name
    let value: Int

    init(_ text: String) throws(Failure) {
        let parts = text.split(separator: "=", maxSplits: 1)
        let names = Name.allCases.map(\.rawValue).joined(separator: ", ")
        guard parts.count == 2 else {
            throw .usage("write NAME=VALUE, as in --limit depth=100; the names are \(names)")
        }
        guard let name = Name(rawValue: String(parts[0])) else {
            throw .usage("unknown limit '\(parts[0])'; the names are \(names)")
        }
        let value: UInt64
        switch name.unit {
        case .bytes: value = try ByteSize(String(parts[1])).bytes
        case .count, .seconds: value = UInt64(try Number.parse(String(parts[1]), in: 0...Int(name.unit.largest)))
        }
        guard value <= name.unit.largest else { throw .usage("\(name.rawValue) must be at most \(name.unit.largest)") }
        // 0 is accepted only for limits that it disables.
        guard value > 0 || name.mayBeNone else { throw .usage("\(name.rawValue) must be at least 1") }
        self.name = name
        self.value = Int(value)
    }

    /// Applies the limit; if a name is given several times, the last value counts.
    func apply(to session: inout SessionOptions, _ proxy: inout ProxyLimits) {
        switch name {
        case .item: session.limits.itemBytes = value
        case .loginItem: session.unauthenticatedLimits.itemBytes = value
        case .waiting: session.waitingBytes = value
        case .tag: session.setBoth(\.tagBytes, value)
        case .depth: session.setBoth(\.depth, value)
        case .attributes: session.setBoth(\.attributes, value)
        case .name: session.setBoth(\.nameBytes, value)
        case .namespaces: session.setBoth(\.namespaces, value)
        case .connections: proxy.connections = value == 0 ? nil : value
        case .connectionsPerAddress: proxy.connectionsPerAddress = value == 0 ? nil : value
        case .login: session.loginTime = value == 0 ? nil : Int64(value) * 1_000_000_000
        case .authorities: proxy.authorities = value
        case .idle: session.idleTime = value == 0 ? nil : Int64(value) * 1_000_000_000
        }
    }
}

extension LimitFlag.Name {
    /// Whether 0 disables the limit.
    fileprivate var mayBeNone: Bool {
        switch self {
        case .connections, .connectionsPerAddress, .login, .idle: true
        default: false
        }
    }
}

extension SessionOptions {
    /// Sets a limit that is the same before and after authentication.
    fileprivate mutating func setBoth(_ limit: WritableKeyPath<StreamLimits, Int>, _ value: Int) {
        limits[keyPath: limit] = value
        unauthenticatedLimits[keyPath: limit] = value
    }
}
