import TapRecord
import Testing

@testable import TapStore
@testable import xmpptap

/// The forms in which `stats` prints its figures.
struct StatisticsFormsTests {
    private static let evil = "=<script>\"&\u{1B}[2J\u{202E}\n,"

    /// Figures with hostile texts only.
    private static var statistics: AuditStatistics {
        var statistics = AuditStatistics()
        (statistics.stanzas, statistics.messages) = (3, 2)
        let time = Timestamp(nanoseconds: 1_795_000_000_000_000_000)
        statistics.times = time...time
        statistics.pairs = [.init(first: evil, second: evil, forth: 1, back: 1, times: time...time)]
        statistics.hours[7] = 2
        statistics.days = [.init(name: "2026-11-18", count: 1), .init(name: "2026-11-21", count: 1)]
        statistics.offsets = [-12_600, 3600]
        statistics.failedLogins = [
            .init(cause: evil, count: 1, accounts: [.init(name: evil, count: 1)], last: time, finding: evil)
        ]
        statistics.requests = [.init(payload: evil, count: 1, median: 1, percentile99: 2, longest: 3)]
        statistics.unanswered = [.init(payload: evil, count: 1, last: time), .init(payload: nil, count: 1, last: time)]
        statistics.kinds = [.init(kind: .iq, stanzas: 3, bytes: 10)]
        statistics.sizes = [.init(kind: .iq, namespace: evil, stanzas: 3, bytes: 10)]
        return statistics
    }

    private static func tables(_ statistics: AuditStatistics) -> StatisticsTables {
        StatisticsTables(statistics, top: 10, hasShortTimes: false)
    }

    @Test("No text reaches a page, a terminal or a table as markup, control character or formula")
    func escapes() {
        let page = StatisticsPage(tables: Self.tables(Self.statistics)).text()
        #expect(!page.contains("<script") && page.contains("=&lt;script&gt;&quot;&amp;"))
        #expect(!page.contains("src=") && !page.contains("url(") && !page.contains("@import"))
        for text in [page] + Self.tables(Self.statistics).lines(.plain) {
            #expect(!text.unicodeScalars.contains { $0 == "\u{1B}" || $0 == "\u{202E}" })
        }
        #expect(Self.statistics.csv.contains { $0.hasPrefix("request,\"'=<script>\"\"&") })
        #expect(!Self.statistics.json.contains("\n"))
    }

    @Test("Offsets of the zone are named with their sign")
    func namesZones() {
        #expect(Self.statistics.zones == ["-03:30", "+01:00"])
        #expect(Self.tables(Self.statistics).zone == "local time, UTC-03:30 and UTC+01:00")
    }

    @Test("The chart of days includes those without messages, unless the days are far apart")
    func drawsDays() {
        func hasDays(_ names: String..., each day: String) -> Bool {
            var statistics = Self.statistics
            statistics.days = names.map { .init(name: $0, count: 1) }
            let page = StatisticsPage(tables: Self.tables(statistics)).text()
            return page.contains("messages by day") && page.contains("<title>\(day): ")
        }
        #expect(hasDays("2026-11-18", "2026-11-21", each: "2026-11-19"))
        #expect(!hasDays("1700-01-01", "2026-11-21", each: "2026-11-20"))
        #expect(hasDays("1677-09-21", "2262-04-11", each: "2262-04-11"))
        #expect(!hasDays("2026-11-21", each: "2026-11-21"))
    }

    @Test("--top shortens the lists, but not hours, days and kinds")
    func shortens() {
        let short = Self.statistics.shortened(to: 1)
        #expect(short.unanswered.count == 1 && short.days.count == 2 && short.kinds.count == 1)
        #expect(Self.statistics.shortened(to: nil) == Self.statistics)
        #expect(Self.tables(AuditStatistics()).lines(.plain) == [])
    }
}
