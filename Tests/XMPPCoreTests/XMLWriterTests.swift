import Testing
import XMPPCore

@Suite struct XMLWriterTests {
    private func written(_ content: (inout XMLWriter) -> Void) -> String {
        String(decoding: XMLWriter.bytes(content), as: UTF8.self)
    }

    @Test func `nested calls write nested elements, and nil attributes and texts are omitted`() {
        let xml = written {
            $0.element("iq", ["type": "result", "id": "a1", "from": nil]) {
                $0.element("query", xmlns: "jabber:iq:roster") {
                    $0.element("item", ["jid": "juliet@example.org"])
                    $0.element("group", text: "Friends")
                    $0.element("note", text: nil)
                }
            }
        }
        #expect(
            xml == """
                <iq type='result' id='a1'><query xmlns='jabber:iq:roster'><item jid='juliet@example.org'/>\
                <group>Friends</group></query></iq>
                """
        )
    }

    @Test func `a stream header is written before its element is closed`() {
        var writer = XMLWriter()
        writer.start("stream:stream", ["version": "1.0"])
        #expect(String(decoding: writer.take(), as: UTF8.self) == "<stream:stream version='1.0'>")
        writer.element("a")
        #expect(String(decoding: writer.take(), as: UTF8.self) == "<a/>")
        writer.end()
        #expect(String(decoding: writer.take(), as: UTF8.self) == "</stream:stream>")
    }

    @Test func `white space in attributes survives attribute-value normalisation`() {
        #expect(written { $0.element("a", ["b": "\t1\r\n2 3"]) } == "<a b='&#9;1&#13;&#10;2 3'/>")
    }

    @Test func `markup is escaped only if necessary`() {
        #expect(
            written { $0.element("a", ["b": "<'\"&>"], text: "<'\"&>\t\r\n") }
                == "<a b='&lt;&apos;\"&amp;>'>&lt;'\"&amp;>\t&#13;\n</a>"
        )
    }

    @Test(arguments: [
        (["]]>"], "<a>]]&gt;</a>"), (["]", "]", ">"], "<a>]]&gt;</a>"), (["]]]>"], "<a>]]]&gt;</a>"),
        (["]>", "]]x>"], "<a>]>]]x></a>"), (["]]>>"], "<a>]]&gt;></a>"),
    ])
    func `text never contains the sequence ]]>, however it is split`(pieces: [String], xml: String) {
        #expect(written { writer in writer.element("a") { for piece in pieces { $0.text(piece) } } } == xml)
    }

    @Test func `the sequence ]]> is not escaped if a child element splits it`() {
        let xml = written {
            $0.element("a") {
                $0.text("]]")
                $0.element("b")
                $0.text(">")
            }
        }
        #expect(xml == "<a>]]<b/>></a>")
    }

    @Test func `characters that XML cannot contain are replaced and counted`() {
        var writer = XMLWriter()
        writer.element("a", ["b": "\u{0}x\u{ffff}"], text: "\u{1b}[\u{fffe}é\u{fffd}🙂")
        let xml = String(decoding: writer.take(), as: UTF8.self)
        #expect(xml == "<a b='\u{fffd}x\u{fffd}'>\u{fffd}[\u{fffd}é\u{fffd}🙂</a>")
        #expect(writer.replacedCharacters == 4)
    }

    @Test func `verbatim bytes can be written between elements`() {
        let xml = written {
            $0.element("forwarded") { $0.verbatim("<message/>".utf8) }
        }
        #expect(xml == "<forwarded><message/></forwarded>")
    }

    @Test func `empty text produces an empty-element tag`() {
        #expect(written { $0.element("a", text: "") } == "<a/>")
    }
}
