import TapStore
import TapTestKit
import Testing

/// The store in a SQLite file passes the checks of every store.
struct StoreConformanceTests {
    @Test("A store in a file does what every store must do", arguments: StoreCheck.all)
    func conforms(check: StoreCheck) throws {
        let folder = try TemporaryFolder()
        let path = folder.path(of: "a.sqlite")
        // Small parts, so that queries and deletions cross their borders.
        let opening = CheckedStore.Opening(
            writer: { try SQLiteStore.create(path, partSize: 50) },
            reader: { try SQLiteStore.open(path) },
            maintenance: { try SQLiteStore.openForMaintenance(path) }
        )
        for difference in try check.differences(opening) { Issue.record("\(difference)") }
        #expect(try SQLiteStore.open(path).faults() == [])
    }
}
