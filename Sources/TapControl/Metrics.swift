internal import Hummingbird
internal import NIOCore
internal import Synchronization
internal import TapCore
internal import TapNetwork
internal import TapRecord

/// The metrics of a proxy in the text form of Prometheus, version 0.0.4. Nothing in them is an address or a name that a peer
/// has chosen.
final class Metrics: Sendable {
    private let context: ControlContext
    /// The last value of each counter: sessions that end while they are added up must not let one fall.
    private let last = Mutex<[String: UInt64]>([:])

    init(_ context: ControlContext) { self.context = context }

    var route: Route {
        Route(method: .get, path: "/metrics") { [self] _ in
            let text = await text()
            return Response(
                status: .ok,
                headers: [.contentType: "text/plain; version=0.0.4; charset=utf-8"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: text))
            )
        }
    }

    /// All metrics of this moment.
    func text() async -> String {
        let totals = await context.sessions.totals()
        var page = Page()
        page.gauge("xmpptap_build_info", "Version of the program.", [("{version=\"\(context.version)\"}", 1)])
        let proxy = context.metrics
        page.gauge("xmpptap_sessions_active", "Sessions that have not ended.", [("", Double(proxy.sessionsOpen))])
        let ended = totals.ended.map { ("{outcome=\"\($0.rawValue)\"}", $1) }
        counter("xmpptap_sessions_total", "Sessions that have ended.", ended, &page)
        counter(
            "xmpptap_connections_failed_total",
            "Sessions whose server could not be reached.",
            [("", proxy.connectionsFailed)],
            &page
        )
        counter("xmpptap_accept_pauses_total", "Times that accepting paused.", [("", proxy.acceptPauses)], &page)
        let bytes = [("send", proxy.bytesSent), ("recv", proxy.bytesReceived)]
        counter(
            "xmpptap_stream_bytes_total",
            "Bytes received from peers.",
            bytes.map { ("{direction=\"\($0)\"}", $1) },
            &page
        )
        counter(
            "xmpptap_stanzas_total",
            "Stanzas received from peers.",
            totals.stanzas.map { ("{direction=\"\($0.direction.name)\",kind=\"\($0.kind)\"}", $1) },
            &page
        )
        counter("xmpptap_injected_stanzas_total", "Stanzas injected.", [("", totals.injected)], &page)
        counter(
            "xmpptap_sasl_attempts_total",
            "Logins by mechanism.",
            totals.logins.map { ("{mechanism=\"\($0.mechanism)\",outcome=\"\($0.outcome)\"}", $1) },
            &page
        )
        counter(
            "xmpptap_tls_handshakes_total",
            "TLS handshakes that xmpptap completed.",
            totals.tls.map { ("{leg=\"\($0.leg.name)\",version=\"\($0.version)\"}", $1) },
            &page
        )
        let logs = context.logs()
        counter(
            "xmpptap_audit_records_total",
            "Records written to logs.",
            logs.map { ("{sink=\"\(Self.label($0.name))\"}", $0.written) },
            &page
        )
        counter(
            "xmpptap_audit_dropped_total",
            "Records that logs have lost.",
            logs.map { ("{sink=\"\(Self.label($0.name))\"}", $0.dropped) },
            &page
        )
        let process = ProcessFigures()
        page.gauge("process_open_fds", "Open file descriptors.", [("", Double(process.openFiles))])
        if let bytes = process.residentBytes {
            page.gauge("process_resident_memory_bytes", "Resident memory.", [("", Double(bytes))])
        }
        page.add("counter", "process_cpu_seconds_total", "Processor time.", [("", "\(process.processorSeconds)")])
        return page.text
    }

    private func counter(
        _ name: String,
        _ help: String,
        _ values: [(labels: String, value: UInt64)],
        _ page: inout Page
    ) {
        let values = last.withLock { last in
            values.sorted { $0.labels < $1.labels }.map { labels, value in
                let value = max(value, last[name + labels] ?? 0)
                last[name + labels] = value
                return (labels, String(value))
            }
        }
        page.add("counter", name, help, values)
    }

    /// A label's value: a path of the command line, escaped.
    private static func label(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }

    private struct Page {
        var text = ""

        mutating func gauge(_ name: String, _ help: String, _ values: [(labels: String, value: Double)]) {
            add("gauge", name, help, values.map { ($0.labels, String(Int($0.value))) })
        }

        mutating func add(_ type: String, _ name: String, _ help: String, _ values: [(labels: String, value: String)]) {
            text += "# HELP \(name) \(help)\n# TYPE \(name) \(type)\n"
            for (labels, value) in values { text += "\(name)\(labels) \(value)\n" }
        }
    }
}
