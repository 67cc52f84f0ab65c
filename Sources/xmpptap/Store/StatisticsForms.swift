internal import TapRecord
internal import TapStore

extension AuditStatistics {
    /// The offsets of the zone, such as `+01:00`.
    var zones: [String] {
        offsets.map { offset in
            let minutes = offset.magnitude / 60
            return "\(offset < 0 ? "-" : "+")\(Self.two(minutes / 60)):\(Self.two(minutes % 60))"
        }
    }

    private static func two(_ number: UInt64) -> String { number < 10 ? "0\(number)" : "\(number)" }

    /// Returns the statistics with shorter lists. Those of hours, days and kinds stay complete.
    ///
    /// - Parameter top: Maximum number of entries; nil for all.
    func shortened(to top: Int?) -> AuditStatistics {
        guard let top else { return self }
        var short = self
        short.pairs = Array(pairs.prefix(top))
        short.failedLogins = failedLogins.prefix(top).map { logins in
            var logins = logins
            logins.accounts = Array(logins.accounts.prefix(top))
            return logins
        }
        short.requests = Array(requests.prefix(top))
        short.unanswered = Array(unanswered.prefix(top))
        short.sizes = Array(sizes.prefix(top))
        return short
    }

    // MARK: JSON

    /// The statistics as a JSON object.
    var json: String {
        LineBuffer.object { line in
            line.field("stanzas", stanzas)
            line.field("bytes", bytes)
            if let times { line.fields(times) }
            line.field("messages", messages)
            line.field("copies", copies)
            line.list("pairs", pairs) { line, pair in
                line.field("address", pair.first)
                line.field("with", pair.second)
                line.field("sent", pair.forth)
                line.field("received", pair.back)
                line.fields(pair.times)
            }
            line.field("utc_offsets")
            line.openArray()
            for zone in zones {
                line.separate()
                line.appendJSONString(zone)
            }
            line.closeArray()
            line.list("hours", Array(hours.enumerated())) { line, hour in
                line.field("hour", hour.offset)
                line.field("messages", hour.element)
            }
            line.list("days", days) { line, day in
                line.field("day", day.name)
                line.field("messages", day.count)
            }
            line.list("failed_logins", failedLogins) { line, logins in
                line.field("cause", logins.cause)
                line.field("count", logins.count)
                line.list("accounts", logins.accounts) { line, account in
                    line.field("account", account.name)
                    line.field("count", account.count)
                }
                if let last = logins.last { line.field("last", last.text) }
                if let finding = logins.finding { line.field("finding", finding) }
            }
            line.list("requests", requests) { line, request in
                if let payload = request.payload { line.field("payload", payload) }
                line.field("count", request.count)
                line.field("p50_ns", Int(request.median))
                line.field("p99_ns", Int(request.percentile99))
                line.field("max_ns", Int(request.longest))
            }
            line.list("unanswered", unanswered) { line, request in
                if let payload = request.payload { line.field("payload", payload) }
                line.field("count", request.count)
                line.field("last", request.last.text)
            }
            line.list("kinds", kinds) { line, size in
                line.field("kind", size.kind.name)
                line.field("stanzas", size.stanzas)
                line.field("bytes", size.bytes)
            }
            line.list("sizes", sizes) { line, size in
                line.field("namespace", size.namespace)
                line.field("kind", size.kind.name)
                line.field("stanzas", size.stanzas)
                line.field("bytes", size.bytes)
            }
        }
    }

    // MARK: Comma-separated values

    private enum Column: String, CaseIterable {
        case section, name, with, kind, count, received, bytes, first, last
        case p50 = "p50_ns"
        case p99 = "p99_ns"
        case max = "max_ns"
        case text
    }

    /// The statistics as one table of comma-separated values: a line of names, and a line for each entry of a section, in
    /// which the columns that it does not have are empty.
    var csv: [String] {
        var lines = [CSVLine.text(Column.allCases.map(\.rawValue))]
        func add(_ section: String, _ name: String, _ count: Int, _ values: [Column: String] = [:]) {
            var values = values
            (values[.section], values[.name], values[.count]) = (section, name, "\(count)")
            lines.append(CSVLine.text(Column.allCases.map { values[$0] ?? "" }))
        }
        for pair in pairs {
            add(
                "pair",
                pair.first,
                pair.forth,
                [
                    .with: pair.second, .received: "\(pair.back)", .first: pair.times.lowerBound.text,
                    .last: pair.times.upperBound.text,
                ]
            )
        }
        for (hour, count) in hours.enumerated() { add("hour", "\(hour)", count) }
        for day in days { add("day", day.name, day.count) }
        for logins in failedLogins {
            add(
                "failed-login",
                logins.cause,
                logins.count,
                [.last: logins.last?.text ?? "", .text: logins.finding ?? ""]
            )
            for account in logins.accounts { add("failed-account", account.name, account.count, [.with: logins.cause]) }
        }
        for request in requests {
            add(
                "request",
                request.payload ?? "",
                request.count,
                [.p50: "\(request.median)", .p99: "\(request.percentile99)", .max: "\(request.longest)"]
            )
        }
        for request in unanswered {
            add("unanswered", request.payload ?? "", request.count, [.last: request.last.text])
        }
        for size in kinds { add("kind", size.kind.name, size.stanzas, [.bytes: "\(size.bytes)"]) }
        for size in sizes {
            add("size", size.namespace, size.stanzas, [.kind: size.kind.name, .bytes: "\(size.bytes)"])
        }
        return lines
    }
}

extension LineBuffer {
    /// Writes a field with a list of objects.
    fileprivate mutating func list<Item>(
        _ name: StaticString,
        _ items: [Item],
        _ body: (inout LineBuffer, Item) -> Void
    ) {
        field(name)
        openArray()
        for item in items {
            openObject()
            body(&self, item)
            closeObject()
        }
        closeArray()
    }

    /// Writes the first and the last time.
    fileprivate mutating func fields(_ times: ClosedRange<Timestamp>) {
        field("first", times.lowerBound.text)
        field("last", times.upperBound.text)
    }
}
