internal import Foundation

/// How the tests were built. Tests that take minutes without optimisation run only in release builds.
///
/// The name of a suite with these tests ends in `LongTests`, and the suite is `.enabled(if: BuildMode.isRelease)`.
package enum BuildMode {
    /// Whether this is an optimised build.
    package static let isRelease: Bool = {
        #if DEBUG
            false
        #else
            true
        #endif
    }()

    /// Whether a sanitizer is active. Sanitizers keep freed memory allocated.
    package static let isSanitized = ProcessInfo.processInfo.environment["XMPPTAP_SANITIZER"] != nil
}
