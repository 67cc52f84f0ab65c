internal import Foundation

/// How the tests were built. Tests that take minutes without optimisation run only in release builds.
///
/// The name of a suite with these tests ends in `LongTests`, and the suite is `.enabled(if: BuildMode.isRelease)`, or, if it runs the
/// program, `.enabled(if: BuildMode.isReleaseProgram)`.
package enum BuildMode {
    /// Whether this is an optimised build.
    package static let isRelease: Bool = {
        #if DEBUG
            false
        #else
            true
        #endif
    }()

    /// The path of the program to test in place of the one built with the tests, which is an optimised one; nil without such a program.
    package static let program = ProcessInfo.processInfo.environment["XMPPTAP_PROGRAM"]

    /// Whether the program is an optimised build.
    package static let isReleaseProgram = isRelease || program != nil

    /// Whether a sanitizer is active. Sanitizers keep freed memory allocated.
    package static let isSanitized = ProcessInfo.processInfo.environment["XMPPTAP_SANITIZER"] != nil
}
