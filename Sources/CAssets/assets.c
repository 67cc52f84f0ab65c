// Embedded by the preprocessor: as literals of Swift, these files take the compiler minutes.
#include "CAssets.h"

#include <string.h>

static const unsigned char openapi[] = {
#embed "../TapControl/openapi.json"
, 0};
static const unsigned char manual_audit[] = {
#embed "../xmpptap/Manual/audit.md"
, 0};
static const unsigned char manual_captures[] = {
#embed "../xmpptap/Manual/captures.md"
, 0};
static const unsigned char manual_changelog[] = {
#embed "../xmpptap/Manual/changelog.md"
, 0};
static const unsigned char manual_changes[] = {
#embed "../xmpptap/Manual/changes.md"
, 0};
static const unsigned char manual_clients[] = {
#embed "../xmpptap/Manual/clients.md"
, 0};
static const unsigned char manual_compare[] = {
#embed "../xmpptap/Manual/compare.md"
, 0};
static const unsigned char manual_concepts[] = {
#embed "../xmpptap/Manual/concepts.md"
, 0};
static const unsigned char manual_control[] = {
#embed "../xmpptap/Manual/control.md"
, 0};
static const unsigned char manual_conversation[] = {
#embed "../xmpptap/Manual/conversation.md"
, 0};
static const unsigned char manual_faq[] = {
#embed "../xmpptap/Manual/faq.md"
, 0};
static const unsigned char manual_federation[] = {
#embed "../xmpptap/Manual/federation.md"
, 0};
static const unsigned char manual_fleet[] = {
#embed "../xmpptap/Manual/fleet.md"
, 0};
static const unsigned char manual_files[] = {
#embed "../xmpptap/Manual/files.md"
, 0};
static const unsigned char manual_injection[] = {
#embed "../xmpptap/Manual/injection.md"
, 0};
static const unsigned char manual_install[] = {
#embed "../xmpptap/Manual/install.md"
, 0};
static const unsigned char manual_limits[] = {
#embed "../xmpptap/Manual/limits.md"
, 0};
static const unsigned char manual_logins[] = {
#embed "../xmpptap/Manual/logins.md"
, 0};
static const unsigned char manual_logs[] = {
#embed "../xmpptap/Manual/logs.md"
, 0};
static const unsigned char manual_packets[] = {
#embed "../xmpptap/Manual/packets.md"
, 0};
static const unsigned char manual_performance[] = {
#embed "../xmpptap/Manual/performance.md"
, 0};
static const unsigned char manual_phone[] = {
#embed "../xmpptap/Manual/phone.md"
, 0};
static const unsigned char manual_regression[] = {
#embed "../xmpptap/Manual/regression.md"
, 0};
static const unsigned char manual_secrets[] = {
#embed "../xmpptap/Manual/secrets.md"
, 0};
static const unsigned char manual_start[] = {
#embed "../xmpptap/Manual/start.md"
, 0};
static const unsigned char manual_tls[] = {
#embed "../xmpptap/Manual/tls.md"
, 0};
static const unsigned char manual_transparent[] = {
#embed "../xmpptap/Manual/transparent.md"
, 0};
static const unsigned char manual_trust[] = {
#embed "../xmpptap/Manual/trust.md"
, 0};
static const unsigned char manual_upstream[] = {
#embed "../xmpptap/Manual/upstream.md"
, 0};
static const unsigned char manual_browser[] = {
#embed "../xmpptap/Manual/browser.md"
, 0};
static const unsigned char manual_websocket[] = {
#embed "../xmpptap/Manual/websocket.md"
, 0};
static const unsigned char web_index_html[] = {
#embed "../TapControl/Web/index.html"
, 0};
static const unsigned char web_style_css[] = {
#embed "../TapControl/Web/style.css"
, 0};
static const unsigned char web_dom_js[] = {
#embed "../TapControl/Web/dom.js"
, 0};
static const unsigned char web_format_js[] = {
#embed "../TapControl/Web/format.js"
, 0};
static const unsigned char web_namespaces_js[] = {
#embed "../TapControl/Web/namespaces.js"
, 0};
static const unsigned char web_xml_js[] = {
#embed "../TapControl/Web/xml.js"
, 0};
static const unsigned char web_pattern_js[] = {
#embed "../TapControl/Web/pattern.js"
, 0};
static const unsigned char web_filteritem_js[] = {
#embed "../TapControl/Web/filteritem.js"
, 0};
static const unsigned char web_filtervalue_js[] = {
#embed "../TapControl/Web/filtervalue.js"
, 0};
static const unsigned char web_filtercondition_js[] = {
#embed "../TapControl/Web/filtercondition.js"
, 0};
static const unsigned char web_pagefilter_js[] = {
#embed "../TapControl/Web/pagefilter.js"
, 0};
static const unsigned char web_source_js[] = {
#embed "../TapControl/Web/source.js"
, 0};
static const unsigned char web_virtual_js[] = {
#embed "../TapControl/Web/virtual.js"
, 0};
static const unsigned char web_words_js[] = {
#embed "../TapControl/Web/words.js"
, 0};
static const unsigned char web_filesource_js[] = {
#embed "../TapControl/Web/filesource.js"
, 0};
static const unsigned char web_filter_js[] = {
#embed "../TapControl/Web/filter.js"
, 0};
static const unsigned char web_detail_js[] = {
#embed "../TapControl/Web/detail.js"
, 0};
static const unsigned char web_report_js[] = {
#embed "../TapControl/Web/report.js"
, 0};
static const unsigned char web_rows_js[] = {
#embed "../TapControl/Web/rows.js"
, 0};
static const unsigned char web_cursor_js[] = {
#embed "../TapControl/Web/cursor.js"
, 0};
static const unsigned char web_records_js[] = {
#embed "../TapControl/Web/records.js"
, 0};
static const unsigned char web_sessions_js[] = {
#embed "../TapControl/Web/sessions.js"
, 0};
static const unsigned char web_diagram_js[] = {
#embed "../TapControl/Web/diagram.js"
, 0};
static const unsigned char web_avatars_js[] = {
#embed "../TapControl/Web/avatars.js"
, 0};
static const unsigned char web_chat_js[] = {
#embed "../TapControl/Web/chat.js"
, 0};
static const unsigned char web_conversations_js[] = {
#embed "../TapControl/Web/conversations.js"
, 0};
static const unsigned char web_findings_js[] = {
#embed "../TapControl/Web/findings.js"
, 0};
static const unsigned char web_act_js[] = {
#embed "../TapControl/Web/act.js"
, 0};
static const unsigned char web_hold_js[] = {
#embed "../TapControl/Web/hold.js"
, 0};
static const unsigned char web_inject_js[] = {
#embed "../TapControl/Web/inject.js"
, 0};
static const unsigned char web_maketest_js[] = {
#embed "../TapControl/Web/maketest.js"
, 0};
static const unsigned char web_ping_js[] = {
#embed "../TapControl/Web/ping.js"
, 0};
static const unsigned char web_rules_js[] = {
#embed "../TapControl/Web/rules.js"
, 0};
static const unsigned char web_tray_js[] = {
#embed "../TapControl/Web/tray.js"
, 0};
static const unsigned char web_measures_js[] = {
#embed "../TapControl/Web/measures.js"
, 0};
static const unsigned char web_keys_js[] = {
#embed "../TapControl/Web/keys.js"
, 0};
static const unsigned char web_main_js[] = {
#embed "../TapControl/Web/main.js"
, 0};

static const struct {
    const char *name;
    const unsigned char *text;
} assets[] = {
    {"openapi.json", openapi},
    {"audit.md", manual_audit},
    {"captures.md", manual_captures},
    {"changelog.md", manual_changelog},
    {"changes.md", manual_changes},
    {"clients.md", manual_clients},
    {"compare.md", manual_compare},
    {"concepts.md", manual_concepts},
    {"control.md", manual_control},
    {"conversation.md", manual_conversation},
    {"faq.md", manual_faq},
    {"federation.md", manual_federation},
    {"fleet.md", manual_fleet},
    {"files.md", manual_files},
    {"injection.md", manual_injection},
    {"install.md", manual_install},
    {"limits.md", manual_limits},
    {"logins.md", manual_logins},
    {"logs.md", manual_logs},
    {"packets.md", manual_packets},
    {"performance.md", manual_performance},
    {"phone.md", manual_phone},
    {"regression.md", manual_regression},
    {"secrets.md", manual_secrets},
    {"start.md", manual_start},
    {"tls.md", manual_tls},
    {"transparent.md", manual_transparent},
    {"trust.md", manual_trust},
    {"upstream.md", manual_upstream},
    {"browser.md", manual_browser},
    {"websocket.md", manual_websocket},
    {"web/index.html", web_index_html},
    {"web/style.css", web_style_css},
    {"web/dom.js", web_dom_js},
    {"web/format.js", web_format_js},
    {"web/namespaces.js", web_namespaces_js},
    {"web/xml.js", web_xml_js},
    {"web/pattern.js", web_pattern_js},
    {"web/filteritem.js", web_filteritem_js},
    {"web/filtervalue.js", web_filtervalue_js},
    {"web/filtercondition.js", web_filtercondition_js},
    {"web/pagefilter.js", web_pagefilter_js},
    {"web/source.js", web_source_js},
    {"web/virtual.js", web_virtual_js},
    {"web/words.js", web_words_js},
    {"web/filesource.js", web_filesource_js},
    {"web/filter.js", web_filter_js},
    {"web/detail.js", web_detail_js},
    {"web/report.js", web_report_js},
    {"web/rows.js", web_rows_js},
    {"web/cursor.js", web_cursor_js},
    {"web/records.js", web_records_js},
    {"web/sessions.js", web_sessions_js},
    {"web/diagram.js", web_diagram_js},
    {"web/avatars.js", web_avatars_js},
    {"web/chat.js", web_chat_js},
    {"web/conversations.js", web_conversations_js},
    {"web/findings.js", web_findings_js},
    {"web/act.js", web_act_js},
    {"web/hold.js", web_hold_js},
    {"web/inject.js", web_inject_js},
    {"web/maketest.js", web_maketest_js},
    {"web/ping.js", web_ping_js},
    {"web/rules.js", web_rules_js},
    {"web/tray.js", web_tray_js},
    {"web/measures.js", web_measures_js},
    {"web/keys.js", web_keys_js},
    {"web/main.js", web_main_js},
};

const char *casset_text(const char *name) {
    for (size_t index = 0; index < sizeof assets / sizeof *assets; index++) {
        if (strcmp(assets[index].name, name) == 0) return (const char *)assets[index].text;
    }
    return "";
}
