/* A reader of the part of XML that program files use: elements and attributes, comments and processing instructions. Refuses
 * document types, entities and text between elements. The text is untrusted; nothing is expanded or copied, so reading costs
 * time linear in its size and no memory. Relies on lib/base/error.h alone. */
#ifndef RONDO_LIB_BASE_XML_H
#define RONDO_LIB_BASE_XML_H

#include "rondo.h"

#define RONDO_XML_ATTRIBUTES 32
#define RONDO_XML_DEPTH      8

struct rondo_xml_attribute {
    const char *name, *value; /* parts of the text, not terminated */
    size_t name_length, value_length;
};

struct rondo_xml_element {
    const char *name;
    size_t name_length;
    int line, depth; /* depth 0: the outermost */
    struct rondo_xml_attribute attributes[RONDO_XML_ATTRIBUTES];
    int attribute_count;
};

/* Calls open(argument, element) for every element in the order of the text. The element is valid during the call, what its
 * pointers point to as long as the text. Returns RONDO_ERR_ARGUMENT with line and reason if the text is not well-formed, and
 * what open returned if that is not RONDO_SUCCESS, which ends the reading. */
rondo_result_t rondo_xml_read(const char *text, size_t bytes,
                              rondo_result_t (*open)(void *argument, const struct rondo_xml_element *element), void *argument);

/* Whether the element has this name. */
int rondo_xml_is(const struct rondo_xml_element *element, const char *name);
/* Returns the attribute of that name, or NULL. */
const struct rondo_xml_attribute *rondo_xml_attribute(const struct rondo_xml_element *element, const char *name);

#endif
