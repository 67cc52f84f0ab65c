internal import Foundation

/// How the tests were built: what takes minutes without optimisation runs in a release build only.
///
/// The name of a suite of such tests ends in `LongTests`, and it is `.enabled(if: BuildMode.isRelease)`.
package enum BuildMode {
    /// Whether this is an optimised build.
    package static let isRelease: Bool = {
        #if DEBUG
            false
        #else
            true
        #endif
    }()

    /// Whether a sanitizer runs beside the tests, which keeps memory that was given back.
    package static let isSanitized = ProcessInfo.processInfo.environment["XMPPTAP_SANITIZER"] != nil
}
