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
    private var trips: [String: Trips] = [:]
    private var namespaces: [String: Size] = [:]
    private var talkers: [String: Size] = [:]
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
        if let key = Self.key(name.isEmpty ? record.kind.rawValue : name, in: namespaces) {
            namespaces[key, default: Size()].add(record.length)
        }
        guard record.kind == .stanza else { return }
        let sender = direction == .send ? record.jid.map { String($0.prefix { $0 != "/" }) } : nil
        if let who = sender ?? record.from.map({ content.slice($0).bareText }),
            let key = Self.key(who, in: talkers)
        {
            talkers[key, default: Size()].add(record.length)
        }
        if let request, let time = record.roundTrip, let key = Self.key(request, in: trips) {
            if time > trips[key]?.times.longest ?? -1 { trips[key, default: Trips()].slowest = position }
            trips[key, default: Trips()].times.add(time)
            trips[key, default: Trips()].answers += 1
        }
    }

    /// Counts an iq request.
    mutating func addRequest(_ payload: String) {
        if let key = Self.key(payload, in: trips) { trips[key, default: Trips()].requests += 1 }
    }

    private static func key<Value>(_ name: String, in counted: [String: Value]) -> String? {
        counted[name] != nil || counted.count < maximumKeys ? name : nil
    }

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
        for (payload, trips) in trips.sorted(by: { $0.value.times.longest > $1.value.times.longest }).prefix(Self.shown)
        {
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
        Self.append("namespaces", namespaces, to: &output)
        Self.append("talkers", talkers, to: &output)
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

    private static func append(_ name: StaticString, _ sizes: [String: Size], to output: inout LineBuffer) {
        output.field(name)
        output.openArray()
        for (key, size) in sizes.sorted(by: { $0.value.bytes > $1.value.bytes }).prefix(shown) {
            output.openObject()
            output.field("name", key)
            output.field("items", size.items)
            output.field("bytes", size.bytes)
            output.closeObject()
        }
        output.closeArray()
    }
}

extension Measures.Size {
    fileprivate mutating func add(_ length: UInt64) {
        items += 1
        bytes &+= length
    }
}
