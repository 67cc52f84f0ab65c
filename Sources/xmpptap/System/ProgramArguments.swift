internal import Glibc

/// The command-line arguments.
enum ProgramArguments {
    /// All arguments; the first is the program's name.
    ///
    /// Swift reads them from `/proc`, which may be missing in a chroot: `xmpptap demo` then printed the help. This
    /// property must be read before the environment is changed.
    static let all = access("/proc/self/cmdline", R_OK) == 0 ? CommandLine.arguments : onStack()

    /// The environment variables, as passed to child processes; nil if there are none.
    static var environment: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? {
        dlsym(nil, "environ")?.load(as: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?.self)
    }

    /// Returns the arguments from their position on the stack before the environment: their number, pointers to them,
    /// and a null pointer.
    ///
    /// Source: System V ABI, AMD64 supplement §3.4.1 (the same on AArch64). Empty if they are not found.
    private static func onStack() -> [String] {
        guard let environment else { return [] }
        // A changed environment is stored elsewhere; the original one is above the stacks of all threads.
        var here = 0
        let isFirst = withUnsafePointer(to: &here) { UInt(bitPattern: $0) < UInt(bitPattern: environment) }
        var place = environment - 1
        guard isFirst, place.pointee == nil else { return [] }
        var words: [String] = []
        while UInt(bitPattern: (place - 1).pointee) != UInt(words.count) {
            place -= 1
            guard let word = place.pointee else { return [] }
            words.append(String(cString: word))
        }
        return words.reversed()
    }
}
