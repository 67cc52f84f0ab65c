import Testing

@testable import TapReplay

@Suite struct ValueClassTests {
    @Test func `value classes have distinct, readable names`() {
        let names = ValueClass.allCases.map(\.rawValue)
        #expect(Set(names).count == names.count)
        #expect(names.allSatisfy { $0.allSatisfy { $0.isLowercase || $0 == "-" } })
    }
}
