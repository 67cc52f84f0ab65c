internal import TapDiagnosis
internal import TapRecord
internal import XMPPCore

/// Figures of a table: round trips by payload, items over time, sizes by namespace, and who sends most.
struct Measures {
    /// Maximum number of payloads, namespaces and addresses that are counted separately.
    private static let maximumKeys = 1000
    /// Number of entries of a list that are shown.
    private static let shown = 50

    private struct Trips {
        var times = RoundTrips()
        var slowest = 0
        var requests: UInt64 = 0
        var answers: UInt64 = 0
    }

    fileprivate struct Size {
        var items: UInt64 = 0
        var bytes: UInt64 = 0
    }

    private var statistics = RecordStatistics()
    private var trips = Tally<Trips>(limit: maximumKeys, by: { UInt64(clamping: $0.times.longest) })
    private var namespaces = Tally<Size>(limit: maximumKeys, by: { $0.bytes })
    private var talkers = Tally<Size>(limit: maximumKeys, by: { $0.bytes })
    private var rate = Sparkline(intervals: 240, width: 10_000_000)

    /// Adds a record.
    ///
    /// - Parameter request: The payload of the request that the record answers; nil if it answers none.
    mutating func add(_ record: borrowing Record, _ content: Span<UInt8>, at position: Int, request: String?) {
        statistics.add(copy record, content: content)
        guard let direction = record.direction, record.kind.isStreamItem else { return }
        rate.add(at: record.time.nanoseconds)
        let payload = record.payloadText(content)
        let name = payload.hasPrefix("{") ? String(payload.dropFirst().prefix { $0 != "}" }) : payload
        namespaces.change(name.isEmpty ? record.kind.rawValue : name, from: Size()) { $0.add(record.length) }
        guard record.kind == .stanza else { return }
        let sender = direction == .send ? record.jid.map { String($0.prefix { $0 != "/" }) } : nil
        if let who = sender ?? record.from.map({ content.slice($0).bareText }) {
            talkers.change(who, from: Size()) { $0.add(record.length) }
        }
        guard let request, let time = record.roundTrip else { return }
        trips.change(request, from: Trips()) { trips in
            if time > trips.times.longest || trips.answers == 0 { trips.slowest = position }
            trips.times.add(time)
            trips.answers += 1
        }
    }

    /// Counts an iq request.
    mutating func addRequest(_ payload: String) { trips.change(payload, from: Trips()) { $0.requests += 1 } }

    /// Writes the figures as fields of the open object.
    func append(to output: inout LineBuffer) {
        output.field("kinds")
        output.openArray()
        for (kind, figures) in statistics.kinds {
            output.openObject()
            output.field("kind", kind.rawValue)
            output.field("sent", figures.sent)
            output.field("received", figures.received)
            output.field("bytes", figures.bytes)
            output.field("largest", figures.largest)
            output.closeObject()
        }
        output.closeArray()
        output.field("trips")
        output.openArray()
        let (slowest, leftOff) = trips.first(Self.shown)
        for (payload, trips) in slowest {
            output.openObject()
            output.field("payload", payload)
            output.field("requests", trips.requests)
            output.field("answers", trips.answers)
            output.field("p50", Int(trips.times.percentile(50) / 1000))
            output.field("p99", Int(trips.times.percentile(99) / 1000))
            output.field("longest", Int(trips.times.longest / 1000))
            output.field("slowest", trips.slowest)
            output.closeObject()
        }
        output.closeArray()
        output.field("trips_left_off", leftOff)
        let others = Self.append("namespaces", namespaces, to: &output)
        output.field("namespaces_left_off", others)
        let otherTalkers = Self.append("talkers", talkers, to: &output)
        output.field("talkers_left_off", otherTalkers)
        output.field("rate")
        output.openObject()
        output.field("start", Int((rate.start ?? 0) / 1000))
        output.field("width", Int(rate.width / 1000))
        output.field("counts")
        output.openArray()
        for count in rate.counts {
            output.separate()
            output.append(decimal: UInt64(count))
        }
        output.closeArray()
        output.closeObject()
    }

    /// Writes the largest entries.
    ///
    /// - Returns: The number of other entries.
    private static func append(_ name: StaticString, _ sizes: Tally<Size>, to output: inout LineBuffer) -> Int {
        let (largest, leftOff) = sizes.first(shown)
        output.field(name)
        output.openArray()
        for (key, size) in largest {
            output.openObject()
            output.field("name", key)
            output.field("items", size.items)
            output.field("bytes", size.bytes)
            output.closeObject()
        }
        output.closeArray()
        return leftOff
    }
}

extension Measures.Size {
    fileprivate mutating func add(_ length: UInt64) {
        items += 1
        bytes &+= length
    }
}
