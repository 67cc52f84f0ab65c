#include "PlainXML.h"

#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <string.h>

struct counter {
    long depth, items;
};

static void start(void *data, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri, int namespaces,
                  const xmlChar **declared, int attributes, int defaulted, const xmlChar **values)
{
    (void)name, (void)prefix, (void)uri, (void)namespaces, (void)declared, (void)attributes, (void)defaulted, (void)values;
    ((struct counter *)data)->depth++;
}

static void end(void *data, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
    struct counter *counter = data;
    (void)name, (void)prefix, (void)uri;
    if (--counter->depth == 1) counter->items++;
}

static void characters(void *data, const xmlChar *text, int count)
{
    (void)data, (void)text, (void)count;
}

long plain_xml_parse(const char *bytes, size_t count, size_t chunk)
{
    xmlSAXHandler handler;
    struct counter counter = {0, 0};
    int code = 0;
    memset(&handler, 0, sizeof handler);
    handler.initialized = XML_SAX2_MAGIC;
    handler.startElementNs = start;
    handler.endElementNs = end;
    handler.characters = characters;
    xmlParserCtxtPtr context = xmlCreatePushParserCtxt(&handler, &counter, NULL, 0, NULL);
    if (!context) return -1;
    xmlCtxtUseOptions(context, XML_PARSE_NOENT | XML_PARSE_NONET);
    for (size_t at = 0; at < count && !code; at += chunk)
        code = xmlParseChunk(context, bytes + at, (int)(count - at < chunk ? count - at : chunk), 0);
    if (context->myDoc) xmlFreeDoc(context->myDoc);
    xmlFreeParserCtxt(context);
    return code ? -1 : counter.items;
}
