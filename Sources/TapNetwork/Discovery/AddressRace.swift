internal import NIOCore
internal import NIOPosix

/// Connects to the first address of a host that answers (after RFC 8305 §5). The next address is tried when an attempt
/// fails, or after 250 ms.
///
/// Used on one event loop; keeps itself alive until it is done.
final class AddressRace {
    /// A completed attempt.
    struct Attempt {
        let address: SocketAddress
        /// Duration in nanoseconds.
        let duration: Int64
        /// The error; nil if the attempt succeeded.
        let error: (any Error)?
    }

    private static let headStart = TimeAmount.milliseconds(250)

    private let eventLoop: any EventLoop
    private let timeout: TimeAmount
    private let report: (Attempt) -> Void
    private let done: ((any Channel)?) -> Void
    private var waiting: ArraySlice<SocketAddress>
    private var running = 0
    private var isOver = false
    private var timer: Scheduled<Void>?

    /// - Parameters:
    ///   - timeout: Time limit of each attempt.
    ///   - report: Called for each attempt that failed before a connection was established, and for that connection.
    ///   - done: Called once, with a leg that does not read yet, or with nil if all attempts failed.
    init(
        _ addresses: [SocketAddress],
        on eventLoop: any EventLoop,
        timeout: TimeAmount,
        report: @escaping (Attempt) -> Void,
        done: @escaping ((any Channel)?) -> Void
    ) {
        waiting = addresses[...]
        self.eventLoop = eventLoop
        self.timeout = timeout
        self.report = report
        self.done = done
    }

    /// Starts the race, or continues with the next address.
    func start() {
        timer?.cancel()
        timer = nil
        guard !isOver else { return }
        guard let address = waiting.popFirst() else {
            if running == 0 { finish(nil) }
            return
        }
        running += 1
        let began = NIODeadline.now()
        let attempt = ClientBootstrap.leg(on: eventLoop, timeout: timeout).connect(to: address)
        attempt.assumeIsolated().whenComplete { [self] result in
            running -= 1
            let duration = (NIODeadline.now() - began).nanoseconds
            switch result {
            case .success(let channel):
                guard !isOver else { return channel.close(promise: nil) }
                report(Attempt(address: address, duration: duration, error: nil))
                finish(channel)
            case .failure(let error):
                guard !isOver else { return }
                report(Attempt(address: address, duration: duration, error: error))
                start()
            }
        }
        if !waiting.isEmpty {
            timer = eventLoop.assumeIsolated().scheduleTask(in: Self.headStart) { [self] in start() }
        }
    }

    private func finish(_ channel: (any Channel)?) {
        isOver = true
        timer?.cancel()
        timer = nil
        done(channel)
    }
}
