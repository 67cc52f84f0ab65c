import Glibc

/// Sockets of one thread on loopback: waits with poll(2), reports received data, sends queued data.
final class EventLoop {
    /// The time of a monotonic clock, in nanoseconds.
    static var now: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    private var places: [pollfd] = []
    private var watchers: [Watcher] = []
    private var buffer = [UInt8](repeating: 0, count: 256 << 10)

    func add(_ watcher: Watcher) {
        watcher.index = places.count
        places.append(pollfd(fd: watcher.descriptor, events: Int16(POLLIN), revents: 0))
        watchers.append(watcher)
        watcher.loop = self
    }

    func remove(_ watcher: Watcher) {
        let index = watcher.index
        guard index >= 0 else { return }
        watcher.index = -1
        watcher.loop = nil
        if index < places.count - 1 {
            places[index] = places[places.count - 1]
            watchers[index] = watchers[watchers.count - 1]
            watchers[index].index = index
        }
        places.removeLast()
        watchers.removeLast()
    }

    fileprivate func watchWriting(_ watcher: Watcher, _ isWanted: Bool) {
        guard watcher.index >= 0 else { return }
        places[watcher.index].events = Int16(POLLIN) | (isWanted ? Int16(POLLOUT) : 0)
    }

    /// Waits up to `milliseconds` for events, and handles them.
    func turn(_ milliseconds: Int32) {
        guard poll(&places, nfds_t(places.count), milliseconds) > 0 else { return }
        // Removing a watcher changes the order, so collect the ready ones first.
        var ready: [(watcher: Watcher, events: Int16)] = []
        for (index, place) in places.enumerated() where place.revents != 0 {
            ready.append((watchers[index], place.revents))
        }
        for (watcher, events) in ready where watcher.index >= 0 {
            if events & Int16(POLLOUT) != 0 { watcher.writable() }
            if watcher.index >= 0, events & ~Int16(POLLOUT) != 0 { watcher.readable(&buffer) }
        }
    }

    /// Handles events until none is left.
    func settle() {
        let end = Self.now + 300_000_000
        while Self.now < end { turn(50) }
    }

    /// Runs until `condition` holds; returns false if that takes longer than `seconds`.
    func run(_ seconds: Int, until condition: () -> Bool) -> Bool {
        let end = Self.now + seconds * 1_000_000_000
        while !condition() {
            guard Self.now < end else { return false }
            turn(100)
        }
        return true
    }
}

/// A handler of the events of one descriptor.
class Watcher {
    let descriptor: Int32
    fileprivate(set) var index = -1
    fileprivate(set) weak var loop: EventLoop?

    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    deinit { close(descriptor) }

    func readable(_ buffer: inout [UInt8]) {}
    func writable() {}
}

/// A listening socket on a free loopback port.
final class Listener: Watcher {
    let port: UInt16
    private let accepted: (Int32) -> Void

    init(_ accepted: @escaping (Int32) -> Void) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Self.loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = bind(descriptor, $0, size)
                _ = listen(descriptor, 1024)
                _ = getsockname(descriptor, $0, &size)
            }
        }
        port = UInt16(bigEndian: address.sin_port)
        self.accepted = accepted
        super.init(descriptor)
    }

    override func readable(_ buffer: inout [UInt8]) {
        while true {
            let descriptor = accept(descriptor, nil, nil)
            guard descriptor >= 0 else { return }
            accepted(descriptor)
        }
    }

    static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}

/// A connection; its creator sets the callbacks.
class Connection: Watcher {
    /// Whether the connection has ended.
    private(set) var isOver = false
    private var unsent: [UInt8] = []
    private var sent = 0

    /// Number of bytes that are not sent yet.
    var waiting: Int { unsent.count - sent }

    override init(_ descriptor: Int32) {
        super.init(descriptor)
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
    }

    /// Connects to a loopback port; nil if no program listens on it.
    static func connect(_ port: UInt16) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = Listener.loopback(port)
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            return nil
        }
        return descriptor
    }

    func received(_ bytes: UnsafeBufferPointer<UInt8>) {}
    func drained() {}
    func ended() {}

    final func send(_ bytes: UnsafeBufferPointer<UInt8>) {
        var bytes = bytes
        if waiting == 0 {
            let count = max(0, Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)))
            bytes = UnsafeBufferPointer(rebasing: bytes[count...])
        }
        guard !bytes.isEmpty else { return }
        unsent.append(contentsOf: bytes)
        loop?.watchWriting(self, true)
    }

    final func send(_ text: String) {
        var text = text
        text.withUTF8 { send($0) }
    }

    override func writable() {
        let count = unsent.withUnsafeBufferPointer {
            Glibc.send(descriptor, $0.baseAddress.map { $0 + sent }, $0.count - sent, Int32(MSG_NOSIGNAL))
        }
        sent += max(0, count)
        guard waiting == 0 else { return }
        unsent.removeAll(keepingCapacity: true)
        sent = 0
        loop?.watchWriting(self, false)
        drained()
    }

    override func readable(_ buffer: inout [UInt8]) {
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count > 0 {
            buffer.withUnsafeBufferPointer { received(UnsafeBufferPointer(rebasing: $0[..<count])) }
        } else if count == 0 || errno != EAGAIN {
            end()
        }
    }

    final func end() {
        guard !isOver else { return }
        isOver = true
        loop?.remove(self)
        shutdown(descriptor, Int32(SHUT_RDWR))
        ended()
    }
}
