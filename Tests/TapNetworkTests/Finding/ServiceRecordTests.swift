import TapTestKit
import Testing

@testable import TapNetwork

struct ServiceRecordTests {
    private func record(
        _ target: String,
        _ priority: UInt16 = 0,
        _ weight: UInt16 = 0,
        _ service: ServiceRecord.Service = .clear
    ) -> ServiceRecord {
        ServiceRecord(service: service, priority: priority, weight: weight, port: 5222, target: target)
    }

    @Test func `Records of both services are ordered by priority, the lowest first`() {
        var generator = SeededGenerator(seed: 1)
        let records = [record("c", 20, 100), record("a", 5, 0, .tls), record("b", 10), record("d", 30, 1, .tls)]
        #expect(records.arranged(using: &generator).map(\.target) == ["a", "b", "c", "d"])
        #expect([ServiceRecord]().arranged(using: &generator).isEmpty)
    }

    @Test func `Records of one priority are ordered by weight, and all are returned`() {
        var generator = SeededGenerator(seed: 2)
        let records = [record("light", 1, 10), record("heavy", 1, 30), record("none", 1, 0)]
        var first: [String: Int] = [:]
        for _ in 0..<4000 {
            let order = records.arranged(using: &generator).map(\.target)
            #expect(order.sorted() == ["heavy", "light", "none"])
            first[order[0], default: 0] += 1
        }
        #expect((2700...3100).contains(first["heavy", default: 0]), "\(first)")
        #expect((850...1150).contains(first["light", default: 0]), "\(first)")
        #expect((30...200).contains(first["none", default: 0]), "a small chance: \(first)")
    }

    @Test func `Large weights do not overflow`() {
        var generator = SeededGenerator(seed: 3)
        let records = (0..<64).map { record("\($0)", 1, 65535) }
        #expect(Set(records.arranged(using: &generator)).count == 64)
    }

    @Test func `The choice of servers follows from the replies for both services`() {
        var generator = SeededGenerator(seed: 4)
        func choice(
            _ clear: Result<[ServiceRecord], LookupFault>,
            _ tls: Result<[ServiceRecord], LookupFault>
        ) -> ServiceChoice { ServiceChoice(clear: clear, tls: tls, using: &generator) }
        let fault = LookupFault(message: "no answer")
        let no = record("")
        let noTLS = record("", 0, 0, .tls)
        let server = record("a")
        #expect(choice(.success([]), .success([])) == .fallback)
        #expect(choice(.success([server]), .success([noTLS])) == .servers([server]))
        #expect(choice(.success([server]), .failure(fault)) == .servers([server]))
        #expect(choice(.success([no]), .success([])) == .refused)
        #expect(choice(.success([no]), .success([noTLS])) == .refused)
        #expect(choice(.success([no]), .failure(fault)) == .refused)
        #expect(choice(.success([]), .success([noTLS])) == .fallback)
        #expect(choice(.failure(fault), .success([])) == .failed(fault))
        #expect(choice(.success([]), .failure(fault)) == .failed(fault))
        let direct = record("b", 0, 0, .tls)
        #expect(choice(.success([no]), .success([direct])) == .servers([direct]))
    }
}
