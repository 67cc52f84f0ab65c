import Glibc
import NIOCore
import NIOPosix
import Synchronization
import TapTestKit

/// One end of a real connection, controlled by a test: a client of the proxy, or its server.
final class Peer: Sendable {
    /// The data received so far, and the state of the connection.
    struct Seen {
        var bytes: [UInt8] = []
        /// Number of bytes received. If ``keeps`` is false, bytes are only counted and hashed.
        var count = 0
        var hash = Hash()
        var isFinished = false
        var isReset = false
        var isClosed = false

        var text: String { String(decoding: bytes, as: UTF8.self) }
    }

    let channel: any Channel
    private let seen: SeenBox

    fileprivate init(_ channel: any Channel, _ seen: SeenBox) {
        self.channel = channel
        self.seen = seen
    }

    /// Connects to a port of 127.0.0.1.
    static func connect(to port: Int, keeps: Bool = true) async throws -> Peer {
        let seen = SeenBox(keeps: keeps)
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.allowRemoteHalfClosure, value: true)
            .channelInitializer { $0.pipeline.addHandler(PeerHandler(seen)) }
            .connect(host: "127.0.0.1", port: port)
            .get()
        return Peer(channel, seen)
    }

    func send(_ bytes: [UInt8]) async throws {
        try await channel.writeAndFlush(ByteBuffer(bytes: bytes)).get()
    }

    func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    /// Sends data without waiting until the system has accepted it.
    func push(_ bytes: [UInt8]) { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

    /// Sends a FIN.
    func finish() async throws { try await channel.close(mode: .output).get() }

    /// Sends an RST.
    func reset() async throws {
        let provider = channel as? any SocketOptionProvider
        try await provider?.setSoLinger(linger(l_onoff: 1, l_linger: 0)).get()
        try await channel.close().get()
    }

    func close() async { try? await channel.close().get() }

    func setReading(_ isReading: Bool) async throws { try await channel.setOption(.autoRead, value: isReading).get() }

    var now: Seen { seen.value }

    /// Waits until the received data and the state meet a condition.
    @discardableResult
    func wait(
        _ what: String,
        seconds: Int = longestWait,
        until isWanted: (Seen) -> Bool
    ) async throws -> Seen {
        try await eventually("\(what); last: \(now.text.suffix(200))", seconds: seconds) { isWanted(seen.value) }
        return seen.value
    }

    /// Waits for exactly this text after `skip` bytes.
    func expect(_ text: String, after skip: Int = 0) async throws {
        let bytes = Array(text.utf8)
        let seen = try await wait("expected \(text)") { $0.bytes.count >= skip + bytes.count || $0.isClosed }
        guard Array(seen.bytes.dropFirst(skip).prefix(bytes.count)) == bytes else {
            throw KitError("expected \(text), got \(seen.text)")
        }
    }
}

/// The FNV-1a hash of a byte stream; independent of how the stream is split.
struct Hash: Equatable {
    private var state: UInt64 = 0xCBF2_9CE4_8422_2325

    mutating func add(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { state = (state ^ UInt64(byte)) &* 0x100_0000_01B3 }
    }

    static func of(_ bytes: [UInt8]) -> Hash {
        var hash = Hash()
        hash.add(bytes)
        return hash
    }
}

/// Seconds after which a test stops waiting for an event. This is less than the time limit of a suite, and more than a
/// loaded machine needs.
let longestWait = 90

/// Waits for a condition that becomes true without further action.
func eventually(_ what: @autoclosure () -> String, seconds: Int = longestWait, _ isTrue: () -> Bool) async throws {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while !isTrue() {
        guard ContinuousClock.now < deadline else { throw KitError("in vain for \(seconds) s: \(what())") }
        try await Task.sleep(for: .milliseconds(2))
    }
}

/// A server controlled by a test, which accepts connections one by one.
final class TestServer: Sendable {
    let port: Int
    private let channel: any Channel
    private let waiting: WaitingPeers

    init(keeps: Bool = true) async throws {
        let waiting = WaitingPeers()
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 1024)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                let seen = SeenBox(keeps: keeps)
                return channel.pipeline.addHandler(PeerHandler(seen)).map { waiting.add(Peer(channel, seen)) }
            }
            .bind(host: "127.0.0.1", port: 0)
            .get()
        port = channel.localAddress?.port ?? 0
        self.waiting = waiting
    }

    /// Returns the next connection.
    func accept() async throws -> Peer {
        var peer: Peer?
        try await eventually("no connection came") {
            peer = waiting.take()
            return peer != nil
        }
        guard let peer else { throw KitError("no connection came") }
        return peer
    }

    func close() async { try? await channel.close().get() }
}

private final class WaitingPeers: Sendable {
    private let peers = Mutex<[Peer]>([])

    func add(_ peer: Peer) { peers.withLock { $0.append(peer) } }
    func take() -> Peer? { peers.withLock { $0.isEmpty ? nil : $0.removeFirst() } }
}

private final class SeenBox: Sendable {
    let keeps: Bool
    private let seen = Mutex(Peer.Seen())

    init(keeps: Bool) { self.keeps = keeps }

    var value: Peer.Seen { seen.withLock { $0 } }
    func update(_ body: (inout sending Peer.Seen) -> Void) { seen.withLock { body(&$0) } }
}

private final class PeerHandler: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    private let seen: SeenBox

    init(_ seen: SeenBox) { self.seen = seen }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let view = unwrapInboundIn(data).readableBytesView
        seen.update { seen in
            seen.count += view.count
            if self.seen.keeps { seen.bytes += view } else { seen.hash.add(view) }
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .inputClosed? = event as? ChannelEvent { seen.update { $0.isFinished = true } }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if (error as? IOError)?.errnoCode == ECONNRESET { seen.update { $0.isReset = true } }
        context.close(promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) { seen.update { $0.isClosed = true } }
}
