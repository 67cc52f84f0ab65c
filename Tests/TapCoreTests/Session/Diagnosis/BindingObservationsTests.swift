import Testing

@testable import TapCore
import TapDiagnosis

@Suite struct BindingObservationsTests {
    @Test func `the observations of the oldest domains are discarded first`() {
        let observations = BindingObservations()
        let count = 2 * BindingObservations.capacity
        for number in 0..<count {
            observations.store("d\(number).example", .bindingMismatch, accepted: number % 2 == 0)
        }
        let known = (0..<count).filter { observations.outcomes("d\($0).example")[.bindingMismatch] != nil }
        #expect(known.count <= BindingObservations.capacity && known.count >= BindingObservations.capacity / 2)
        #expect(known == Array((count - known.count)..<count))
        #expect(observations.outcomes("d\(count - 1).example")[.bindingMismatch] == false)
        #expect(observations.outcomes("d\(count - 1).example")[.bindingDenied] == nil)
    }
}
