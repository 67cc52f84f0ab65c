import Glibc
import Logging
import TapNetwork
import Testing

@testable import xmpptap

struct ConsoleTests {
    @Test func `An empty environment variable counts as unset`() {
        setenv("XMPPTAP_TEST_EMPTY", "", 1)
        setenv("XMPPTAP_TEST_SET", "1", 1)
        #expect(Console.environment("XMPPTAP_TEST_EMPTY") == nil)
        #expect(Console.environment("XMPPTAP_TEST_SET") == "1")
        #expect(Console.environment("XMPPTAP_TEST_UNSET") == nil)
    }

    @Test func `Diagnostics name the severity of a warning`() {
        #expect(DiagnosticHandler.line(.info, "stopping") == "stopping")
        #expect(DiagnosticHandler.line(.warning, "no answer") == "warning: no answer")
    }

    @Test func `Once returns true only the first time`() {
        let once = Once()
        #expect(once.isFirst())
        #expect(!once.isFirst())
    }
}
