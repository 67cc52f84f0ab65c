import TapTestKit
import Testing
import XMPPCore

@Suite struct XMLDeclarationTests {
    @Test(arguments: [
        "<?xml version='1.0'?>", "<?xml version=\"1.0\"?>", "<?xml version='1.0' ?>", "<?xml\tversion = '1.0'\r\n?>",
        "<?xml version='1.0' encoding='UTF-8'?>", "<?xml version='1.0' encoding=\"utf-8\"?>",
        "<?xml version='1.0' encoding='Utf-8' standalone='yes'?>", "<?xml version='1.0' standalone='no'?>",
    ])
    func `an XML declaration for UTF-8 is accepted`(_ declaration: String) {
        let bytes = Array(declaration.utf8)
        let lines = DecoderTranscript(bytes).lines
        #expect(lines.count == 1 && lines[0].hasPrefix("1/0+\(bytes.count) declaration"), "\(lines)")
        #expect(DecoderVerifier.checkEachBoundary(bytes) == nil)
    }

    @Test(arguments: [
        ("<?xml?>", ScanFault.Code.processingInstruction), ("<?xml ?>", .malformedDeclaration),
        ("<?xml version=1.0?>", .malformedDeclaration), ("<?xml version='1.0'>", .malformedDeclaration),
        ("<?xml version='1.0' version='1.0'?>", .malformedDeclaration), ("<?xml version'1.0'?>", .malformedDeclaration),
        ("<?xml version='1.0'encoding='UTF-8'?>", .malformedDeclaration),
        ("<?xml version='1.0' standalone='yes' encoding='UTF-8'?>", .malformedDeclaration),
        ("<?xml version='1.0' standalone='maybe'?>", .malformedDeclaration),
        ("<?xml version='1.0' x='y'?>", .malformedDeclaration), ("<?xml version='1.0' \u{e9}?>", .malformedDeclaration),
        ("<?xml version='1.0' <?>", .malformedDeclaration), ("<?xml version='2.0'?>", .unsupportedXMLVersion),
        ("<?xml version='1.0' encoding='UTF-16'?>", .unsupportedEncoding),
        ("<?xml version='1.0' encoding='utf8'?>", .unsupportedEncoding),
        ("<?xml version='1.0' encoding=''?>", .unsupportedEncoding), ("<?XML version='1.0'?>", .processingInstruction),
        ("<?xmlversion='1.0'?>", .processingInstruction),
        ("<?xml " + String(repeating: " ", count: 300) + "version='1.0'?>", .malformedDeclaration),
    ])
    func `other XML declarations are refused`(_ declaration: String, _ code: ScanFault.Code) {
        let bytes = Array(declaration.utf8)
        let lines = DecoderTranscript(bytes).lines
        #expect(lines.last?.contains("fault \(code.rawValue) at") == true, "\(lines)")
        #expect(DecoderVerifier.checkEachBoundary(bytes) == nil)
    }
}
