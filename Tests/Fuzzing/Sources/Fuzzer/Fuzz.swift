import Glibc

/// The fuzzing targets. The flag `--target=NAME`, which libFuzzer ignores, selects one.
enum FuzzTarget: String, CaseIterable {
    /// The parser core, compared with libxml2.
    case parser
    /// WebSocket frames, and the messages in them.
    case websocket
    /// Bodies of BOSH, and sessions of them.
    case bosh
    /// Requests of clients to a proxy: SOCKS5 and HTTP CONNECT.
    case socks
    /// Frames with IP and TCP in them, and the sessions that they show.
    case packets
    /// TCP segments in any order, compared with their stream.
    case tcp
    /// Damaged recorded TLS, compared with the sent data.
    case tls
    /// pcap and pcapng files.
    case captures
    /// TLS key logs.
    case keylog
    /// Logs of clients and servers, and text logs of xmpptap.
    case clientlog
    /// JSON logs and captures of xmpptap.
    case records
    /// A session with all kinds of events.
    case session

    /// Runs an input; returns the contradiction, if any.
    func run(_ input: [UInt8]) -> String? {
        switch self {
        case .parser: ParserTarget.run(input)
        case .websocket: WebSocketTarget.run(input)
        case .bosh: BOSHTarget.run(input)
        case .socks: ProxyRequestTarget.run(input)
        case .packets: PacketTarget.run(input)
        case .tcp: ReassemblyTarget.run(input)
        case .tls: DecryptionTarget.run(input)
        case .captures, .clientlog, .records: FileTarget.run(input)
        case .keylog: KeyLogTarget.run(input)
        case .session: SessionTarget.run(input)
        }
    }

    static let chosen = argument("target").flatMap(Self.init)

    static func argument(_ name: String) -> String? {
        CommandLine.arguments.first { $0.hasPrefix("--\(name)=") }.map { String($0.dropFirst(name.count + 3)) }
    }
}

/// Called before the first input: with `--seeds=FOLDER`, writes the target's seeds to the folder and exits.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(_ count: UnsafeMutableRawPointer, _ arguments: UnsafeMutableRawPointer) -> CInt {
    guard let target = FuzzTarget.chosen else {
        complain("--target=\(FuzzTarget.allCases.map(\.rawValue).joined(separator: "|")) is needed")
        exit(2)
    }
    guard let folder = FuzzTarget.argument("seeds") else { return 0 }
    for (index, seed) in target.seeds.enumerated() {
        guard let file = fopen("\(folder)/\(target)-\(index)", "w") else { exit(1) }
        fwrite(seed, 1, seed.count, file)
        fclose(file)
    }
    exit(0)
}

/// Runs one input: it must not cause a crash, and the target's invariants must hold.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: data, count: size))
    if let contradiction = FuzzTarget.chosen?.run(input) {
        complain("\n\(contradiction)\ninput: \(String(decoding: input, as: UTF8.self).debugDescription)\n")
        abort()
    }
    return 0
}

private func complain(_ text: String) { _ = text.withCString { write(2, $0, strlen($0)) } }

/// Reads an input as instructions.
struct Script {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    var isOver: Bool { rest.isEmpty }
    /// Returns the next byte; 0 after the end.
    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }
    mutating func number16() -> Int { Int(byte()) << 8 | Int(byte()) }
    mutating func number32() -> UInt32 { UInt32(number16()) << 16 | UInt32(number16()) }
    mutating func number64() -> UInt64 { UInt64(number32()) << 32 | UInt64(number32()) }
    /// Returns the next `count` bytes, or fewer at the end.
    mutating func bytes(_ count: Int) -> [UInt8] {
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }
}
