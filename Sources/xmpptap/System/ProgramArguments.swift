internal import Glibc

/// The words of the command line.
enum ProgramArguments {
    /// All of them, the program's name first.
    ///
    /// Swift reads them from `/proc`, which a chroot may lack: `xmpptap demo` printed the help there. To be asked for first
    /// before the environment is changed.
    static let all = access("/proc/self/cmdline", R_OK) == 0 ? CommandLine.arguments : onStack()

    /// The variables of the environment, as programs that are started get them; nil if there are none.
    static var environment: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? {
        dlsym(nil, "environ")?.load(as: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?.self)
    }

    /// The arguments at their position on the stack, before the environment: their number, pointers to them, a null
    /// pointer.
    ///
    /// Source: System V ABI, AMD64 supplement §3.4.1 (the same on AArch64); empty if they are not found.
    private static func onStack() -> [String] {
        guard let environment else { return [] }
        // An environment that has been changed is elsewhere: the first one is above the stacks of all threads.
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
