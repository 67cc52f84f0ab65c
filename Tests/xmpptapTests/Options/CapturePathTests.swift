import TapRecord
import Testing

@testable import TapCapture
@testable import xmpptap

struct CapturePathTests {
    private static let time = Timestamp(nanoseconds: 1_795_281_762_102_000_000)

    private func path(_ template: String) -> CapturePath { CapturePath(template, time: Self.time) }

    @Test func `A capture in a folder is named by the time and a number`() {
        #expect(path("/").destination == .numbered(stem: "/xmpptap-20261121T172242Z", ending: ".xtap"))
        #expect(path("/tmp").destination == .numbered(stem: "/tmp/xmpptap-20261121T172242Z", ending: ".xtap"))
    }

    @Test func `Placeholders are replaced, and a session without a JID is named by its number`() {
        #expect(path("a-%t-100%%.xtap").destination == .path("a-20261121T172242Z-100%.xtap"))
        let file = path("x/%s-%j.xtap")
        #expect(file.isPerSession && file.hasJID)
        #expect(!path("%t").isPerSession)
        #expect(file.name(session: 7) == "x/7-session-7.xtap")
        #expect(
            file.name(session: 7, jid: "juliet@example.org/the balcony")
                == "x/7-juliet@example.org%2Fthe%20balcony.xtap"
        )
    }

    @Test func `The file names of a run are quoted for a shell`() {
        #expect(path("a b.xtap").shellWords(isRotated: false) == "'a b.xtap'")
        #expect(path("it's.xtap").shellWords(isRotated: false) == "'it'\\''s.xtap'")
        #expect(path("a.xtap").shellWords(isRotated: true) == "a-[0-9]*.xtap a.xtap")
        #expect(path("a b.xtap.gz").shellWords(isRotated: true) == "'a b'-[0-9]*.xtap.gz 'a b.xtap.gz'")
        #expect(path("a.txt").shellWords(isRotated: true) == "a.txt.* a.txt")
        #expect(path("/tmp").shellWords(isRotated: false) == "/tmp/xmpptap-20261121T172242Z-*.xtap")
        #expect(path("x/%t-%s-%j.xtap").shellWords(isRotated: true) == "x/20261121T172242Z-*-*.xtap")
    }

    @Test(arguments: [
        ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"), (".", "%2E"), ("é@b", "%C3%A9@b"), ("a%b\n", "a%25b%0A"),
    ])
    func `A JID in a file name cannot lead out of the folder`(jid: String, name: String) {
        #expect(CapturePath.encoded(jid) == name)
    }

    @Test func `A long JID is shortened for a file name`() {
        #expect(CapturePath.encoded(String(repeating: "é", count: 1000)).utf8.count == 180)
    }

    @Test func `A capture's folder may have the placeholder %t, but not %j`() {
        #expect(
            refusal { try CapturePath.check("caps/%j/x.xtap") }
                == "--capture: %s and %j belong in the name of the file, not in that of its folder"
        )
        #expect(throws: Never.self) { try CapturePath.check("caps/%t/%j.xtap") }
    }

    @Test(arguments: [("x-%d.xtap", "%d"), ("x%", "% ")])
    func `An unknown placeholder is refused`(template: String, placeholder: String) {
        #expect(
            refusal { try CapturePath.check(template) }
                == "--capture: \(placeholder) is no placeholder; "
                + "write %t (time), %s (session), %j (JID) or %% (a percent sign)"
        )
    }
}
