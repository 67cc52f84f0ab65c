import TapDiagnosis
import TapRecord
import TapTestKit
import Testing
import XMPPCore

@testable import TapCore

/// Tests of the facts of a recorded session, without a session.
@Suite struct RecordingTests {
    /// Returns the last record of a session that ended for this reason.
    private static func end(_ scene: inout LoginScene, _ reason: CloseReason, _ leg: Leg) -> Record {
        var record = scene.base.context.makeRecord(.session, .info, part: .session)
        record.leg = leg
        record.details = [Record.Detail.closeReason: .string(reason.rawValue), "sent_bytes": 7]
        return record
    }

    @Test func `A recorded end that no item shows is taken from its record`() {
        var scene = LoginScene()
        let recording = Recording()
        let record = Self.end(&scene, .stopped, .client)
        #expect(recording.applyEnd(record, &scene.base.context) == nil)
        #expect(scene.base.context.info.ending == .stopped)
        recording.applyEnd(record, shown: nil, &scene.base.context)
        #expect(recording.ending != nil && !recording.isPartial)
        #expect(scene.base.context.info.sent.bytes == 7)
    }

    @Test func `A recorded end of a connection is returned to the session, which handles it`() {
        var scene = LoginScene()
        let recording = Recording()
        let end = recording.applyEnd(Self.end(&scene, .reset, .server), &scene.base.context)
        #expect(end?.direction == .recv && end?.end == .reset)
        #expect(scene.base.context.info.ending == nil)
    }

    @Test func `A recording with items sent by xmpptap is partial`() {
        var scene = LoginScene()
        let recording = Recording()
        var record = scene.base.context.makeRecord(.element, .info, part: .sasl)
        recording.observe(record)
        #expect(!recording.isPartial)
        record.origin = .tap
        recording.observe(record)
        #expect(recording.isPartial)
    }
}
