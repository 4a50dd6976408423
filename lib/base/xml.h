/* A reader of the little of XML that program files use: elements and attributes. No document types, no entities but the five
 * that XML has by itself, no text between elements; nothing is expanded, so a file costs what its size says. */
#ifndef RONDO_LIB_BASE_XML_H
#define RONDO_LIB_BASE_XML_H

#include "rondo.h"

#define RONDO_XML_ATTRIBUTES 32
#define RONDO_XML_DEPTH      8

struct rondo_xml_attribute {
    const char *name, *value; /* in the text, not terminated */
    size_t name_length, value_length;
};

struct rondo_xml_element {
    const char *name;
    size_t name_length;
    int line, depth; /* depth 0: the outermost */
    struct rondo_xml_attribute attributes[RONDO_XML_ATTRIBUTES];
    int attribute_count;
};

/* Calls open for every element in the order of the text; anything but RONDO_SUCCESS ends it. RONDO_ERR_ARGUMENT with line and
 * reason for what is not well-formed. */
rondo_result_t rondo_xml_read(const char *text, size_t bytes,
                              rondo_result_t (*open)(void *argument, const struct rondo_xml_element *element), void *argument);

int rondo_xml_is(const struct rondo_xml_element *element, const char *name);
/* NULL: it has none of that name. */
const struct rondo_xml_attribute *rondo_xml_attribute(const struct rondo_xml_element *element, const char *name);

#endif
