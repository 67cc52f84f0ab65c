/// The name of a file in its folder, for titles and pages.
package enum FileName {
    /// Returns the part of a path after the last slash.
    package static func last(of path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }
}
