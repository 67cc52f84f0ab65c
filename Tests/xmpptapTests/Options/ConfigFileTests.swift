import Testing

@testable import xmpptap

struct ConfigFileTests {
    @Test func `A line has a long flag and its value, and comments and empty lines are ignored`() throws {
        let text =
            "# clients\n\n  --listen 15222=example.org:5222  \r\n--log-to=a b.log,info\n\t--allow-remote\n--log  off\n"
        let file = try ConfigFile(path: "tap.conf", text: text)
        #expect(
            file.lines == [
                ConfigFile.Line(number: 3, flag: "--listen", value: "15222=example.org:5222"),
                ConfigFile.Line(number: 4, flag: "--log-to", value: "a b.log,info"),
                ConfigFile.Line(number: 5, flag: "--allow-remote", value: nil),
                ConfigFile.Line(number: 6, flag: "--log", value: "off"),
            ]
        )
        #expect(
            file.lines.map(\.argument) == [
                "--listen=15222=example.org:5222", "--log-to=a b.log,info", "--allow-remote", "--log=off",
            ]
        )
    }

    @Test(
        "Quotation marks around a value are removed",
        arguments: [
            (#"--log-to "my tap.log",info"#, "my tap.log,info"), ("--capture='a \"b\" c.xtap'", "a \"b\" c.xtap"),
            (#"--capture "say \"hi\" \\ bye.xtap""#, #"say "hi" \ bye.xtap"#), (#"--capture '\n"'"#, #"\n""#),
            (#"--capture "  two  ""#, "  two  "), (#"--log """#, ""),
            // Elsewhere they are what they are.
            ("--capture o'brien.xtap", "o'brien.xtap"), (#"--capture 5".xtap"#, #"5".xtap"#),
        ]
    )
    func quotes(line: String, value: String) throws {
        #expect(try ConfigFile(path: "t", text: line).lines.first?.value == value)
    }

    @Test(arguments: ["", "\n", "# a comment\n"])
    func `A byte order mark is ignored`(before: String) throws {
        let file = try ConfigFile(path: "tap.conf", text: "\u{FEFF}\(before)--json\n")
        #expect(file.lines.map(\.argument) == ["--json"])
    }

    @Test(
        "A line that is not a long flag is refused with file and line",
        arguments: [
            ("listen 15222", "t:1: 'listen 15222' is not a long flag; write one flag per line, as in --log info"),
            (
                "juliet@example.org",
                "t:1: 'juliet@example.org' is not a long flag; write one flag per line, as in --log info, and type what has "
                    + "no flag on the command line"
            ),
            ("\n-v", "t:2: '-v' is not a long flag; write one flag per line, as in --log info"),
            ("--", "t:1: '--' is not a long flag; write one flag per line, as in --log info"),
            ("--config other", "t:1: --config is not allowed in a file; type it on the command line"),
            ("--capture \"tap.xtap", "t:1: unterminated quotation mark in the value"),
            ("--json\n--capture='it\"", "t:2: unterminated quotation mark in the value"),
            (#"--capture "tap\""#, "t:1: unterminated quotation mark in the value"),
            ("#\n#\n--help", "t:3: --help is not allowed in a file; type it on the command line"),
        ]
    )
    func refusing(text: String, message: String) {
        #expect(refusal { try ConfigFile(path: "t", text: text) } == message)
    }

    @Test func `A flag on the command line replaces all its lines in the file`() throws {
        let file = try ConfigFile(path: "t", text: "--listen 1\n--listen 2\n--log info\n--log-to a\n")
        let lines = file.lines(beside: ["proxy", "--listen=3", "--log", "verbose", "--", "--log-to"])
        #expect(lines.map(\.argument) == ["--log-to=a"])
        #expect(
            ConfigFile.arguments(["read", "--log", "off", "--", "--odd"], with: lines)
                == ["read", "--log", "off", "--log-to=a", "--", "--odd"]
        )
        #expect(ConfigFile.arguments(["proxy"], with: lines) == ["proxy", "--log-to=a"])
    }
}
