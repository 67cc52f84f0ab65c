// Embedded by the preprocessor: as literals of Swift, these files take the compiler minutes.
#include "CAssets.h"

#include <string.h>

static const unsigned char openapi[] = {
#embed "../TapControl/openapi.json"
};
static const unsigned char manual_captures[] = {
#embed "../xmpptap/Manual/captures.md"
};
static const unsigned char manual_changelog[] = {
#embed "../xmpptap/Manual/changelog.md"
};
static const unsigned char manual_changes[] = {
#embed "../xmpptap/Manual/changes.md"
};
static const unsigned char manual_clients[] = {
#embed "../xmpptap/Manual/clients.md"
};
static const unsigned char manual_compare[] = {
#embed "../xmpptap/Manual/compare.md"
};
static const unsigned char manual_concepts[] = {
#embed "../xmpptap/Manual/concepts.md"
};
static const unsigned char manual_control[] = {
#embed "../xmpptap/Manual/control.md"
};
static const unsigned char manual_conversation[] = {
#embed "../xmpptap/Manual/conversation.md"
};
static const unsigned char manual_faq[] = {
#embed "../xmpptap/Manual/faq.md"
};
static const unsigned char manual_files[] = {
#embed "../xmpptap/Manual/files.md"
};
static const unsigned char manual_injection[] = {
#embed "../xmpptap/Manual/injection.md"
};
static const unsigned char manual_install[] = {
#embed "../xmpptap/Manual/install.md"
};
static const unsigned char manual_limits[] = {
#embed "../xmpptap/Manual/limits.md"
};
static const unsigned char manual_logins[] = {
#embed "../xmpptap/Manual/logins.md"
};
static const unsigned char manual_logs[] = {
#embed "../xmpptap/Manual/logs.md"
};
static const unsigned char manual_packets[] = {
#embed "../xmpptap/Manual/packets.md"
};
static const unsigned char manual_performance[] = {
#embed "../xmpptap/Manual/performance.md"
};
static const unsigned char manual_regression[] = {
#embed "../xmpptap/Manual/regression.md"
};
static const unsigned char manual_secrets[] = {
#embed "../xmpptap/Manual/secrets.md"
};
static const unsigned char manual_start[] = {
#embed "../xmpptap/Manual/start.md"
};
static const unsigned char manual_tls[] = {
#embed "../xmpptap/Manual/tls.md"
};
static const unsigned char manual_trust[] = {
#embed "../xmpptap/Manual/trust.md"
};
static const unsigned char manual_upstream[] = {
#embed "../xmpptap/Manual/upstream.md"
};

static const struct {
    const char *name;
    CAsset asset;
} assets[] = {
    {"openapi.json", {openapi, sizeof openapi}},
    {"captures.md", {manual_captures, sizeof manual_captures}},
    {"changelog.md", {manual_changelog, sizeof manual_changelog}},
    {"changes.md", {manual_changes, sizeof manual_changes}},
    {"clients.md", {manual_clients, sizeof manual_clients}},
    {"compare.md", {manual_compare, sizeof manual_compare}},
    {"concepts.md", {manual_concepts, sizeof manual_concepts}},
    {"control.md", {manual_control, sizeof manual_control}},
    {"conversation.md", {manual_conversation, sizeof manual_conversation}},
    {"faq.md", {manual_faq, sizeof manual_faq}},
    {"files.md", {manual_files, sizeof manual_files}},
    {"injection.md", {manual_injection, sizeof manual_injection}},
    {"install.md", {manual_install, sizeof manual_install}},
    {"limits.md", {manual_limits, sizeof manual_limits}},
    {"logins.md", {manual_logins, sizeof manual_logins}},
    {"logs.md", {manual_logs, sizeof manual_logs}},
    {"packets.md", {manual_packets, sizeof manual_packets}},
    {"performance.md", {manual_performance, sizeof manual_performance}},
    {"regression.md", {manual_regression, sizeof manual_regression}},
    {"secrets.md", {manual_secrets, sizeof manual_secrets}},
    {"start.md", {manual_start, sizeof manual_start}},
    {"tls.md", {manual_tls, sizeof manual_tls}},
    {"trust.md", {manual_trust, sizeof manual_trust}},
    {"upstream.md", {manual_upstream, sizeof manual_upstream}},
};

CAsset casset_named(const char *name) {
    for (size_t index = 0; index < sizeof assets / sizeof *assets; index++) {
        if (strcmp(assets[index].name, name) == 0) return assets[index].asset;
    }
    return (CAsset){(const unsigned char *)"", 0};
}
