// swift-tools-version:6.3
import PackageDescription

// The settings of the package in the repository's root.
let warnings: [SwiftSetting] =
    Context.environment["XMPPTAP_WARNINGS_AS_ERRORS"] == "1" ? [.treatAllWarnings(as: .error)] : []

let settings: [SwiftSetting] = [.enableUpcomingFeature("MemberImportVisibility")] + warnings

/// Programs that use the libraries as any other package does. Together they use every `public` declaration, and no
/// others.
let package = Package(
    name: "Embedding",
    dependencies: [.package(name: "xmpptap", path: "../..")],
    targets: [
        .executableTarget(
            name: "DecodeStream",
            dependencies: [.product(name: "XMPPCore", package: "xmpptap")],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "TapSession",
            dependencies: [.product(name: "TapCore", package: "xmpptap")],
            swiftSettings: settings
        ),
        .executableTarget(
            name: "ReadCapture",
            dependencies: [
                .product(name: "TapCapture", package: "xmpptap"), .product(name: "TapCore", package: "xmpptap"),
            ],
            swiftSettings: settings
        ),
    ],
    swiftLanguageModes: [.v6]
)
