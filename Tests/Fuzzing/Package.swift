// swift-tools-version:6.3
import PackageDescription

let package = Package(
    name: "Fuzzing",
    dependencies: [.package(name: "xmpptap", path: "../..")],
    targets: [
        .systemLibrary(name: "CLibXML2ForFuzzing", path: "Sources/CLibXML2", pkgConfig: "libxml-2.0"),
        // libxml2 as anybody would use it, on whole documents.
        .target(name: "ReferenceParser", dependencies: ["CLibXML2ForFuzzing"]),
        // Connections between OpenSSL's two ends, the same each time.
        .target(name: "RecordedTLS"),
        .executableTarget(
            name: "Fuzzer",
            dependencies: [
                .product(name: "XMPPCore", package: "xmpptap"), .product(name: "TapCore", package: "xmpptap"),
                .product(name: "TapCapture", package: "xmpptap"), "ReferenceParser", "RecordedTLS",
            ],
            swiftSettings: [
                .enableUpcomingFeature("ExistentialAny"),
                .enableUpcomingFeature("MemberImportVisibility"),
                .enableUpcomingFeature("InternalImportsByDefault"),
                .enableExperimentalFeature("Lifetimes"),
                // libFuzzer brings main. The other flag makes `package` declarations visible: SwiftPM passes the name of
                // this package last, so -package-name has no effect.
                .unsafeFlags(["-parse-as-library", "-Xfrontend", "-disable-access-control"]),
                // No warning is an error: the tests' files that it shares import modules for package declarations, of which
                // this package sees none.
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)
