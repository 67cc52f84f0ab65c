internal import ArgumentParser

/// The environment of the process.
struct Surroundings {
    /// Whether standard output is a terminal.
    var isTerminal: Bool
    /// Whether colours are allowed: `NO_COLOR` is not set, and `TERM` is not `dumb`.
    var wantsColour: Bool
    /// Whether `CLICOLOR_FORCE` is set to another value than 0.
    var forcesColour = false

    static var current: Surroundings {
        Surroundings(
            isTerminal: Console.isTerminal,
            wantsColour: Console.environment("NO_COLOR") == nil && Console.environment("TERM") != "dumb",
            forcesColour: Console.environment("CLICOLOR_FORCE").map { $0 != "0" } ?? false
        )
    }
}

/// The value of `--color`: when output is coloured.
enum ColourChoice: String, Hashable, CaseIterable, ExpressibleByArgument {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`; always if `CLICOLOR_FORCE` is set.
    case auto
    case always
    case never

    func isColoured(in surroundings: Surroundings) -> Bool {
        switch self {
        case .always: true
        case .never: false
        case .auto: surroundings.isTerminal && surroundings.wantsColour || surroundings.forcesColour
        }
    }
}
