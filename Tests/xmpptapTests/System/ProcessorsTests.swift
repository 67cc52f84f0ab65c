import Testing

@testable import xmpptap

@Suite struct ProcessorsTests {
    @Test(arguments: [
        ("Name:\txmpptap\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n", 2),
        ("Cpus_allowed:\t2\n", 1),
        ("Cpus_allowed:\tffffffff,00000001\n", 33),
        ("Cpus_allowed:\t0\n", nil),
        ("Name:\txmpptap\n", nil),
    ]) func `the processors in the affinity mask of a process are counted`(status: String, count: Int?) {
        #expect(Processors.allowed(in: status) == count)
    }

    @Test func `this process may run on at least one processor`() throws {
        #expect(try #require(Processors.allowed(in: try TextFile.read("/proc/self/status"))) > 0)
    }
}
