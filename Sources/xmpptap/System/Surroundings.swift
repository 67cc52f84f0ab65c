internal import ArgumentParser

/// The environment of the process.
struct Surroundings {
    /// Standard output is a terminal.
    var isTerminal: Bool
    /// Neither `NO_COLOR` nor `TERM=dumb` is set.
    var wantsColour: Bool
    /// `CLICOLOR_FORCE` is set, and not to 0.
    var forcesColour = false

    static var current: Surroundings {
        Surroundings(
            isTerminal: Console.isTerminal,
            wantsColour: Console.environment("NO_COLOR") == nil && Console.environment("TERM") != "dumb",
            forcesColour: Console.environment("CLICOLOR_FORCE").map { $0 != "0" } ?? false
        )
    }
}

/// When output has colours.
enum ColourChoice: String, Hashable, CaseIterable, ExpressibleByArgument {
    /// On a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`; elsewhere if `CLICOLOR_FORCE` is set.
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
