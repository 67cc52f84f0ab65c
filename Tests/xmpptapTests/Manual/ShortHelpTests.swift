import Testing
import TapManual

@testable import TapRules
@testable import xmpptap

struct ShortHelpTests {
    private static let commands =
        (try? CommandDefinition.program(dump: Invocation.definitions).withBelow) ?? []

    @Test(arguments: commands.map(\.title))
    func `The short help fits a screen and points to the full help`(title: String) throws {
        let command = try #require(Self.commands.first { $0.title == title })
        for width in [60, 80, 100] {
            let lines = ShortHelp(command: command).lines(width: width)
            #expect(lines.count <= 40 || width == 60, "\(lines.count) rows of \(width) columns")
            #expect(lines.contains { $0.contains("xmpptap help") })
            #expect(lines.count { $0.hasPrefix("  xmpptap ") } >= 3, "examples: \(lines)")
        }
        // Every command has --help and --version.
        let count = command.arguments.count { $0.isShown && !$0.isPositional } - 2
        #expect(ShortHelp.choices[title] != nil || count <= ShortHelp.maximumOptions, "\(count) options and no choice")
    }

    @Test func `The options selected for the short help exist`() throws {
        for (title, options) in ShortHelp.choices {
            let command = try #require(Self.commands.first { $0.title == title })
            for option in options {
                #expect(command.arguments.contains { $0.names.contains(option) }, "\(title) \(option)")
            }
        }
        for (name, topics) in ShortHelp.topics {
            #expect(Self.commands.contains { $0.title == "xmpptap \(name)" }, "\(name)")
            for topic in topics { #expect(ManualPage.named(topic) != nil, "\(topic)") }
        }
    }

    @Test func `--help shows the short help, but the help command does not`() throws {
        func title(_ arguments: String...) -> String? {
            ShortHelp(asked: arguments, Invocation.definitions)?.command.title
        }
        #expect(title("--help") == "xmpptap")
        #expect(title("proxy", "--listen", "15222", "-h") == "xmpptap proxy")
        #expect(title("ca", "create", "--help") == "xmpptap ca create")
        #expect(title("help", "proxy") == nil)
        #expect(title("read", "--", "--help") == nil)
        #expect(title("nothing", "--help") == nil)
        #expect(title("proxy") == nil)
    }

    @Test func `help filters shows the page on changes, which lists every condition`() throws {
        #expect(try ManualCommand.arguments(["help", "filters"]) == ["manual", "filters"])
        let page = try #require(ManualPage.named("filters"))
        #expect(page.name == "changes")
        let text = "\(page.blocks)"
        for name in FilterWords.Name.allCases.map(\.rawValue) + FilterWords.words.keys {
            #expect(text.contains(name), "\(name)")
        }
    }
}
