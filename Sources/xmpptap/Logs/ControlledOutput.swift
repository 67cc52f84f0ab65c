internal import Synchronization
internal import TapCapture
internal import TapControl
internal import TapRecord

/// The log whose level can be changed through the control socket: that of `--log`, or the first of `--log-to`.
final class ControlledOutput: ControlledLog {
    private let dispatcher: RecordDispatcher
    private let sink: Mutex<LogSink>

    init(_ sink: LogSink, _ dispatcher: RecordDispatcher) {
        self.sink = Mutex(sink)
        self.dispatcher = dispatcher
    }

    var spec: LogSpec { sink.withLock { $0.spec } }

    func change(_ change: (inout LogSpec) -> Void) {
        sink.withLock { sink in
            var spec = sink.spec
            change(&spec)
            let changed = sink.showing(spec)
            dispatcher.replace(sink, by: changed)
            sink = changed
        }
    }
}
