import Testing
import XMPPCore

@Suite struct AttributeValueTests {
    @Test(arguments: [
        ("", "", ""), ("plain", "plain", "plain"), ("&lt;&gt;&amp;&apos;&quot;", "<>&'\"", "<>&'\""),
        ("&#65;&#x42;&#x1F600;&#x00e9;", "AB😀é", "AB😀é"), ("a\tb\nc\rd\r\ne", "a b c d e", "a\tb\nc\nd\ne"),
        ("\r\r\n\n\r", "    ", "\n\n\n\n"), ("&#9;&#10;&#13;", "\t\n\r", "\t\n\r"), ("żółw 例", "żółw 例", "żółw 例"),
        // Invalid references, which the scanner refuses, are copied unchanged.
        ("&", "&", "&"), ("&x;", "&x;", "&x;"), ("&#xD800;", "&#xD800;", "&#xD800;"), ("&#;&;", "&#;&;", "&#;&;"),
        ("&amp", "&amp", "&amp"),
    ])
    func `entities and line ends are decoded as XML requires`(_ raw: String, _ value: String, _ text: String) {
        var output: [UInt8] = []
        AttributeValue.decode(Array(raw.utf8).span, into: &output)
        #expect(String(decoding: output, as: UTF8.self) == value)
        output.removeAll()
        AttributeValue.decodeText(Array(raw.utf8).span, into: &output)
        #expect(String(decoding: output, as: UTF8.self) == text)
    }
}
