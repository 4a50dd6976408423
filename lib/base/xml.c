/* See lib/base/xml.h. Keeps the names of open elements, at most RONDO_XML_DEPTH, as pointers into the text. */
#include "lib/base/xml.h"

#include "lib/base/error.h"

#include <string.h>

struct reader {
    const char *at, *end;
    int line, depth;
    struct {
        const char *name;
        size_t length;
    } open[RONDO_XML_DEPTH];
    struct rondo_xml_element element;
};

static rondo_result_t refuse(const struct reader *r, const char *what)
{
    return rondo_fail(RONDO_ERR_ARGUMENT, "line %d: %s", r->line, what);
}

static int is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' ||
           c == ':';
}

static void skip_space(struct reader *r)
{
    while (r->at < r->end && is_space(*r->at))
        r->line += *r->at++ == '\n';
}

static int starts(const struct reader *r, const char *with)
{
    size_t length = strlen(with);
    return (size_t) (r->end - r->at) >= length && memcmp(r->at, with, length) == 0;
}

/* Skips to behind the mark. Returns 0 if the text ends before. */
static int skip_past(struct reader *r, const char *mark)
{
    while (r->at < r->end && !starts(r, mark))
        r->line += *r->at++ == '\n';
    if (r->at == r->end)
        return 0;
    r->at += strlen(mark);
    return 1;
}

/* Returns the length of the name that begins here; 0: none does. */
static size_t name(struct reader *r, const char **start)
{
    *start = r->at;
    while (r->at < r->end && is_name(*r->at))
        r->at++;
    return (size_t) (r->at - *start);
}

static rondo_result_t attribute(struct reader *r)
{
    struct rondo_xml_element *e = &r->element;
    if (e->attribute_count == RONDO_XML_ATTRIBUTES)
        return refuse(r, "an element has too many attributes");
    struct rondo_xml_attribute *a = &e->attributes[e->attribute_count];
    a->name_length = name(r, &a->name);
    if (a->name_length == 0)
        return refuse(r, "expected an attribute, > or />");
    for (int i = 0; i < e->attribute_count; i++)
        if (e->attributes[i].name_length == a->name_length && memcmp(e->attributes[i].name, a->name, a->name_length) == 0)
            return refuse(r, "an attribute for the second time");
    skip_space(r);
    if (r->at == r->end || *r->at++ != '=')
        return refuse(r, "expected = behind an attribute's name");
    skip_space(r);
    if (r->at == r->end || (*r->at != '"' && *r->at != '\''))
        return refuse(r, "expected an attribute's value in quotes");
    char quote = *r->at++;
    a->value = r->at;
    for (; r->at < r->end && *r->at != quote; r->at++) {
        if (*r->at == '<' || *r->at == '&')
            return refuse(r, "< or & in an attribute: no value of a program needs one");
        r->line += *r->at == '\n';
    }
    if (r->at == r->end)
        return refuse(r, "the text ends within an attribute");
    a->value_length = (size_t) (r->at++ - a->value);
    e->attribute_count++;
    return RONDO_SUCCESS;
}

/* Reads an element from behind its <. *closed: it ends with />. */
static rondo_result_t start_tag(struct reader *r, int *closed)
{
    struct rondo_xml_element *e = &r->element;
    e->line = r->line;
    e->depth = r->depth;
    e->attribute_count = 0;
    e->name_length = name(r, &e->name);
    if (e->name_length == 0)
        return refuse(r, "expected an element's name");
    for (;;) {
        const char *before = r->at;
        skip_space(r);
        if (r->at == r->end)
            return refuse(r, "the text ends within an element");
        *closed = starts(r, "/>");
        if (*closed || *r->at == '>') {
            r->at += *closed ? 2 : 1;
            return RONDO_SUCCESS;
        }
        if (r->at == before)
            return refuse(r, "expected a space before an attribute");
        rondo_result_t result = attribute(r);
        if (result != RONDO_SUCCESS)
            return result;
    }
}

static rondo_result_t end_tag(struct reader *r)
{
    const char *start;
    size_t length = name(r, &start);
    skip_space(r);
    if (r->at == r->end || *r->at++ != '>')
        return refuse(r, "expected > behind the name of the element that ends");
    if (r->depth == 0 || r->open[r->depth - 1].length != length || memcmp(r->open[r->depth - 1].name, start, length) != 0)
        return refuse(r, "an element ends that is not the last one begun");
    r->depth--;
    return RONDO_SUCCESS;
}

rondo_result_t rondo_xml_read(const char *text, size_t bytes,
                              rondo_result_t (*open)(void *argument, const struct rondo_xml_element *element), void *argument)
{
    struct reader r = {.at = text, .end = text + bytes, .line = 1};
    rondo_result_t result = RONDO_SUCCESS;
    int elements = 0;
    for (;;) {
        skip_space(&r);
        if (r.at == r.end)
            break;
        if (*r.at != '<')
            return refuse(&r, "text where only elements can be");
        if (starts(&r, "<!--")) {
            if (!skip_past(&r, "-->"))
                return refuse(&r, "the text ends within a comment");
            continue;
        }
        if (starts(&r, "<?")) {
            if (!skip_past(&r, "?>"))
                return refuse(&r, "the text ends within a processing instruction");
            continue;
        }
        if (starts(&r, "<!"))
            return refuse(&r, "document types and sections are not accepted");
        r.at++;
        if (r.at < r.end && *r.at == '/') {
            r.at++;
            if ((result = end_tag(&r)) != RONDO_SUCCESS)
                return result;
            continue;
        }
        if (r.depth == 0 && elements > 0)
            return refuse(&r, "a second outermost element");
        int closed = 0;
        if ((result = start_tag(&r, &closed)) != RONDO_SUCCESS)
            return result;
        elements++;
        if ((result = open(argument, &r.element)) != RONDO_SUCCESS)
            return result;
        if (closed)
            continue;
        if (r.depth == RONDO_XML_DEPTH)
            return refuse(&r, "elements are nested too deep");
        r.open[r.depth].name = r.element.name;
        r.open[r.depth++].length = r.element.name_length;
    }
    if (r.depth > 0)
        return refuse(&r, "the text ends before its elements do");
    return elements == 0 ? refuse(&r, "there is no element") : RONDO_SUCCESS;
}

int rondo_xml_is(const struct rondo_xml_element *element, const char *wanted)
{
    return strlen(wanted) == element->name_length && memcmp(wanted, element->name, element->name_length) == 0;
}

const struct rondo_xml_attribute *rondo_xml_attribute(const struct rondo_xml_element *element, const char *wanted)
{
    for (int i = 0; i < element->attribute_count; i++)
        if (element->attributes[i].name_length == strlen(wanted) &&
            memcmp(element->attributes[i].name, wanted, element->attributes[i].name_length) == 0)
            return &element->attributes[i];
    return NULL;
}
