// swift-tools-version:6.3
import PackageDescription

let package = Package(
    name: "Fuzzing",
    dependencies: [.package(name: "xmpptap", path: "../..")],
    targets: [
        .systemLibrary(name: "CLibXML2ForFuzzing", path: "Sources/CLibXML2", pkgConfig: "libxml-2.0"),
        // libxml2 in its usual form, for whole documents.
        .target(name: "ReferenceParser", dependencies: ["CLibXML2ForFuzzing"]),
        // Reproducible connections between an OpenSSL client and an OpenSSL server.
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
                // libFuzzer provides main. The other flag makes `package` declarations visible: SwiftPM passes the name
                // of this package last, so -package-name has no effect.
                .unsafeFlags(["-parse-as-library", "-Xfrontend", "-disable-access-control"]),
                // Warnings are not errors: the shared test files import modules for package declarations, which are not
                // visible in this package.
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)
