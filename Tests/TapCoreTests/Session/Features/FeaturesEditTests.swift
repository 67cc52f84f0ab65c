import TapTestKit
import Testing
import XMPPCore

@testable import TapCore
import TapRecord

/// Tests that features are removed and added, and all other bytes stay unchanged.
@Suite struct FeaturesEditTests {
    private static let header =
        "<?xml version='1.0'?><s:stream xmlns='jabber:client' xmlns:s='http://etherx.jabber.org/streams' from='a' id='1' "
        + "version='1.0'>"

    /// Returns the features after an edit; nil if nothing was changed.
    private func edited(_ features: String, _ edit: FeaturesEdit) throws -> String? {
        try outcome(features, edit).map { String(decoding: $0.bytes, as: UTF8.self) }
    }

    private func outcome(_ features: String, _ edit: FeaturesEdit) throws -> EditedItem? {
        var decoder = StreamDecoder()
        decoder.append(Array((Self.header + features).utf8).span)
        while let event = decoder.next() {
            if case .item(.element) = event.kind { return try edit.applied(to: decoder) }
            if case .fault(let fault) = event.kind { Issue.record("not well formed: \(fault)") }
        }
        Issue.record("no features")
        return nil
    }

    private static let sasl2 =
        "<s:features>\n <a:authentication xmlns:a='urn:xmpp:sasl:2'><a:mechanism>SCRAM-SHA-1-PLUS</a:mechanism>"
        + "<a:mechanism >SCRAM-SHA-1</a:mechanism><a:inline><bind xmlns='urn:xmpp:bind:0'/>"
        + "<fast xmlns='urn:xmpp:fast:0'><mechanism>HT-SHA-256-ENDP</mechanism><mechanism>HT-SHA-256-NONE</mechanism></fast>"
        + "</a:inline></a:authentication>\n <odd xmlns='urn:odd' x=\"1\"/></s:features>"

    @Test func `only the STARTTLS offer is removed, required or not`() throws {
        var edit = FeaturesEdit()
        edit.takesOut = { $0.namespace == .tls && $0.place == .stream }
        let rest = "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>PLAIN</mechanism></mechanisms>"
        for offer in [
            "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>",
            "<t:starttls xmlns:t=\"urn:ietf:params:xml:ns:xmpp-tls\"> <t:required /></t:starttls >",
        ] {
            #expect(
                try edited("<s:features >\(offer)\t\(rest)</s:features>", edit) == "<s:features >\t\(rest)</s:features>"
            )
        }
        #expect(try edited("<s:features>\(rest)</s:features>", edit) == nil)
        // The same element in another namespace is a different feature.
        #expect(try edited("<s:features><starttls xmlns='urn:odd'/></s:features>", edit) == nil)
    }

    @Test func `mechanisms are removed by name, and an empty list is removed as a whole`() throws {
        var edit = FeaturesEdit()
        edit.mechanisms = .only { !$0.hasSuffix("-PLUS") }
        let open = "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>"
        let offer = "<s:features>\(open)<mechanism>SCRAM-SHA-1-PLUS</mechanism> <mechanism>&#80;LAIN</mechanism>"
        #expect(
            try edited(offer + "</mechanisms></s:features>", edit)
                == "<s:features>\(open) <mechanism>&#80;LAIN</mechanism></mechanisms></s:features>"
        )
        let bound =
            "<s:features>\(open)<mechanism>A-<![CDATA[PLUS]]></mechanism></mechanisms><odd xmlns='o'/></s:features>"
        #expect(try edited(bound, edit) == "<s:features><odd xmlns='o'/></s:features>")
        let words = try outcome(bound, edit)?.summary
        #expect(words == "mechanisms A-PLUS removed")
    }

    @Test func `a replaced list keeps its prefix and the position of its first name`() throws {
        var edit = FeaturesEdit()
        edit.mechanisms = .replace(["PLAIN", "A&B"])
        let odd = "<h xmlns='urn:xmpp:domain-based-name:1'>x</h>"
        let open = "<m:mechanisms xmlns:m='urn:ietf:params:xml:ns:xmpp-sasl'>"
        #expect(
            try edited("<s:features>\(open)\(odd)<m:mechanism>X</m:mechanism>\(odd)</m:mechanisms></s:features>", edit)
                == "<s:features>\(open)\(odd)<m:mechanism>PLAIN</m:mechanism><m:mechanism>A&amp;B</m:mechanism>\(odd)"
                + "</m:mechanisms></s:features>"
        )
        #expect(
            try edited("<s:features><m:mechanisms xmlns:m='urn:ietf:params:xml:ns:xmpp-sasl'/></s:features>", edit)
                == "<s:features>\(open)<m:mechanism>PLAIN</m:mechanism><m:mechanism>A&amp;B</m:mechanism></m:mechanisms>"
                + "</s:features>"
        )
        // A missing list is not created, because these features follow the login.
        #expect(try edited("<s:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></s:features>", edit) == nil)
        edit.mechanisms = .replace(["X"])
        #expect(try edited("<s:features>\(open)<m:mechanism>X</m:mechanism></m:mechanisms></s:features>", edit) == nil)
        edit.mechanisms = .replace([])
        #expect(
            try edited("<s:features>\(open)<m:mechanism>X</m:mechanism></m:mechanisms></s:features>", edit)
                == "<s:features></s:features>"
        )
    }

    @Test func `mechanisms and FAST tokens are removed inside the SASL2 feature`() throws {
        var edit = FeaturesEdit()
        edit.sasl2Mechanisms = .only { !$0.hasSuffix("-PLUS") }
        edit.tokenMechanisms = .only { $0.hasSuffix("-NONE") }
        #expect(
            try edited(Self.sasl2, edit)
                == Self.sasl2.replacing("<a:mechanism>SCRAM-SHA-1-PLUS</a:mechanism>", with: "")
                .replacing("<mechanism>HT-SHA-256-ENDP</mechanism>", with: "")
        )
        edit = FeaturesEdit()
        edit.takesOut = { $0.place == .inline && $0.namespace == .fast }
        let fast = try #require(Self.sasl2.firstRange(of: /<fast.*<\/fast>/))
        #expect(try edited(Self.sasl2, edit) == String(Self.sasl2[..<fast.lowerBound] + Self.sasl2[fast.upperBound...]))
        // If no mechanism remains, the SASL2 element is removed.
        edit.sasl2Mechanisms = .only { _ in false }
        #expect(try edited(Self.sasl2, edit) == "<s:features>\n \n <odd xmlns='urn:odd' x=\"1\"/></s:features>")
    }

    @Test func `channel binding types are removed, replaced or added`() throws {
        let list =
            "<sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'><channel-binding type='tls-exporter'/>"
            + "<channel-binding type=\"tls-server-end-point\"/></sasl-channel-binding>"
        let mechanisms =
            "<mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>SCRAM-SHA-1</mechanism></mechanisms>"
        var edit = FeaturesEdit()
        edit.bindings = .replace(["tls-server-end-point"])
        let own =
            "<sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'><channel-binding type='tls-server-end-point'/>"
            + "</sasl-channel-binding>"
        #expect(
            try edited("<s:features>\(list)\(mechanisms)</s:features>", edit)
                == "<s:features>\(own)\(mechanisms)</s:features>"
        )
        #expect(
            try edited("<s:features>\(mechanisms)</s:features>", edit) == "<s:features>\(mechanisms)\(own)</s:features>"
        )
        #expect(try edited("<s:features/>", edit) == nil)
        edit.bindings = .only { $0 != "tls-exporter" }
        #expect(
            try edited("<s:features>\(list)</s:features>", edit)
                == "<s:features>\(list.replacing("<channel-binding type='tls-exporter'/>", with: ""))</s:features>"
        )
    }

    @Test func `editing an element other than features is an error`() {
        #expect(throws: FeaturesEdit.NoFeatures()) { try outcome("<message/>", .withoutBinding) }
        #expect(FeaturesEdit().isEmpty && !FeaturesEdit.withoutBinding.isEmpty)
    }

    @Test(arguments: [1, 7, Int.max]) func `edited features are forwarded, and both are recorded`(piece: Int) throws {
        var options = SessionOptions(level: .trace)
        options.stripsBinding = true
        var harness = SessionHarness(options: options)
        let features =
            "<s:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>SCRAM-SHA-1-PLUS</mechanism>"
            + "<mechanism>SCRAM-SHA-1</mechanism></mechanisms><sasl-channel-binding xmlns='urn:xmpp:sasl-cb:0'>"
            + "<channel-binding type='tls-exporter'/></sasl-channel-binding></s:features>"
        harness.say(
            [
                (
                    .send,
                    "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='a' version='1.0'>"
                ),
                (.recv, Self.header), (.recv, features),
            ],
            piece: piece
        )
        let passed =
            "<s:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'><mechanism>SCRAM-SHA-1</mechanism>"
            + "</mechanisms></s:features>"
        #expect(harness.text(.recv) == Self.header + passed)
        let told = try #require(harness.told.first { $0.record.action == "edited" })
        #expect(told.xml == features)
        #expect(told.text(told.record.edited) == passed)
        #expect(
            told.record.messageText?.contains(
                "relayed with sasl-channel-binding removed; mechanisms SCRAM-SHA-1-PLUS removed"
            ) == true
        )
        // The record stays the same when it is written and read.
        var line = LineBuffer()
        var form = JSONForm()
        form.append(told.record, content: told.content.span, .content, to: &line)
        let json = String(decoding: line.bytes, as: UTF8.self)
        #expect(json.contains("\"action\":\"edited\"") && json.contains("\"edited\":\"<s:features>"))
        let back = try RecordLine(json: Array(json.utf8).span.bytes)
        #expect(back.record.edited.map { String(decoding: back.content[$0.range], as: UTF8.self) } == passed)
        // The text log contains both the received and the sent features.
        var text = LineBuffer()
        var lines = TextForm()
        lines.append(told.record, content: told.content.span, .xml, to: &text)
        let shown = String(decoding: text.bytes, as: UTF8.self)
        #expect(shown.contains("RECV edited: \(features)\n") && shown.contains("RECV tap: \(passed)\n"))
    }

    @Test func `without an edit features are forwarded unchanged`() {
        var harness = SessionHarness()
        harness.say(Conversations.plainLogin)
        #expect(harness.text(.recv) == Conversations.text(Conversations.plainLogin, .recv))
        #expect(harness.told.allSatisfy { $0.record.action == nil })
    }
}
