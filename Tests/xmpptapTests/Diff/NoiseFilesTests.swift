import Testing

@testable import xmpptap

@Suite struct NoiseFilesTests {
    @Test(arguments: [
        ("login.xtap", "login.noise"), ("a/b.c/login", "a/b.c/login.noise"), ("a/login.tar.xtap", "a/login.tar.noise"),
        (".xtap", ".xtap.noise"), ("x/.xtap", "x/.xtap.noise"),
    ])
    func `a noise file is beside its recording`(recording: String, noise: String) {
        #expect(NoiseFiles.path(beside: recording) == noise)
    }
}
