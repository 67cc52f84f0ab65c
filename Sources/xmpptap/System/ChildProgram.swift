internal import Glibc

/// Starts other programs.
enum ChildProgram {
    /// Starts a program with the environment of this one; returns nil if that fails.
    ///
    /// - Parameters:
    ///   - program: Its name, which is looked up in the search path, or its path.
    ///   - words: Its arguments; the first is the name that it is given.
    ///   - prepare: Sets what the program does not inherit from this one.
    static func start(
        _ program: String,
        _ words: [String],
        _ prepare: (inout posix_spawnattr_t, inout posix_spawn_file_actions_t) -> Void
    ) -> pid_t? {
        var attributes = posix_spawnattr_t()
        var actions = posix_spawn_file_actions_t()
        posix_spawnattr_init(&attributes)
        posix_spawn_file_actions_init(&actions)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        prepare(&attributes, &actions)
        // posix_spawn takes C strings that are allocated.
        let arguments = words.map { (word: String) in strdup(word) }
        defer { for argument in arguments { free(argument) } }
        var child: pid_t = 0
        let environment = ProgramArguments.environment
        let error = posix_spawnp(&child, program, &actions, &attributes, arguments + [nil], environment)
        return error == 0 ? child : nil
    }
}
