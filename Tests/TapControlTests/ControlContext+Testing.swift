import Logging
import TapNetwork
import TapRecord

@testable import TapControl
@testable import TapCore

extension ControlContext {
    /// Returns the parts of a proxy that does not run.
    static func test() -> ControlContext {
        let dispatcher = RecordDispatcher([])
        let proxy = ProxyService(
            ProxyConfiguration(upstream: .endpoint(Endpoint(host: "127.0.0.1", port: 1))),
            run: Run(),
            clock: RunClock(),
            dispatcher: dispatcher,
            logger: Logger(label: "test"),
            onListening: { _, _ in }
        )
        return ControlContext(
            sessions: proxy.sessions,
            metrics: proxy.metrics,
            dispatcher: dispatcher,
            clock: RunClock(),
            run: "run",
            version: "test",
            itemLimit: 1 << 20,
            log: nil
        )
    }
}
