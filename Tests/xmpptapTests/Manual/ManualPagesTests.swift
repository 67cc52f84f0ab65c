import ArgumentParser
import Foundation
import TapManual
import Testing

@testable import xmpptap

/// The pages of the manual, and the commands that they and the README show.
struct ManualPagesTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
        .standardized
        .path
    private static let folder = "\(root)/Sources/xmpptap/Manual"

    @Test func `Every file of the manual is a topic with a title, and is embedded unchanged`() throws {
        let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder).filter { $0.hasSuffix(".md") }
        #expect(Set(files) == Set(ManualPage.all.map { "\($0.name).md" }))
        #expect(Set(ManualPage.all.map(\.title)).count == ManualPage.all.count)
        for page in ManualPage.all {
            let text = try String(contentsOfFile: "\(Self.folder)/\(page.name).md", encoding: .utf8)
            #expect(text.hasPrefix("# \(page.title)\n"), "\(page.name)")
            #expect(page.blocks == Array(Markdown.blocks(of: text).dropFirst()), "\(page.name)")
            // Links to commands' names would be hidden by them.
            #expect(!Invocation.commands.contains(page.name))
            #expect(!text.contains("\t") && !text.contains(" \n"), "\(page.name) has blanks at a line's end")
        }
    }

    /// The commands in fenced blocks of the README and the manual, with their continuation lines.
    private static func commands() throws -> [String] {
        let files = ["\(root)/README.md"] + ManualPage.all.map { "\(folder)/\($0.name).md" }
        return try files.flatMap { file in
            var commands: [String] = []
            for case .code(let lines) in Markdown.blocks(of: try String(contentsOfFile: file, encoding: .utf8)) {
                var rest = lines[...]
                while var line = rest.popFirst() {
                    while line.hasSuffix("\\"), let next = rest.popFirst() {
                        line = String(line.dropLast()) + next.drop { $0 == " " }
                    }
                    let typed = line.drop { $0.isNumber }.trimmingPrefix("$ ").trimmingPrefix("  run: ")
                    commands += typed.split(separator: " | ").map(String.init).filter { $0.hasPrefix("xmpptap ") }
                }
            }
            return commands
        }
    }

    /// The words of a shell's line up to a redirection, a comment, or what explains it.
    private static func words(_ line: String) -> [String] {
        var words: [String] = []
        var word: String?
        var quote: Character?
        var blanks = 0
        for character in line {
            if let open = quote {
                if character == open { quote = nil } else { word = (word ?? "") + String(character) }
            } else if character == "'" || character == "\"" {
                quote = character
                word = word ?? ""
            } else if character == " " {
                blanks += 1
                if let done = word { words.append(done) }
                word = nil
                // Two blanks lead to an explanation.
                if blanks > 1 { return words }
                continue
            } else if character == ">" || character == "#" && word == nil {
                return words
            } else {
                word = (word ?? "") + String(character)
            }
            blanks = 0
        }
        return words + (word.map { [$0] } ?? [])
    }

    @Test func `The program accepts every command in the README and the manual`() throws {
        let commands = try Self.commands()
        #expect(commands.count > 60)
        for command in commands {
            let words = Array(Self.words(command).dropFirst())
            // The parser prints completions by throwing an error.
            if words.first == "--generate-completion-script" { continue }
            #expect(throws: Never.self, "\(command)") { try Invocation.command(words) }
        }
        #expect(throws: (any Error).self) { try Invocation.command(Self.words("proxy --lisen 1")) }
    }

    @Test func `help with a topic shows its page, and other help is unchanged`() throws {
        #expect(try ManualCommand.arguments(["help", "tls"]) == ["manual", "tls"])
        #expect(try ManualCommand.arguments(["help"]) == ["manual"])
        for arguments in [
            ["help", "proxy"], ["help", "ca", "create"], ["help", "help"], ["help", "--help"], ["read", "help"], [],
        ] {
            #expect(try ManualCommand.arguments(arguments) == arguments)
        }
        func mistake(_ word: String) -> String {
            do throws(Failure) {
                return "\(try ManualCommand.arguments(["help", word]))"
            } catch {
                return error.status == .usage ? error.message : "status \(error.status)"
            }
        }
        #expect(mistake("login") == "no help for 'login'; did you mean 'logins'?")
        #expect(mistake("prxy") == "no help for 'prxy'; did you mean 'proxy'?")
        #expect(
            mistake("\u{1B}[2Jquantum").hasPrefix("no help for '\\u{1b}[2Jquantum'; the topics are start, install, ")
        )
    }
}
