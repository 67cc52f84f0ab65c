internal import HTTPTypes
internal import HummingbirdCore
internal import NIOCore
internal import Synchronization
internal import TapCore
internal import TapNetwork
internal import TapRecord
internal import XMPPCore

/// The metrics of a proxy in the text format of Prometheus, version 0.0.4. They contain no user addresses. The only
/// names chosen by peers are domains of servers that completed TLS.
final class Metrics: Sendable {
    private let context: ControlContext
    /// The last reported value of each counter, because a session that ends while the values are added up must not make
    /// a counter decrease.
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

    /// Returns all metrics.
    func text() async -> String {
        let totals = await context.sessions.totals()
        var page = Page()
        page.gauge("xmpptap_build_info", "Version of the program.", [("{version=\"\(context.version)\"}", 1)])
        let proxy = context.metrics
        page.gauge(
            "xmpptap_sessions_active",
            "Sessions that have not ended.",
            RelayMode.allCases.map { ("{mode=\"\($0.rawValue)\"}", Double(totals.open[$0] ?? 0)) }
        )
        let ended = totals.ended.map { ("{outcome=\"\($0.rawValue)\"}", $1) }
        counter("xmpptap_sessions_total", "Sessions that have ended.", ended, &page)
        counter(
            "xmpptap_connections_failed_total",
            "Sessions whose server could not be reached.",
            [("", proxy.connectionsFailed)],
            &page
        )
        counter(
            "xmpptap_http_requests_total",
            "Requests on web listeners that are not for a WebSocket.",
            [("", proxy.httpRequests)],
            &page
        )
        counter("xmpptap_accept_pauses_total", "Times that accepting paused.", [("", proxy.acceptPauses)], &page)
        let bytes = [
            ("client", "send", proxy.bytesSent), ("server", "send", totals.bytesToServers),
            ("server", "recv", proxy.bytesReceived), ("client", "recv", totals.bytesToClients),
        ]
        counter(
            "xmpptap_stream_bytes_total",
            "Bytes read from the sending leg and written to the receiving leg, without TLS.",
            bytes.map { ("{leg=\"\($0)\",direction=\"\($1)\"}", $2) },
            &page
        )
        counter("xmpptap_stanzas_total", "Stanzas received from peers.", Self.stanzas(totals), &page)
        events("xmpptap_injected_stanzas_total", "Stanzas injected.", totals, &page) { event in
            guard case .injected(let kind, let direction) = event else { return nil }
            return "direction=\"\(direction.name)\",kind=\"\(kind)\""
        }
        histogram(
            "xmpptap_stanza_delay_seconds",
            "Time that rules let stanzas wait.",
            [("", totals.counters.delays)],
            &page
        )
        histogram(
            "xmpptap_relay_latency_seconds",
            "Time from a read to its write, of bytes that pass as they come.",
            [("", totals.relayLatency)],
            &page
        )
        let pings = [("client", totals.counters.clientPings), ("server", totals.counters.serverPings)]
        histogram(
            "xmpptap_ping_rtt_seconds",
            "Round trips of xmpptap's pings.",
            pings.map { ("leg=\"\($0)\"", $1) },
            &page
        )
        counter(
            "xmpptap_sasl_attempts_total",
            "Logins by mechanism.",
            totals.logins.map { login, count in
                ("{mechanism=\"\(login.mechanism)\",flag=\"\(login.flag)\",outcome=\"\(login.outcome)\"}", count)
            },
            &page
        )
        counter(
            "xmpptap_tls_handshakes_total",
            "TLS handshakes of xmpptap.",
            totals.tls.map { ("{leg=\"\($0.leg.name)\",version=\"\($0.version)\",result=\"\($0.result)\"}", $1) },
            &page
        )
        page.gauge(
            "xmpptap_upstream_cert_not_after_timestamp_seconds",
            "End of the certificate that the server of a domain has last shown, of 100 domains at most.",
            proxy.serverCertificateEnds.sorted { $0.key < $1.key }
                .map { ("{domain=\"\(Self.label($0.key))\"}", Double($0.value)) }
        )
        histogram(
            "xmpptap_leaf_mint_seconds",
            "Time to make a certificate for clients.",
            [("", context.mintTimes())],
            &page
        )
        events("xmpptap_cb_prediction_total", "Logins by predicted effect of channel binding.", totals, &page) {
            event in
            guard case .predicted(let strategy, let verdict) = event else { return nil }
            return "strategy=\"\(strategy.rawValue)\",verdict=\"\(verdict)\""
        }
        events("xmpptap_sm_resumes_total", "Attempts to resume a session (XEP-0198).", totals, &page) { event in
            guard case .resumed(let isResumed) = event else { return nil }
            return "outcome=\"\(isResumed ? "success" : "failure")\""
        }
        let translated = totals.counters.events[.translated] ?? 0
        counter("xmpptap_sm_ack_translations_total", "Acknowledgements translated.", [("", translated)], &page)
        page.gauge(
            "xmpptap_sm_divergence",
            "Stanzas by which the counts of clients and servers differ.",
            [("", Double(totals.divergence))]
        )
        events("xmpptap_parse_errors_total", "Streams that could not be parsed.", totals, &page) { event in
            switch event {
            case .parseError(let leg, let code): return "leg=\"\(leg.name)\",class=\"\(code.rawValue)\""
            case .frameError(let leg, let code): return "leg=\"\(leg.name)\",class=\"\(code.rawValue)\""
            default: return nil
            }
        }
        counter("xmpptap_limit_hits_total", "Times that a limit was reached.", Self.limits(totals, proxy), &page)
        counter(
            "xmpptap_redactions_total",
            "Placeholders of secrets in records.",
            context.redactions().map { ("{kind=\"\($0.rawValue)\"}", $1) },
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
            // Logs lose records only if they cannot be written.
            logs.map { ("{sink=\"\(Self.label($0.name))\",reason=\"write\"}", $0.dropped) },
            &page
        )
        page.add(
            "gauge",
            "xmpptap_audit_lag_seconds",
            "Time that the oldest record waits to be written.",
            logs.map { ("{sink=\"\(Self.label($0.name))\"}", "\(Double($0.lag) / 1e9)") }
        )
        deliveries(logs, &page)
        let process = ProcessFigures()
        page.gauge("process_open_fds", "Open file descriptors.", [("", Double(process.openFiles))])
        if let bytes = process.residentBytes {
            page.gauge("process_resident_memory_bytes", "Resident memory.", [("", Double(bytes))])
        }
        page.add("counter", "process_cpu_seconds_total", "Processor time.", [("", "\(process.processorSeconds)")])
        return page.text
    }

    /// Returns stanza counts by action. Sessions count dropped, edited and answered stanzas as passed, so these are
    /// subtracted; other actions are counted in addition.
    private static func stanzas(_ totals: SessionTotals) -> [(labels: String, value: UInt64)] {
        var counts: [String: UInt64] = [:]
        func labels(_ direction: Direction, _ kind: String, _ verdict: String) -> String {
            "{direction=\"\(direction.name)\",kind=\"\(kind)\",verdict=\"\(verdict)\"}"
        }
        for (stanzas, count) in totals.stanzas { counts[labels(stanzas.direction, stanzas.kind, "passed")] = count }
        for (event, count) in totals.counters.events {
            guard case .acted(let action, let kind, let direction) = event else { continue }
            counts[labels(direction, "\(kind)", action), default: 0] += count
            guard ["dropped", "edited", Record.answered].contains(action) else { continue }
            let passing = labels(direction, "\(kind)", "passed")
            counts[passing, default: 0] -= min(counts[passing] ?? 0, count)
        }
        return counts.map { ($0.key, $0.value) }
    }

    /// Returns the hits of each limit by its command line name. All limits are included with 0, so that alerts see the
    /// first hit as an increase.
    private static func limits(_ totals: SessionTotals, _ proxy: ProxyMetrics) -> [(labels: String, value: UInt64)] {
        var counts: [String: UInt64] = [:]
        for limit in SessionCounters.Limit.allCases { counts[limit.rawValue] = 0 }
        for code in ScanFault.Code.allCases { if let name = name(ofLimit: code) { counts[name] = 0 } }
        for limit in ProxyMetrics.Limit.allCases { counts[limit.rawValue] = proxy.hits(of: limit) }
        for (event, count) in totals.counters.events {
            switch event {
            case .limitHit(let limit): counts[limit.rawValue, default: 0] += count
            case .parseError(_, let code): if let name = name(ofLimit: code) { counts[name, default: 0] += count }
            default: break
            }
        }
        return counts.map { ("{limit=\"\($0)\"}", $1) }
    }

    private static func name(ofLimit code: ScanFault.Code) -> String? {
        code.rawValue.hasPrefix("limit-") ? String(code.rawValue.dropFirst(6)) : nil
    }

    /// Writes a counter of session events; `labels` returns the labels of an event, or nil for events that are not
    /// counted.
    private func events(
        _ name: String,
        _ help: String,
        _ totals: SessionTotals,
        _ page: inout Page,
        _ labels: (SessionCounters.Event) -> String?
    ) {
        let values = totals.counters.events.compactMap { event, count in labels(event).map { ("{\($0)}", count) } }
        counter(name, help, values, &page)
    }

    /// Records that wait in files until the server of a store has confirmed them.
    private func deliveries(_ logs: [LogFigures], _ page: inout Page) {
        let all = logs.compactMap { log in log.delivery.map { ("{sink=\"\(Self.label(log.name))\"}", $0) } }
        guard !all.isEmpty else { return }
        page.gauge("xmpptap_store_spool_bytes", "Bytes that wait.", all.map { ($0, Double($1.bytes)) })
        let now = context.clock.now().time
        page.gauge(
            "xmpptap_store_lag_seconds",
            "Age of the oldest stanza that no server has confirmed.",
            all.map { label, figures in
                (label, figures.oldest.map { max(0, Double(now.nanoseconds) - Double($0.nanoseconds)) / 1e9 } ?? 0)
            }
        )
        counter("xmpptap_store_batches_total", "Batches confirmed.", all.map { ($0, $1.batches) }, &page)
        counter("xmpptap_store_sent_total", "Stanzas confirmed.", all.map { ($0, $1.sent) }, &page)
        counter("xmpptap_store_retries_total", "Attempts to send that failed.", all.map { ($0, $1.retries) }, &page)
        counter("xmpptap_store_rejected_total", "Stanzas that a server refused.", all.map { ($0, $1.rejected) }, &page)
        counter(
            "xmpptap_store_dropped_total",
            "Stanzas dropped because the spool was full.",
            all.map { ($0, $1.dropped) },
            &page
        )
    }

    private func counter(
        _ name: String,
        _ help: String,
        _ values: [(labels: String, value: UInt64)],
        _ page: inout Page
    ) {
        page.add("counter", name, help, rising(name, values.sorted { $0.labels < $1.labels }).map { ($0, String($1)) })
    }

    private func histogram(
        _ name: String,
        _ help: String,
        _ values: [(labels: String, value: DurationHistogram)],
        _ page: inout Page
    ) {
        var lines: [(labels: String, value: String)] = []
        for (labels, histogram) in values {
            let comma = labels.isEmpty ? "" : ","
            var total: UInt64 = 0
            var buckets: [(labels: String, value: UInt64)] = []
            for index in 0...DurationHistogram.bounds.count {
                total += histogram.counts.isEmpty ? 0 : histogram.counts[index]
                let isLast = index == DurationHistogram.bounds.count
                let bound = isLast ? "+Inf" : "\(Double(DurationHistogram.bounds[index]) / 1e9)"
                buckets.append(("_bucket{\(labels)\(comma)le=\"\(bound)\"}", total))
            }
            let ending = labels.isEmpty ? "" : "{\(labels)}"
            let sum = rising(name, [("_sum\(ending)", UInt64(clamping: histogram.sum))])
            lines += rising(name, buckets).map { ($0, String($1)) }
            lines += sum.map { ($0, "\(Double($1) / 1e9)") }
            lines += rising(name, [("_count\(ending)", total)]).map { ($0, String($1)) }
        }
        page.add("histogram", name, help, lines)
    }

    /// Returns the values, each at least as high as when it was last returned.
    private func rising(
        _ name: String,
        _ values: [(labels: String, value: UInt64)]
    ) -> [(labels: String, value: UInt64)] {
        last.withLock { last in
            values.map { labels, value in
                let value = max(value, last[name + labels] ?? 0)
                last[name + labels] = value
                return (labels, value)
            }
        }
    }

    /// Escapes the value of a label.
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
