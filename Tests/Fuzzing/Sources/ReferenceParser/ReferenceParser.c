#include "ReferenceParser.h"

#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <libxml/xmlerror.h>
#include <string.h>

struct state {
    xmlParserCtxtPtr context;
    long depth;
    struct reference_verdict verdict;
};

static void start(void *data, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri, int namespaces,
                  const xmlChar **declared, int attributes, int defaulted, const xmlChar **values)
{
    struct state *state = data;
    (void)name, (void)prefix, (void)uri, (void)namespaces, (void)declared, (void)attributes, (void)defaulted, (void)values;
    state->depth++;
    state->verdict.elements++;
}

static void end(void *data, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
    struct state *state = data;
    (void)name, (void)prefix, (void)uri;
    if (--state->depth != 1) return;
    if (state->verdict.items < 64) state->verdict.ends[state->verdict.items] = xmlByteConsumed(state->context);
    state->verdict.items++;
}

static void refuse(void *data, xmlErrorPtr error)
{
    struct state *state = data;
    if (error->level >= XML_ERR_ERROR && error->code != XML_WAR_NS_URI && !state->verdict.code)
        state->verdict.code = error->code;
}

struct reference_verdict reference_parse(const uint8_t *bytes, size_t count)
{
    xmlSAXHandler handler;
    struct state state;
    memset(&handler, 0, sizeof handler);
    memset(&state, 0, sizeof state);
    handler.initialized = XML_SAX2_MAGIC;
    handler.startElementNs = start;
    handler.endElementNs = end;
    handler.serror = refuse;
    state.context = xmlCreatePushParserCtxt(&handler, &state, NULL, 0, NULL);
    if (!state.context) {
        state.verdict.code = -1;
        return state.verdict;
    }
    xmlCtxtUseOptions(state.context, XML_PARSE_NOENT | XML_PARSE_NONET);
    int code = xmlParseChunk(state.context, (const char *)bytes, (int)count, 1);
    if (code && code != XML_WAR_NS_URI && !state.verdict.code) state.verdict.code = code;
    if (state.context->myDoc) xmlFreeDoc(state.context->myDoc);
    xmlFreeParserCtxt(state.context);
    return state.verdict;
}
